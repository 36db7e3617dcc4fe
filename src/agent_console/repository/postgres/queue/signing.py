"""Signed results: a secret that only the agent with this attempt is given, made again here to check."""

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping

from agent_console.domain.errors import BadRequest, Conflict
from agent_console.domain.ids import JobId
from agent_console.repository.postgres.registry.credentials_at_rest import (
    KEY_VARIABLE,
    ServerKey,
    ServerKeys,
    server_keys,
)

PURPOSE = b"agent-console result signing\x00"


def signing_key() -> ServerKey:
    keys = server_keys().keys
    if not keys:
        raise Conflict(
            "A signed job needs a server key, and there is none.",
            hint=f"Set {KEY_VARIABLE} to 32 random bytes in base64url for every program that works on this "
            "database, or leave the job unsigned.",
        )
    return keys[0]


def new_nonce() -> str:
    """For a job that is made now: whoever could never give it out does not make it."""
    signing_key()
    return secrets.token_hex(16)


def secret_of(key: ServerKey, job_id: JobId, attempt: int, nonce: str) -> str:
    said = PURPOSE + f"{job_id}\x00{attempt}\x00{nonce}".encode()
    return hmac.new(key.secret, said, hashlib.sha256).hexdigest()


def secret_hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def signature_of(secret: str, result: Mapping[str, object] | None) -> str:
    """Over the canonical JSON of the result: keys sorted, no spaces, UTF-8."""
    words = json.dumps(result or {}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hmac.new(secret.encode(), words.encode(), hashlib.sha256).hexdigest()


def require_signature(
    keys: ServerKeys,
    job_id: JobId,
    attempt: int,
    nonce: str,
    stored_hash: str | None,
    result: Mapping[str, object] | None,
    given: str | None,
) -> None:
    """Refuse a result that was not signed with the secret that this attempt was given."""
    for key in keys.keys:
        secret = secret_of(key, job_id, attempt, nonce)
        if stored_hash is not None and not hmac.compare_digest(secret_hash(secret), stored_hash):
            continue
        if given is not None and hmac.compare_digest(signature_of(secret, result), given):
            return
    raise BadRequest(
        "The result is not signed with the secret of this attempt.",
        hint="Sign the canonical JSON of the result with the signing_secret that came with the job.",
        details={"field": "signature"},
    )
