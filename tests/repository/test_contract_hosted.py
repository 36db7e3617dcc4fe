"""Hosted agents and their lifecycle, through both repositories."""

import asyncio

import pytest
from pydantic import ValidationError

from agent_console.domain.agents import Agent, AgentAsked, AgentQuery
from agent_console.domain.errors import Conflict, Forbidden, NotFound
from agent_console.domain.hosted import HostedAgent, LifecycleMove, NewHostedAgent
from agent_console.domain.ids import AgentId
from agent_console.domain.secrets import Secret
from agent_console.domain.sessions import NewSession, SessionAsked
from agent_console.domain.states import LIFECYCLE_MOVES, Lifecycle, Presence, SessionStatus
from agent_console.repository.operations import AGENTS_GET, AGENTS_LIST
from agent_console.repository.operations.agents import AGENTS_DELETE, AGENTS_HOST, AGENTS_MOVE
from agent_console.repository.operations.sessions import SESSIONS_GET, SESSIONS_OPEN
from agent_console.repository.port import Repository
from tests.repository.conftest import OPERATOR, OpenRepository
from tests.support.fleet import Fleet


async def hosted(repository: Repository, name: str = "nova") -> Agent:
    made: HostedAgent = await repository.call(AGENTS_HOST, NewHostedAgent(name=name))
    return made.agent


async def move(repository: Repository, agent_id: AgentId, to: Lifecycle, reason: str | None = None) -> Agent:
    return await repository.call(AGENTS_MOVE, LifecycleMove(agent_id=agent_id, to=to, reason=reason))


def put(fleet: Fleet, agent_id: AgentId, lifecycle: Lifecycle) -> None:
    fleet.execute(
        "update agent_runtime set lifecycle = %s, error_message = null where agent_id = %s",
        int(lifecycle),
        agent_id,
    )


@pytest.mark.rule("R004-1", "R004-21", "R004-22", "R004-25", "R004-29", "R004-30", "R004-31", "U004-4")
async def test_a_hosted_agent_begins_in_provisioning_and_belongs_to_who_made_it(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    operator = await open_repository(OPERATOR)

    made = await operator.call(AGENTS_HOST, NewHostedAgent(name="nova"))

    agent = made.agent
    assert (agent.hosted, agent.lifecycle, agent.status) == (True, Lifecycle.PROVISIONING, Presence.OFFLINE)
    assert (agent.cpu_millicores, agent.memory_mb, agent.runtime_version) == (500, 512, "latest")
    assert agent.owner_user_id == fleet.user_id(OPERATOR)
    assert fleet.one("select full_name from users where id = %s", agent.system_user_id) == "Agent: nova"
    key = Secret.parse(made.secret)
    assert (key.owner, key.shown_prefix) == (agent.id, agent.api_key_prefix)
    assert fleet.one("select api_key_hash from agents where id = %s", agent.id) == key.hash
    assert made.secret not in repr(made)
    assert fleet.execute("select action, metadata from audit_log") == [
        ("agent.created", {"memory_mb": 512, "cpu_millicores": 500})
    ]


@pytest.mark.rule("R004-29", "R004-30", "R004-31", "U004-4")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cpu_millicores", 99), ("cpu_millicores", 4001), ("memory_mb", 127), ("memory_mb", 8193),
        ("runtime_version", " "), ("runtime_version", "x" * 101), ("name", ""),
    ],
)  # fmt: skip
def test_a_spec_out_of_bounds_is_named(field: str, value: object) -> None:
    with pytest.raises(ValidationError) as refused:
        NewHostedAgent.model_validate({"name": "nova", field: value})

    assert [error["loc"] for error in refused.value.errors()] == [(field,)]


@pytest.mark.rule("R004-29", "R004-30")
async def test_a_spec_at_its_bounds_is_kept(repository: Repository) -> None:
    small = NewHostedAgent(name="small", cpu_millicores=100, memory_mb=128, runtime_version="1.2")
    large = NewHostedAgent(name="large", cpu_millicores=4000, memory_mb=8192)

    made = [(await repository.call(AGENTS_HOST, spec)).agent for spec in (small, large)]

    assert [(agent.cpu_millicores, agent.memory_mb) for agent in made] == [(100, 128), (4000, 8192)]
    assert made[0].runtime_version == "1.2"


@pytest.mark.rule("R004-47", "U004-2")
async def test_of_many_at_once_only_ten_are_made(open_repository: OpenRepository, fleet: Fleet) -> None:
    operator, admin = await open_repository(OPERATOR), await open_repository()

    answers = await asyncio.gather(
        *(hosted(operator, f"nova-{number}") for number in range(13)), return_exceptions=True
    )

    refused = [answer for answer in answers if isinstance(answer, BaseException)]
    assert [type(error) for error in refused] == [Conflict] * 3
    assert isinstance(refused[0], Conflict)
    assert refused[0].details == {"quota": 10}
    assert fleet.one("select count(*) from agents where hosted") == 10
    assert (await hosted(admin, "nova-ana")).owner == "Ana Costa"


@pytest.mark.rule("R004-47", "U004-5")
async def test_a_deleted_agent_makes_room(repository: Repository, fleet: Fleet) -> None:
    agents = [await hosted(repository, f"nova-{number}") for number in range(10)]
    await move(repository, agents[0].id, Lifecycle.ERROR)

    await repository.call(AGENTS_DELETE, AgentAsked(agent_id=agents[0].id))

    assert (await hosted(repository, "nova-10")).name == "nova-10"


@pytest.mark.rule("U004-1", "R004-4", "R004-24", "R004-48")
async def test_the_lifecycle_moves_only_as_its_table_says(repository: Repository, fleet: Fleet) -> None:
    agent = await hosted(repository)
    allowed: set[tuple[Lifecycle, Lifecycle]] = set()

    for now in Lifecycle:
        for to in Lifecycle:
            put(fleet, agent.id, now)
            try:
                moved = await move(repository, agent.id, to)
            except Conflict as refused:
                assert refused.details == {"state": now.name.lower(), "wanted": to.name.lower()}
                continue
            assert moved.lifecycle is to
            allowed.add((now, to))

    assert allowed == {(now, to) for now, onward in LIFECYCLE_MOVES.items() for to in onward}
    assert fleet.one("select count(*) from audit_log where metadata ? 'from'") == len(allowed)


@pytest.mark.rule("R004-65", "R004-60", "R004-57")
async def test_a_move_is_stamped_and_leaves_one_state(repository: Repository, fleet: Fleet) -> None:
    agent = await hosted(repository)

    answers = await asyncio.gather(
        *(move(repository, agent.id, Lifecycle.RUNNING) for _ in range(4)), return_exceptions=True
    )

    moved = [answer for answer in answers if isinstance(answer, Agent)]
    assert len(moved) == 1
    assert moved[0].updated_at > agent.updated_at
    assert moved[0].lifecycle_changed_at == moved[0].updated_at
    assert fleet.execute("select lifecycle from agent_runtime where lifecycle is not null") == [(2,)]


@pytest.mark.rule("U004-14", "R000-17")
async def test_the_text_of_an_error_is_kept_while_it_lasts(repository: Repository) -> None:
    agent = await hosted(repository)

    failed = await move(repository, agent.id, Lifecycle.ERROR, "image not found, token=abc")
    listed = (await repository.call(AGENTS_LIST, AgentQuery())).items[0]
    left = await move(repository, agent.id, Lifecycle.PROVISIONING)

    assert failed.error_message == listed.error_message == "image not found, token=«redacted»"
    assert left.error_message is None


@pytest.mark.rule("U004-6")
async def test_hibernating_closes_open_sessions_first(repository: Repository) -> None:
    agent = await hosted(repository)
    await move(repository, agent.id, Lifecycle.RUNNING)
    session = await repository.call(SESSIONS_OPEN, NewSession(agent_id=agent.id))

    asleep = await move(repository, agent.id, Lifecycle.HIBERNATING)

    closed = await repository.call(SESSIONS_GET, SessionAsked(session_id=session.id))
    assert (asleep.lifecycle, asleep.open_sessions) == (Lifecycle.HIBERNATING, 0)
    assert (closed.status, closed.close_reason) == (SessionStatus.CLOSED, "the agent is hibernating")


@pytest.mark.rule("U004-5")
async def test_a_hosted_agent_is_deleted_only_when_stopped_or_in_error(
    repository: Repository, fleet: Fleet
) -> None:
    deletable: set[Lifecycle] = set()

    for state in Lifecycle:
        agent = await hosted(repository, f"nova-{state.name}")
        put(fleet, agent.id, state)
        try:
            await repository.call(AGENTS_DELETE, AgentAsked(agent_id=agent.id))
        except Conflict:
            assert (await repository.call(AGENTS_GET, AgentAsked(agent_id=agent.id))).lifecycle is state
        else:
            deletable.add(state)

    assert deletable == {Lifecycle.STOPPED, Lifecycle.ERROR}


@pytest.mark.rule("R004-66")
async def test_only_a_hosted_agent_of_ones_own_is_moved(open_repository: OpenRepository, fleet: Fleet) -> None:
    admin, operator = await open_repository(), await open_repository(OPERATOR)
    of_ana, of_ole = await hosted(admin, "hers"), await hosted(operator, "his")

    with pytest.raises(NotFound):
        await move(operator, AgentId.new(), Lifecycle.RUNNING)
    with pytest.raises(Conflict, match="not hosted"):
        await move(admin, fleet.agent_id("atlas"), Lifecycle.RUNNING)
    with pytest.raises(Forbidden):
        await move(operator, of_ana.id, Lifecycle.RUNNING)

    assert (await move(admin, of_ole.id, Lifecycle.RUNNING)).lifecycle is Lifecycle.RUNNING
    assert (await move(operator, of_ole.id, Lifecycle.IDLE)).lifecycle is Lifecycle.IDLE


@pytest.mark.rule("R004-24")
@pytest.mark.parametrize("to", [0, 8, "asleep"])
def test_a_state_that_does_not_exist_is_refused(to: object) -> None:
    with pytest.raises(ValidationError):
        LifecycleMove.model_validate({"agent_id": AgentId.new(), "to": to})


@pytest.mark.parametrize("to", [4, "4", "hibernating", "HIBERNATING"])
def test_a_state_can_be_told_by_number_or_name(to: object) -> None:
    assert LifecycleMove.model_validate({"agent_id": AgentId.new(), "to": to}).to is Lifecycle.HIBERNATING
