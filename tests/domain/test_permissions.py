"""Who may what, cell by cell."""

import pytest

from agent_console.domain.errors import Forbidden
from agent_console.domain.permissions import GRANTS, Permission, Role, require_permission
from agent_console.repository.operations import OPERATIONS

TABLE = {
    Permission.SEE_FLEET: "admin operator viewer",
    Permission.READ_THREADS: "admin operator viewer agent",
    Permission.CONVERSE: "admin operator agent",
    Permission.READ_AUDIT: "admin operator viewer",
    Permission.WORK_QUEUE: "admin operator",
    Permission.DECIDE_APPROVALS: "admin operator",
    Permission.USE_THREADS: "admin operator",
    Permission.ADMINISTER: "admin",
    Permission.ACT_AS_AGENT: "agent",
}


@pytest.mark.parametrize("permission", Permission)
@pytest.mark.parametrize("role", Role)
def test_every_cell(role: Role, permission: Permission) -> None:
    if role.value in TABLE[permission].split():
        require_permission(role, permission, "jobs.create")
        return
    with pytest.raises(Forbidden) as refused:
        require_permission(role, permission, "jobs.create")
    assert TABLE[permission].replace(" ", ", ") in refused.value.hint


def test_agents_never_decide_and_never_administer() -> None:
    assert GRANTS[Role.AGENT] == {Permission.ACT_AS_AGENT, Permission.READ_THREADS, Permission.CONVERSE}


# A proof names acts of every thread, a replay requests of every agent; who delegated is told what became of it,
# and an agent what it holds.
NOT_FOR_VIEWERS = {"audit.verify", "routes.replay", "runs.outcome", "claims.held"}


def test_reading_never_needs_more_than_a_viewer_has_but_for_tokens() -> None:
    needs_more = {
        operation.name
        for operation in OPERATIONS
        if not operation.changes and operation.permission is not None
        if not operation.noun.endswith("_tokens") and operation.permission not in GRANTS[Role.VIEWER]
    }

    assert needs_more == NOT_FOR_VIEWERS
