"""The audit trail: reading it, and proving that nobody changed it."""

from agent_console.domain.audit import audit_action
from agent_console.domain.audit_export import AuditExport, ExportPart
from agent_console.domain.audit_proof import Pruned, Pruning, Verification, Verified
from agent_console.domain.audit_trail import (
    WAIT_SECONDS,
    AuditAsked,
    AuditQuery,
    AuditRow,
    AuditTail,
    AuditTailPage,
    Seal,
    SealStatus,
)
from agent_console.domain.permissions import Permission
from agent_console.domain.records import Nothing, Page
from agent_console.repository.operations.declared import AnyOperation, Operation, Verb

AUDIT_PRUNED = audit_action("audit.prune", "checkpoint", "first_position", "last_position", "last_hash", "rows")

PROVE_SECONDS = 30.0
PRUNE_SECONDS = 600.0

AUDIT_LIST = Operation(
    name="audit.list",
    summary="Who did what, newest first; without a time, of the last seven days.",
    verb=Verb.GET,
    path="/v1/audit",
    request=AuditQuery,
    answer=Page[AuditRow],
    permission=Permission.READ_AUDIT,
)
AUDIT_TAIL = Operation(
    name="audit.tail",
    summary="What was sealed last, in the order of its seals; nothing is ever skipped.",
    verb=Verb.GET,
    path="/v1/audit/tail",
    request=AuditTail,
    answer=AuditTailPage,
    permission=Permission.READ_AUDIT,
    waits_seconds=WAIT_SECONDS,
)
AUDIT_EXPORT = Operation(
    name="audit.export",
    summary="The sealed trail as lines of JSON or as CSV, oldest first.",
    verb=Verb.GET,
    path="/v1/audit/export",
    request=AuditExport,
    answer=ExportPart,
    permission=Permission.READ_AUDIT,
)
AUDIT_SEAL = Operation(
    name="audit.seal",
    summary="The seal at the end of the chain: keep it outside the database, to prove the trail by it later.",
    verb=Verb.GET,
    path="/v1/audit/seal",
    request=Nothing,
    answer=Seal,
    permission=Permission.READ_AUDIT,
)
AUDIT_SEAL_STATUS = Operation(
    name="audit.seal_status",
    summary="How far the trail is sealed, how long the rest has waited, and what was dropped.",
    verb=Verb.GET,
    path="/v1/audit/seal-status",
    request=Nothing,
    answer=SealStatus,
    permission=Permission.READ_AUDIT,
)
AUDIT_VERIFY = Operation(
    name="audit.verify",
    summary="Take every hash anew, and name the first act that is not as it was sealed.",
    verb=Verb.POST,
    path="/v1/audit/verify",
    request=Verification,
    answer=Verified,
    permission=Permission.ADMINISTER,
    waits_seconds=PROVE_SECONDS,
)
AUDIT_PRUNE = Operation(
    name="audit.prune",
    summary="Drop sealed months that no team keeps any longer, and leave a checkpoint for each.",
    verb=Verb.POST,
    path="/v1/audit/prune",
    request=Pruning,
    answer=Pruned,
    permission=Permission.ADMINISTER,
    audit=AUDIT_PRUNED,
    danger=True,
    waits_seconds=PRUNE_SECONDS,
    batched=True,
)
AUDIT_GET = Operation(
    name="audit.get",
    summary="One act, whole.",
    verb=Verb.GET,
    path="/v1/audit/{audit_id}",
    request=AuditAsked,
    answer=AuditRow,
    permission=Permission.READ_AUDIT,
)

NOUNS: dict[str, str] = {"audit": "The audit trail and the proof that nobody changed it."}

# /v1/audit/tail and its like have to be asked before /v1/audit/{audit_id}.
AUDIT_TRAIL: tuple[AnyOperation, ...] = (
    AUDIT_LIST,
    AUDIT_TAIL,
    AUDIT_EXPORT,
    AUDIT_SEAL,
    AUDIT_SEAL_STATUS,
    AUDIT_VERIFY,
    AUDIT_PRUNE,
    AUDIT_GET,
)
