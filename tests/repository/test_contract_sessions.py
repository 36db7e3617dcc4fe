"""Sessions, through both repositories."""

import asyncio

import psycopg
import pytest

from agent_console.domain.agents import Agent, AgentAsked
from agent_console.domain.errors import AgentUnavailable, Conflict, Forbidden, NotFound, Unauthorized
from agent_console.domain.hosted import NewHostedAgent
from agent_console.domain.ids import AgentId, SessionId
from agent_console.domain.sessions import NewSession, SessionAsked, SessionQuery, SessionsClosing
from agent_console.domain.states import Lifecycle, SessionStatus
from agent_console.repository.operations import AGENTS_GET
from agent_console.repository.operations.agents import AGENTS_HOST
from agent_console.repository.operations.sessions import (
    SESSIONS_CLOSE,
    SESSIONS_CLOSE_ALL,
    SESSIONS_GET,
    SESSIONS_LIST,
    SESSIONS_OPEN,
)
from agent_console.repository.port import Repository
from agent_console.repository.postgres.registry import sessions as sessions_module
from tests.repository.conftest import ADMIN, OPERATOR, VIEWER, OpenRepository
from tests.support.fleet import Fleet
from tests.support.locks import somebody_waits_for_a_lock


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits a minute in a test; the server runs in this process too."""
    monkeypatch.setattr(sessions_module, "WAKE_SECONDS", 0.3)
    monkeypatch.setattr(sessions_module, "LOOK_AGAIN_SECONDS", 0.05)


async def hosted(repository: Repository, fleet: Fleet, lifecycle: Lifecycle) -> AgentId:
    agent_id = (await repository.call(AGENTS_HOST, NewHostedAgent(name="nova"))).agent.id
    fleet.execute("update agent_runtime set lifecycle = %s where agent_id = %s", int(lifecycle), agent_id)
    return agent_id


async def shown(repository: Repository, agent_id: AgentId) -> Agent:
    return await repository.call(AGENTS_GET, AgentAsked(agent_id=agent_id))


def audited(fleet: Fleet, kind: str) -> list[tuple[object, ...]]:
    found = "select action, resource_id, metadata from audit_log where action like %s order by seq"
    return fleet.execute(found, f"{kind}.%")


@pytest.mark.rule(
    "R004-3",
    "R004-32",
    "R004-33",
    "R004-34",
    "R004-35",
    "R004-36",
    "R004-37",
    "R004-50",
    "R004-51",
    "R004-52",
    "R004-69",
    "U004-13",
)
async def test_a_session_is_opened_read_and_closed_once(repository: Repository, fleet: Fleet) -> None:
    atlas = fleet.agent_id("atlas")

    opened = await repository.call(SESSIONS_OPEN, NewSession(agent_id=atlas))
    read = await repository.call(SESSIONS_GET, SessionAsked(session_id=opened.id))
    with_one = await shown(repository, atlas)
    closed = await repository.call(SESSIONS_CLOSE, SessionAsked(session_id=opened.id))
    ended = fleet.one("select last_used_at from agent_runtime where agent_id = %s", atlas)
    again = await repository.call(SESSIONS_CLOSE, SessionAsked(session_id=opened.id))

    assert read == opened
    assert str(opened.id).startswith("ses_")
    assert (opened.agent_id, opened.agent, opened.user_id) == (atlas, "atlas", fleet.user_id("ana@example.com"))
    assert (opened.status, opened.closed_at) == (SessionStatus.ACTIVE, None)
    assert (with_one.open_sessions, (await shown(repository, atlas)).open_sessions) == (1, 0)
    assert closed.status is SessionStatus.CLOSED
    assert closed.closed_at is not None
    assert again == closed
    assert fleet.one("select last_used_at from agent_runtime where agent_id = %s", atlas) == ended
    assert audited(fleet, "session") == [
        ("session.created", str(opened.id), {"agent_id": str(atlas)}),
        ("session.closed", str(opened.id), {"agent_id": str(atlas)}),
    ]


@pytest.mark.rule("R004-53", "R004-71")
async def test_sessions_of_an_agent_are_paged_newest_first(repository: Repository, fleet: Fleet) -> None:
    atlas, beacon = fleet.agent_id("atlas"), fleet.agent_id("beacon")
    made = [(await repository.call(SESSIONS_OPEN, NewSession(agent_id=atlas))).id for _ in range(5)]
    await repository.call(SESSIONS_OPEN, NewSession(agent_id=beacon))

    first = await repository.call(SESSIONS_LIST, SessionQuery(agent_id=atlas, limit=3))
    rest = await repository.call(SESSIONS_LIST, SessionQuery(agent_id=atlas, limit=3, after=first.next))

    assert [session.id for session in (*first.items, *rest.items)] == made[::-1]
    assert rest.next is None


@pytest.mark.rule("U004-21")
async def test_no_session_begins_behind_the_back_of_whoever_blocks_its_user(
    repository: Repository, fleet: Fleet
) -> None:
    wanted = NewSession(agent_id=fleet.agent_id("atlas"))
    await repository.call(SESSIONS_OPEN, wanted)
    with psycopg.connect(fleet.administration) as blocking:
        blocking.execute("update users set is_active = false where email = %s", (ADMIN,))
        opening = asyncio.create_task(repository.call(SESSIONS_OPEN, wanted))
        await somebody_waits_for_a_lock(fleet, task=opening)
        # As blocking does; whoever waits for the user holds nothing of the agent yet.
        blocking.execute("select from agent_runtime for no key update nowait")
        blocking.execute("update sessions set status = 2, closed_at = now(), close_reason = 'user deactivated'")

    with pytest.raises(Unauthorized):
        await opening
    assert fleet.one("select count(*) from sessions where status = 1") == 0


@pytest.mark.rule("U004-8", "U004-17")
async def test_a_session_makes_an_idle_agent_running(repository: Repository, fleet: Fleet) -> None:
    agent_id = await hosted(repository, fleet, Lifecycle.IDLE)

    await repository.call(SESSIONS_OPEN, NewSession(agent_id=agent_id))

    assert (await shown(repository, agent_id)).lifecycle is Lifecycle.RUNNING
    assert audited(fleet, "agent")[-1] == ("agent.started", str(agent_id), {"from": "idle", "to": "running"})


@pytest.mark.rule("U004-7")
async def test_a_session_wakes_a_hibernating_agent_and_waits_for_it(
    repository: Repository, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions_module, "WAKE_SECONDS", 60.0)
    agent_id = await hosted(repository, fleet, Lifecycle.HIBERNATING)

    opening = asyncio.create_task(repository.call(SESSIONS_OPEN, NewSession(agent_id=agent_id)))
    async with asyncio.timeout(60):
        async for _ in repository.changes():
            if (await shown(repository, agent_id)).lifecycle is Lifecycle.PROVISIONING:
                break
    waiting = not opening.done()
    # Beside the loop: whoever looks whether the agent is awake may hold its row just now, and has to go on.
    await asyncio.to_thread(fleet.execute, "update agent_runtime set lifecycle = 2 where agent_id = %s", agent_id)
    session = await opening

    assert waiting
    assert session.status is SessionStatus.ACTIVE
    assert audited(fleet, "agent")[-1] == (
        "agent.move", str(agent_id), {"from": "hibernating", "to": "provisioning"},
    )  # fmt: skip


@pytest.mark.rule("U004-7")
async def test_an_agent_that_does_not_wake_in_time_is_unavailable(repository: Repository, fleet: Fleet) -> None:
    agent_id = await hosted(repository, fleet, Lifecycle.HIBERNATING)

    with pytest.raises(AgentUnavailable, match="did not wake"):
        await repository.call(SESSIONS_OPEN, NewSession(agent_id=agent_id))

    assert (await shown(repository, agent_id)).lifecycle is Lifecycle.PROVISIONING
    assert fleet.one("select count(*) from sessions") == 0
    assert len(audited(fleet, "agent")) == 2


@pytest.mark.parametrize("lifecycle", [Lifecycle.STOPPING, Lifecycle.STOPPED, Lifecycle.ERROR])
async def test_an_agent_that_does_not_run_has_no_sessions(
    repository: Repository, fleet: Fleet, lifecycle: Lifecycle
) -> None:
    agent_id = await hosted(repository, fleet, lifecycle)

    with pytest.raises(AgentUnavailable) as refused:
        await repository.call(SESSIONS_OPEN, NewSession(agent_id=agent_id))

    assert refused.value.details == {"state": lifecycle.name.lower()}


async def test_an_agent_of_ones_own_machine_must_be_online_and_not_revoked(
    repository: Repository, fleet: Fleet
) -> None:
    with pytest.raises(AgentUnavailable, match="offline"):
        await repository.call(SESSIONS_OPEN, NewSession(agent_id=fleet.agent_id("harbor")))
    with pytest.raises(Conflict, match="revoked"):
        await repository.call(SESSIONS_OPEN, NewSession(agent_id=fleet.agent_id("juniper")))

    assert fleet.one("select count(*) from sessions") == 0


@pytest.mark.rule("U004-9")
async def test_only_the_owner_has_sessions(open_repository: OpenRepository, fleet: Fleet) -> None:
    owner, other, viewer = [await open_repository(email) for email in ("ana@example.com", OPERATOR, VIEWER)]
    atlas = fleet.agent_id("atlas")
    session = await owner.call(SESSIONS_OPEN, NewSession(agent_id=atlas))

    for repository in (other, viewer):
        with pytest.raises(Forbidden):
            await repository.call(SESSIONS_OPEN, NewSession(agent_id=atlas))
        with pytest.raises(Forbidden):
            await repository.call(SESSIONS_LIST, SessionQuery(agent_id=atlas))
        with pytest.raises(Forbidden):
            await repository.call(SESSIONS_GET, SessionAsked(session_id=session.id))
        with pytest.raises(Forbidden):
            await repository.call(SESSIONS_CLOSE, SessionAsked(session_id=session.id))

    assert (await owner.call(SESSIONS_GET, SessionAsked(session_id=session.id))).status is SessionStatus.ACTIVE


@pytest.mark.rule("R004-70")
async def test_another_teams_session_answers_like_a_missing_one(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    fleet.add_team("other")
    ours, theirs = await open_repository(), await open_repository("admin@other.example", "other")
    session = await ours.call(SESSIONS_OPEN, NewSession(agent_id=fleet.agent_id("atlas")))
    missing = SessionId.new()

    for operation in (SESSIONS_GET, SESSIONS_CLOSE):
        with pytest.raises(NotFound) as of_another_team:
            await theirs.call(operation, SessionAsked(session_id=session.id))
        with pytest.raises(NotFound) as of_nobody:
            await theirs.call(operation, SessionAsked(session_id=missing))
        assert str(of_another_team.value).replace(str(session.id), str(missing)) == str(of_nobody.value)
    with pytest.raises(NotFound):
        await theirs.call(SESSIONS_OPEN, NewSession(agent_id=session.agent_id))


@pytest.mark.rule("U004-21")
async def test_an_administrator_closes_all_sessions_in_an_emergency(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    admin, operator = await open_repository(), await open_repository(OPERATOR)
    agent_id = await hosted(operator, fleet, Lifecycle.RUNNING)
    opened = [await operator.call(SESSIONS_OPEN, NewSession(agent_id=agent_id)) for _ in range(2)]
    closing = SessionsClosing(agent_id=agent_id, reason="data leak")

    with pytest.raises(Forbidden):
        await operator.call(SESSIONS_CLOSE_ALL, closing)
    first = await admin.call(SESSIONS_CLOSE_ALL, closing)
    second = await admin.call(SESSIONS_CLOSE_ALL, closing)

    read = await operator.call(SESSIONS_GET, SessionAsked(session_id=opened[0].id))
    assert (first.closed, second.closed) == (2, 0)
    assert (read.status, read.close_reason) == (SessionStatus.CLOSED, "data leak")
    assert audited(fleet, "session")[2:] == [("session.close_all", str(agent_id), {"sessions": 2})]
