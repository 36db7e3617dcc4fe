"""Changing agents, and the two ways in which their work here ends, through both repositories."""

from uuid import UUID

import pytest
from pydantic import ValidationError

from agent_console.domain.agent_changes import (
    AgentConfiguration,
    AgentCountQuery,
    AgentDraining,
    AgentImport,
    AgentLimit,
    AgentRenaming,
    AgentRevocation,
)
from agent_console.domain.agents import AgentAsked, AgentQuery
from agent_console.domain.errors import Conflict, ConsoleError, Forbidden, Invalid, NotFound
from agent_console.domain.ids import (
    AgentId,
    CollectionId,
    ConnectorId,
    Id,
    JobId,
    MessageId,
    ParticipantId,
    RouteId,
    SessionId,
    ThreadId,
    UserId,
)
from agent_console.domain.jobs import JobAsked
from agent_console.domain.records import Request
from agent_console.domain.states import JobStatus, Presence
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.operations import AGENTS_GET, AGENTS_LIST, JOBS_GET, AnyOperation
from agent_console.repository.operations.agents import (
    AGENTS_CONFIGURE,
    AGENTS_COUNT,
    AGENTS_DELETE,
    AGENTS_DRAIN,
    AGENTS_IMPORT,
    AGENTS_LIMIT,
    AGENTS_RENAME,
    AGENTS_RESUME,
    AGENTS_REVOKE,
)
from agent_console.repository.port import Repository
from tests.repository.conftest import OPERATOR, VIEWER, OpenRepository
from tests.support.fleet import Fleet
from tests.support.serving import serving


def audited(fleet: Fleet) -> list[tuple[object, ...]]:
    return fleet.execute("select action, resource_id, metadata, reason from audit_log order by seq")


def add(fleet: Fleet, table: str, **values: object) -> None:
    columns = ", ".join(["team_id", *values])
    places = ", ".join(["%s"] * (len(values) + 1))
    fleet.execute(f"insert into {table} ({columns}) values ({places})", fleet.team_id(), *values.values())


def held_job(fleet: Fleet, holder: str) -> JobId:
    found = fleet.one("select id from jobs where claimed_by = %s order by id limit 1", holder)
    assert isinstance(found, UUID)
    return JobId.of(found)


def bind_collection(fleet: Fleet, name: str, agent: AgentId) -> CollectionId:
    owner, collection_id = fleet.user_id("ana@example.com"), CollectionId.new()
    add(
        fleet,
        "collections",
        id=collection_id,
        name=name,
        type="local",
        bound_agent_id=agent,
        created_by_user_id=owner,
    )
    return collection_id


@pytest.mark.rule("R004-64", "R004-63")
async def test_the_count_is_the_length_of_the_list(repository: Repository, fleet: Fleet) -> None:
    listed = await repository.call(AGENTS_LIST, AgentQuery())

    everyone = await repository.call(AGENTS_COUNT, AgentCountQuery())
    ana = await repository.call(AGENTS_COUNT, AgentCountQuery(owner=fleet.user_id("ana@example.com")))
    ole = await repository.call(AGENTS_COUNT, AgentCountQuery(owner=fleet.user_id("ole@example.com")))

    assert everyone.count == ana.count == len(listed.items)
    assert (ole.count, everyone.capped) == (0, False)


@pytest.mark.rule("R000-129", "R000-28", "R004-27")
async def test_a_renamed_agent_takes_its_system_user_along(repository: Repository, fleet: Fleet) -> None:
    atlas = await repository.call(AGENTS_GET, AgentAsked(agent_id=fleet.agent_id("atlas")))

    renamed = await repository.call(AGENTS_RENAME, AgentRenaming(agent_id=atlas.id, name="[b]tlas\u202e"))
    again = await repository.call(AGENTS_RENAME, AgentRenaming(agent_id=atlas.id, name="[b]tlas\u202e"))

    assert renamed == again
    assert renamed.name == "[b]tlas\u202e"
    assert renamed.updated_at != atlas.updated_at
    user = "select full_name from users where id = %s"
    assert fleet.one(user, atlas.system_user_id) == "Agent: [b]tlas\u202e"
    assert audited(fleet) == [("agent.rename", str(atlas.id), {}, None)]


@pytest.mark.rule("R002-94")
async def test_a_name_is_taken_whatever_its_case(repository: Repository, fleet: Fleet) -> None:
    atlas = fleet.agent_id("atlas")

    with pytest.raises(Conflict):
        await repository.call(AGENTS_RENAME, AgentRenaming(agent_id=atlas, name="BEACON"))

    assert (await repository.call(AGENTS_GET, AgentAsked(agent_id=atlas))).name == "atlas"
    assert audited(fleet) == []


@pytest.mark.rule("R000-45", "U000-45", "R000-49", "R002-13")
@pytest.mark.parametrize(
    ("request_type", "field", "value"),
    [
        (AgentRenaming, "name", ""),
        (AgentRenaming, "name", " \t"),
        (AgentRenaming, "name", "x" * 256),
        (AgentLimit, "max_concurrent_jobs", 0),
        (AgentLimit, "max_concurrent_jobs", 1001),
        (AgentDraining, "reason", " "),
        (AgentRevocation, "reason", ""),
        (AgentConfiguration, "connector_ref", "https://u:p@h"),
        (AgentConfiguration, "connector_ref", "queue?token=abc123"),
        (AgentConfiguration, "profile", ["a list"]),
    ],
)
def test_what_is_out_of_bounds_is_named(request_type: type[Request], field: str, value: object) -> None:
    with pytest.raises(ValidationError) as refused:
        request_type.model_validate({"agent_id": AgentId.new(), field: value})

    assert [error["loc"] for error in refused.value.errors()] == [(field,)]


@pytest.mark.rule("R002-13")
async def test_the_server_refuses_a_secret_by_the_name_of_its_field(fleet: Fleet) -> None:
    unchecked = AgentConfiguration.model_construct(
        {"agent_id", "connector_ref"}, agent_id=fleet.agent_id("atlas"), connector_ref="https://u:p@h"
    )

    async with serving(fleet.working) as url, HttpRepository(url, fleet.token("ana@example.com")) as repository:
        with pytest.raises(Invalid, match="connector_ref"):
            await repository.call(AGENTS_CONFIGURE, unchecked)

    assert fleet.one("select connector_ref from agents where name = 'atlas'") == "pull"


@pytest.mark.rule("R002-9", "R002-10")
async def test_routing_hint_and_description_change_alone_or_together(repository: Repository, fleet: Fleet) -> None:
    atlas = fleet.agent_id("atlas")

    hinted = await repository.call(AGENTS_CONFIGURE, AgentConfiguration(agent_id=atlas, connector_ref="mqtt:eu"))
    both = await repository.call(
        AGENTS_CONFIGURE, AgentConfiguration(agent_id=atlas, profile={"about": ["maps", 1]})
    )
    same = await repository.call(AGENTS_CONFIGURE, AgentConfiguration(agent_id=atlas, connector_ref="mqtt:eu"))

    assert (hinted.connector_ref, hinted.profile) == ("mqtt:eu", {})
    assert (both.connector_ref, both.profile) == ("mqtt:eu", {"about": ["maps", 1]})
    assert same == both
    facts = [row[2] for row in audited(fleet)]
    assert facts == [{"connector_ref": True, "profile": False}, {"connector_ref": False, "profile": True}]


@pytest.mark.rule("U000-45")
async def test_the_limit_of_jobs_is_set_once(repository: Repository, fleet: Fleet) -> None:
    atlas = fleet.agent_id("atlas")

    limited = await repository.call(AGENTS_LIMIT, AgentLimit(agent_id=atlas, max_concurrent_jobs=1000))
    await repository.call(AGENTS_LIMIT, AgentLimit(agent_id=atlas, max_concurrent_jobs=1000))

    assert limited.max_concurrent_jobs == 1000
    assert audited(fleet) == [("agent.limit", str(atlas), {"max_concurrent_jobs": 1000}, None)]


async def test_a_drained_agent_finishes_its_jobs_or_gives_them_back_at_no_cost(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    operator = await open_repository(OPERATOR)
    atlas, job_id = fleet.agent_id("atlas"), held_job(fleet, "atlas")

    drained = await operator.call(AGENTS_DRAIN, AgentDraining(agent_id=atlas, reason="disk swap"))
    kept = await operator.call(JOBS_GET, JobAsked(job_id=job_id))
    await operator.call(AGENTS_DRAIN, AgentDraining(agent_id=atlas, reason="disk swap", release=True))
    released = await operator.call(JOBS_GET, JobAsked(job_id=job_id))
    resumed = await operator.call(AGENTS_RESUME, AgentAsked(agent_id=atlas))
    await operator.call(AGENTS_RESUME, AgentAsked(agent_id=atlas))

    assert (drained.drain_reason, drained.current_jobs, kept.status) == ("disk swap", 1, JobStatus.RUNNING)
    assert (released.status, released.attempt, released.next_attempt_at) == (JobStatus.QUEUED, 2, None)
    assert released.started_at == kept.started_at
    assert (resumed.drained_at, resumed.drain_reason) == (None, None)
    assert [(row[0], row[2]) for row in audited(fleet)] == [
        ("agent.drain", {"jobs": 0}), ("agent.drain", {"jobs": 1}), ("agent.resume", {}),
    ]  # fmt: skip


@pytest.mark.rule("R000-32", "R000-49", "U000-27")
async def test_a_revoked_agent_loses_sessions_and_jobs_and_stays_in_the_pool(
    repository: Repository, fleet: Fleet
) -> None:
    atlas, job_id = fleet.agent_id("atlas"), held_job(fleet, "atlas")
    add(fleet, "sessions", id=SessionId.new(), agent_id=atlas, user_id=fleet.user_id("ana@example.com"))

    revoked = await repository.call(AGENTS_REVOKE, AgentRevocation(agent_id=atlas, reason="stolen laptop"))
    again = await repository.call(AGENTS_REVOKE, AgentRevocation(agent_id=atlas, reason="another reason"))

    job = await repository.call(JOBS_GET, JobAsked(job_id=job_id))
    assert (revoked.status, revoked.revocation_reason) == (Presence.REVOKED, "stolen laptop")
    assert (revoked.open_sessions, revoked.current_jobs) == (0, 0)
    assert again == revoked
    assert (job.status, job.attempt, job.agent_id) == (JobStatus.QUEUED, 2, None)
    facts = {"jobs": 1, "waiting": 3, "sessions": 1}
    assert audited(fleet) == [("agent.revoke", str(atlas), facts, "stolen laptop")]


@pytest.mark.rule("R000-50", "R000-121", "R000-43")
async def test_an_agent_with_bound_collections_is_not_deleted(repository: Repository, fleet: Fleet) -> None:
    atlas = fleet.agent_id("atlas")
    bound = {bind_collection(fleet, name, atlas) for name in ("one", "two")}

    with pytest.raises(Conflict) as refused:
        await repository.call(AGENTS_DELETE, AgentAsked(agent_id=atlas))

    assert refused.value.details == {"bound_collections": 2}
    assert "2 collections" in refused.value.message
    assert set((await repository.call(AGENTS_GET, AgentAsked(agent_id=atlas))).bound_collections) == bound
    assert audited(fleet) == []


@pytest.mark.rule("R004-45", "R004-67", "R004-68", "R000-130", "R002-26", "R002-68", "R002-69", "R000-20")
async def test_a_deleted_agent_is_gone_with_all_that_let_it_act(repository: Repository, fleet: Fleet) -> None:
    atlas, beacon, ana = fleet.agent_id("atlas"), fleet.agent_id("beacon"), fleet.user_id("ana@example.com")
    thread, job_id = ThreadId.new(), held_job(fleet, "atlas")
    key = fleet.one("select api_key_hash from agents where id = %s", atlas)
    add(fleet, "threads", id=thread, created_by_user_id=ana)
    add(
        fleet,
        "thread_participants",
        id=ParticipantId.new(),
        thread_id=thread,
        participant_type="agent",
        agent_id=atlas,
    )
    for pair in ((atlas, beacon), (beacon, atlas)):
        add(fleet, "a2a_routes", id=RouteId.new(), from_agent_id=pair[0], to_agent_id=pair[1], policy="allowed")
    add(fleet, "sessions", id=SessionId.new(), agent_id=atlas, user_id=ana)
    connector = ConnectorId.new()
    add(fleet, "connectors", id=connector, name="nas", type="smb", created_by_user_id=ana)
    add(fleet, "agent_connectors", agent_id=atlas, connector_id=connector)
    assert (await repository.call(AGENTS_GET, AgentAsked(agent_id=atlas))).connectors == (connector,)

    deleted = await repository.call(AGENTS_DELETE, AgentAsked(agent_id=atlas))

    with pytest.raises(NotFound):
        await repository.call(AGENTS_DELETE, AgentAsked(agent_id=atlas))
    assert deleted.name == "atlas"
    assert "atlas" not in [agent.name for agent in (await repository.call(AGENTS_LIST, AgentQuery())).items]
    assert (await repository.call(JOBS_GET, JobAsked(job_id=job_id))).status is JobStatus.QUEUED
    for gone in ("a2a_routes", "thread_participants", "agent_connectors", "sessions where status = 1"):
        assert fleet.one(f"select count(*) from {gone}") == 0
    ended = fleet.execute("select version, removed, reason from a2a_route_versions")
    assert ended == [(2, True, "agent deleted")] * 2
    assert fleet.one("select api_key_hash from agents where id = %s", atlas) != key
    assert fleet.one("select full_name from users where id = %s", deleted.system_user_id) == "Agent: atlas"
    assert fleet.one("select count(*) from agent_runtime where agent_id = %s", atlas) == 0
    assert fleet.one("select sum(online + error + offline + unknown) from pool_counts") == 8, "without juniper"
    facts = {"jobs": 1, "waiting": 3, "routes": 2, "sessions": 1, "memberships": 1}
    assert audited(fleet)[-1] == ("agent.deleted", str(atlas), facts, None)


@pytest.mark.rule("R002-40", "R000-44")
async def test_history_keeps_the_name_of_a_deleted_agent(repository: Repository, fleet: Fleet) -> None:
    beacon = fleet.agent_id("beacon")
    add(fleet, "threads", id=(thread := ThreadId.new()), created_by_user_id=fleet.user_id("ana@example.com"))
    words = {"author_type": "agent", "author_agent_id": beacon, "content": "done"}
    add(fleet, "messages", id=MessageId.new(), thread_id=thread, **words)
    done = fleet.one("select id from jobs where agent_id = %s and status = 'succeeded' limit 1", beacon)
    assert isinstance(done, UUID)

    await repository.call(AGENTS_DELETE, AgentAsked(agent_id=beacon))

    assert (await repository.call(JOBS_GET, JobAsked(job_id=JobId.of(done)))).agent_name == "beacon"
    author = "select a.name from messages m join agents a on a.team_id = m.team_id and a.id = m.author_agent_id"
    assert fleet.one(author) == "beacon"


async def test_the_name_of_a_deleted_agent_is_free_again(repository: Repository, fleet: Fleet) -> None:
    beacon, atlas = fleet.agent_id("beacon"), fleet.agent_id("atlas")
    await repository.call(AGENTS_DELETE, AgentAsked(agent_id=beacon))

    renamed = await repository.call(AGENTS_RENAME, AgentRenaming(agent_id=atlas, name="Beacon"))

    assert renamed.name == "Beacon"


@pytest.mark.rule("R004-43", "R004-60", "R000-16", "R002-7", "R004-21", "R004-22", "R004-23")
async def test_an_imported_agent_is_unknown_until_it_is_seen_and_put_twice_is_one(
    repository: Repository, fleet: Fleet
) -> None:
    given = AgentImport(
        agent_id=AgentId.new(),
        name="nimbus",
        owner=fleet.user_id(OPERATOR),
        hostname="edge-9",
        capabilities=("gpu",),
        profile={"from": "old"},
    )

    made = await repository.call(AGENTS_IMPORT, given)
    same = await repository.call(AGENTS_IMPORT, given)
    changed = await repository.call(
        AGENTS_IMPORT, given.model_copy(update={"name": "nimbus-2", "capabilities": ()})
    )

    assert made == same
    assert (made.id, made.name, made.owner, made.status) == (
        given.agent_id,
        "nimbus",
        "Ole Berg",
        Presence.UNKNOWN,
    )
    assert (made.hostname, made.capabilities, made.profile) == ("edge-9", ("gpu",), {"from": "old"})
    assert (changed.name, changed.capabilities, changed.system_user_id) == ("nimbus-2", (), made.system_user_id)
    assert fleet.one("select full_name from users where id = %s", made.system_user_id) == "Agent: nimbus-2"
    assert [row[2] for row in audited(fleet)] == [
        {"replaced": replaced, "owner_user_id": str(given.owner)} for replaced in (False, True)
    ]


async def test_an_import_for_nobody_or_of_a_deleted_agent_is_refused(repository: Repository, fleet: Fleet) -> None:
    beacon = fleet.agent_id("beacon")
    await repository.call(AGENTS_DELETE, AgentAsked(agent_id=beacon))

    with pytest.raises(NotFound, match="person"):
        await repository.call(AGENTS_IMPORT, AgentImport(agent_id=AgentId.new(), name="x", owner=UserId.new()))
    with pytest.raises(Conflict, match="deleted"):
        await repository.call(AGENTS_IMPORT, AgentImport(agent_id=beacon, name="x"))


CHANGES: list[tuple[AnyOperation, type[Request], dict[str, object]]] = [
    (AGENTS_RENAME, AgentRenaming, {"name": "x"}),
    (AGENTS_DRAIN, AgentDraining, {"reason": "x"}),
    (AGENTS_RESUME, AgentAsked, {}),
    (AGENTS_LIMIT, AgentLimit, {"max_concurrent_jobs": 2}),
    (AGENTS_CONFIGURE, AgentConfiguration, {"connector_ref": "x"}),
    (AGENTS_REVOKE, AgentRevocation, {"reason": "x"}),
    (AGENTS_DELETE, AgentAsked, {}),
]


async def refusal(repository: Repository, operation: AnyOperation, request: Request) -> ConsoleError:
    with pytest.raises(ConsoleError) as refused:
        await repository.call(operation, request)
    return refused.value


@pytest.mark.rule("R004-66", "R004-68", "R004-63")
async def test_another_teams_agent_answers_like_a_missing_one(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    fleet.add_team("other")
    other = await open_repository("admin@other.example", "other")
    before = fleet.one("select jsonb_agg(to_jsonb(a) order by id) from agents a")

    for operation, request_type, words in CHANGES:
        ids: tuple[Id, Id] = (fleet.agent_id("atlas"), AgentId.new())
        answers = [
            (await refusal(other, operation, request_type.model_validate({"agent_id": agent_id} | words))).body()
            for agent_id in ids
        ]
        assert str(answers[0]).replace(str(ids[0]), str(ids[1])) == str(answers[1])
        assert answers[0]["code"] == NotFound.code

    assert fleet.one("select jsonb_agg(to_jsonb(a) order by id) from agents a") == before


async def test_each_change_needs_its_right(open_repository: OpenRepository, fleet: Fleet) -> None:
    operator, viewer = await open_repository(OPERATOR), await open_repository(VIEWER)
    atlas = fleet.agent_id("atlas")
    by_operators = {AGENTS_DRAIN.name, AGENTS_RESUME.name}

    for operation, request_type, words in CHANGES:
        request = request_type.model_validate({"agent_id": atlas} | words)
        assert isinstance(await refusal(viewer, operation, request), Forbidden)
        if operation.name not in by_operators:
            assert isinstance(await refusal(operator, operation, request), Forbidden)

    assert audited(fleet) == []
