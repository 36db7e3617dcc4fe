"""Who may what: one table, read by the repository before every operation."""

from collections.abc import Mapping
from enum import StrEnum

from agent_console.domain.errors import Forbidden


class Role(StrEnum):
    """What a caller is. `agent` is never a person's role: it comes with an agent's own credential."""

    ADMIN = "admin"
    OPERATOR = "operator"
    VIEWER = "viewer"
    AGENT = "agent"


class Permission(StrEnum):
    SEE_FLEET = "see_fleet"
    WORK_QUEUE = "work_queue"
    DECIDE_APPROVALS = "decide_approvals"
    USE_THREADS = "use_threads"
    READ_THREADS = "read_threads"
    CONVERSE = "converse"
    READ_AUDIT = "read_audit"
    ADMINISTER = "administer"
    ACT_AS_AGENT = "act_as_agent"


_EVERYONE_WHO_READS = frozenset({Permission.SEE_FLEET, Permission.READ_THREADS, Permission.READ_AUDIT})
_OPERATES = frozenset(
    {Permission.WORK_QUEUE, Permission.DECIDE_APPROVALS, Permission.USE_THREADS, Permission.CONVERSE}
)

GRANTS: Mapping[Role, frozenset[Permission]] = {
    Role.ADMIN: _EVERYONE_WHO_READS | _OPERATES | {Permission.ADMINISTER},
    Role.OPERATOR: _EVERYONE_WHO_READS | _OPERATES,
    Role.VIEWER: _EVERYONE_WHO_READS,
    # In threads an agent has only the rights that the thread gives it.
    Role.AGENT: frozenset({Permission.ACT_AS_AGENT, Permission.READ_THREADS, Permission.CONVERSE}),
}


def require_permission(role: Role, needed: Permission, operation: str) -> None:
    if needed in GRANTS[role]:
        return
    able = ", ".join(r.value for r, granted in GRANTS.items() if needed in granted)
    raise Forbidden(
        f"{operation} needs the right {needed.value}; the role {role.value} does not have it.",
        hint=f"Ask someone with one of these roles: {able}.",
        details={"permission": needed.value, "role": role.value},
    )
