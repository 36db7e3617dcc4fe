"""Nothing is changed without a word in the trail: every operation, done once, leaves one row of its action."""

from collections.abc import AsyncIterator

import pytest

from agent_console.domain.audit import ACTIONS
from agent_console.repository.operations import OPERATIONS, AnyOperation
from agent_console.repository.port import Repository
from tests.support.act_stage import ANA, MARKER, Stage
from tests.support.acts import AS_ATLAS, EXAMPLES
from tests.support.asking import callers
from tests.support.fleet import Fleet

WRITTEN = tuple(operation for operation in OPERATIONS if operation.audit is not None)
SINCE = (
    "select actor_type, coalesce(actor_user_id, actor_agent_id) from audit_log"
    " where team_id = %s and action = %s and seq > %s"
)


@pytest.fixture
async def stage(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    async with callers(fleet, "direct") as crew:
        yield Stage(fleet, crew, await crew.person(ANA), monkeypatch)


async def written(stage: Stage, operation: AnyOperation) -> str | None:
    """What is wrong with what the operation left in the trail."""
    fleet, by_agent = stage.fleet, operation.name in AS_ATLAS
    caller: Repository = await stage.callers.agent("atlas") if by_agent else stage.admin
    values = await EXAMPLES[operation.name](stage)
    before = fleet.one("select coalesce(max(seq), 0) from audit_log")
    await caller.call(operation, operation.request.model_validate(values))
    rows = fleet.execute(SINCE, fleet.team_id(), operation.audit, before)
    actor = ("agent", fleet.agent_id("atlas")) if by_agent else ("human", fleet.user_id(ANA))
    return None if rows == [actor] else f"{operation.name}: {operation.audit} by {actor}, but found {rows}"


@pytest.mark.rule(
    *("R002-78", "R002-79", "R002-129", "R002-130", "R002-131", "R002-132"),
    *("U002-6", "U002-7", "U002-8", "U002-9"),
)
async def test_every_changing_operation_writes_one_row_with_its_actor_and_no_content(stage: Stage) -> None:
    missing = [operation.name for operation in WRITTEN if operation.name not in EXAMPLES]
    assert not missing, f"add an example to tests/support/acts.py for: {', '.join(missing)}"

    wrong = []
    for operation in WRITTEN:
        try:
            problem = await written(stage, operation)
        except Exception as error:
            problem = f"{operation.name}: {type(error).__name__}: {error}"
        if problem is not None:
            wrong.append(problem)

    assert not wrong, "\n".join(wrong)
    content = "select action from audit_log a where a::text like %s"
    assert stage.fleet.execute(content, f"%{MARKER}%") == []


def test_every_example_is_of_an_operation_that_there_is() -> None:
    assert EXAMPLES.keys() == {operation.name for operation in WRITTEN}


@pytest.mark.rule("R002-83", "U002-5", "U002-6", "U002-7", "U002-8", "U002-9")
def test_the_actions_that_the_rules_name_are_registered() -> None:
    named = {
        *(
            "auth.login.success",
            "auth.login.failed",
            "auth.logout",
            "session.refresh",
            "token.revoked",
            "rbac.role.grant",
            "rbac.role.revoke",
            "config.change",
            "thread.create",
        ),
        *("thread.archive", "thread.acl.grant", "thread.acl.revoke", "thread.acl.update", "message.create"),
        *("run.create", "run.start", "run.cancel", "run.finish", "run.fail", "run.timeout", "run.policy.blocked"),
        *("a2a.delegate.request", "a2a.delegate.allowed", "a2a.delegate.blocked", "a2a.delegate.rate_limited"),
        *("a2a.route.create", "a2a.route.update", "a2a.route.delete", "thread.access.admin_override"),
    }

    assert named - ACTIONS.keys() == set()
