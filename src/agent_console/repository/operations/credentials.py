"""How agents come in, and every credential: minted, listed, rotated, revoked."""

from agent_console.domain.audit import audit_action
from agent_console.domain.permissions import Permission
from agent_console.domain.records import Page
from agent_console.domain.registration import AgentRegistration, KeyRotation, MintedKey, Registered
from agent_console.domain.tokens import (
    MintedOperatorToken,
    MintedRegistrationToken,
    MintedWorkerToken,
    NewOperatorToken,
    NewRegistrationToken,
    NewWorkerToken,
    OperatorToken,
    OperatorTokenAsked,
    OperatorTokenQuery,
    OperatorTokenRotation,
    RegistrationToken,
    RegistrationTokenAsked,
    RegistrationTokenQuery,
    WorkerToken,
    WorkerTokenAsked,
    WorkerTokenQuery,
    WorkerTokenRotation,
)
from agent_console.repository.operations.declared import AnyOperation, Operation, Verb

REGISTRATION_TOKEN_MINTED = audit_action("registration_token.mint", "hours")
AGENT_REGISTERED = audit_action("agent.register", "registration_token_id", "auth_source", "again")
KEY_ROTATED = audit_action("agent.rotate_key", "overlap_seconds", "auth_source")
WORKER_TOKEN_MINTED = audit_action(
    "worker_token.mint", "worker_id", "allowed_repositories", "allowed_job_types", "capabilities"
)
WORKER_TOKEN_ROTATED = audit_action("worker_token.rotate", "worker_id", "overlap_seconds", "new_token_id")
OPERATOR_TOKEN_MINTED = audit_action("operator_token.mint", "user_id", "days")
OPERATOR_TOKEN_ROTATED = audit_action(
    "operator_token.rotate", "user_id", "days", "overlap_seconds", "new_token_id"
)
TOKEN_REVOKED = audit_action("token.revoked", "worker_id", "user_id")
AUTH_BLOCKED = audit_action("auth.blocked", "failures", "seconds")
AUTH_FAILED = audit_action("auth.login.failed")
AUTH_SUCCEEDED = audit_action("auth.login.success")
AUTH_LEFT = audit_action("auth.logout", "user_id")
SESSION_REFRESHED = audit_action("session.refresh", "user_id", "days", "overlap_seconds", "new_token_id")

REGISTRATION_TOKENS_MINT = Operation(
    name="registration_tokens.mint",
    summary="Mint a token that lets one agent in, once; its secret is shown this once.",
    verb=Verb.POST,
    path="/v1/registration-tokens",
    request=NewRegistrationToken,
    answer=MintedRegistrationToken,
    permission=Permission.ADMINISTER,
    audit=REGISTRATION_TOKEN_MINTED,
    created=True,
)
REGISTRATION_TOKENS_LIST = Operation(
    name="registration_tokens.list",
    summary="The registration tokens of the team, newest first.",
    verb=Verb.GET,
    path="/v1/registration-tokens",
    request=RegistrationTokenQuery,
    answer=Page[RegistrationToken],
    permission=Permission.ADMINISTER,
)
REGISTRATION_TOKENS_REVOKE = Operation(
    name="registration_tokens.revoke",
    summary="Make a registration token useless before it is used.",
    verb=Verb.POST,
    path="/v1/registration-tokens/{token_id}/revoke",
    request=RegistrationTokenAsked,
    answer=RegistrationToken,
    permission=Permission.ADMINISTER,
    audit=TOKEN_REVOKED,
)
AGENTS_REGISTER = Operation(
    name="agents.register",
    summary="Come in as a new agent with a registration token; the key is shown this once.",
    verb=Verb.POST,
    path="/v1/agents/register",
    request=AgentRegistration,
    answer=Registered,
    permission=None,
    audit=AGENT_REGISTERED,
    created=True,
    public=True,
)
AGENTS_ROTATE_KEY = Operation(
    name="agents.rotate_key",
    summary="Give an agent a new key; the old one ends at once or after an overlap.",
    verb=Verb.POST,
    path="/v1/agents/{agent_id}/rotate-key",
    request=KeyRotation,
    answer=MintedKey,
    permission=None,
    audit=KEY_ROTATED,
    danger=True,
)
WORKER_TOKENS_MINT = Operation(
    name="worker_tokens.mint",
    summary="Mint a worker's credential with its policy; its secret is shown this once.",
    verb=Verb.POST,
    path="/v1/worker-tokens",
    request=NewWorkerToken,
    answer=MintedWorkerToken,
    permission=Permission.ADMINISTER,
    audit=WORKER_TOKEN_MINTED,
    created=True,
)
WORKER_TOKENS_LIST = Operation(
    name="worker_tokens.list",
    summary="The worker tokens of the team, newest first.",
    verb=Verb.GET,
    path="/v1/worker-tokens",
    request=WorkerTokenQuery,
    answer=Page[WorkerToken],
    permission=Permission.ADMINISTER,
)
WORKER_TOKENS_REVOKE = Operation(
    name="worker_tokens.revoke",
    summary="End a worker token at once.",
    verb=Verb.POST,
    path="/v1/worker-tokens/{token_id}/revoke",
    request=WorkerTokenAsked,
    answer=WorkerToken,
    permission=Permission.ADMINISTER,
    audit=TOKEN_REVOKED,
    danger=True,
)
WORKER_TOKENS_ROTATE = Operation(
    name="worker_tokens.rotate",
    summary="Replace a worker token by a new one with the same policy.",
    verb=Verb.POST,
    path="/v1/worker-tokens/{token_id}/rotate",
    request=WorkerTokenRotation,
    answer=MintedWorkerToken,
    permission=Permission.ADMINISTER,
    audit=WORKER_TOKEN_ROTATED,
    danger=True,
    created=True,
)
OPERATOR_TOKENS_MINT = Operation(
    name="operator_tokens.mint",
    summary="Mint a token for a person: anyone for an administrator, oneself for everyone else.",
    verb=Verb.POST,
    path="/v1/operator-tokens",
    request=NewOperatorToken,
    answer=MintedOperatorToken,
    permission=None,
    audit=OPERATOR_TOKEN_MINTED,
    created=True,
)
OPERATOR_TOKENS_LIST = Operation(
    name="operator_tokens.list",
    summary="The tokens of people, newest first: all for an administrator, one's own for everyone else.",
    verb=Verb.GET,
    path="/v1/operator-tokens",
    request=OperatorTokenQuery,
    answer=Page[OperatorToken],
    permission=None,
)
OPERATOR_TOKENS_REVOKE = Operation(
    name="operator_tokens.revoke",
    summary="End a person's token at once.",
    verb=Verb.POST,
    path="/v1/operator-tokens/{token_id}/revoke",
    request=OperatorTokenAsked,
    answer=OperatorToken,
    permission=None,
    audit=TOKEN_REVOKED,
    danger=True,
)
OPERATOR_TOKENS_ROTATE = Operation(
    name="operator_tokens.rotate",
    summary="Replace a person's token by a new one.",
    verb=Verb.POST,
    path="/v1/operator-tokens/{token_id}/rotate",
    request=OperatorTokenRotation,
    answer=MintedOperatorToken,
    permission=None,
    audit=OPERATOR_TOKEN_ROTATED,
    danger=True,
    created=True,
)

NOUNS = {
    "registration_tokens": "What lets a new agent in.",
    "worker_tokens": "Credentials of workers, with their policy.",
    "operator_tokens": "Credentials of people.",
}

CREDENTIALS: tuple[AnyOperation, ...] = (
    REGISTRATION_TOKENS_MINT,
    REGISTRATION_TOKENS_LIST,
    REGISTRATION_TOKENS_REVOKE,
    AGENTS_REGISTER,
    AGENTS_ROTATE_KEY,
    WORKER_TOKENS_MINT,
    WORKER_TOKENS_LIST,
    WORKER_TOKENS_REVOKE,
    WORKER_TOKENS_ROTATE,
    OPERATOR_TOKENS_MINT,
    OPERATOR_TOKENS_LIST,
    OPERATOR_TOKENS_REVOKE,
    OPERATOR_TOKENS_ROTATE,
)
