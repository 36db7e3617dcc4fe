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


def test_reading_never_needs_more_than_a_viewer_has_but_for_tokens() -> None:
    for operation in OPERATIONS:
        if not operation.changes and operation.permission is not None:
            of_tokens = operation.noun.endswith("_tokens")
            assert of_tokens or operation.permission in GRANTS[Role.VIEWER], operation.name
