"""Routes, their versions and what is shown of them, through both repositories."""

import asyncio

import pytest

from agent_console.domain.agents import AgentAsked
from agent_console.domain.errors import Conflict, Forbidden, Invalid, NotFound
from agent_console.domain.ids import AgentId, ApprovalId, RouteId
from agent_console.domain.kinds import RoutePolicy
from agent_console.domain.permissions import Permission
from agent_console.domain.policy_plans import PolicyApplication
from agent_console.domain.routes import (
    MatrixQuery,
    Route,
    RouteAsked,
    RouteEdit,
    RouteHistoryQuery,
    RouteQuery,
    RouteRemoval,
)
from agent_console.repository.operations import AnyOperation
from agent_console.repository.operations.agents import AGENTS_DELETE
from agent_console.repository.operations.routes import (
    ROUTES,
    ROUTES_APPLY,
    ROUTES_DELETE,
    ROUTES_GET,
    ROUTES_HISTORY,
    ROUTES_LIST,
    ROUTES_MATRIX,
    ROUTES_PUT,
    ROUTES_REPLAY,
)
from agent_console.repository.port import Repository, Topic
from tests.repository.conftest import OPERATOR, VIEWER, OpenRepository
from tests.support.acting_agent import acting_agent
from tests.support.conversations import add_thread
from tests.support.fleet import Fleet

A, B, W = RoutePolicy.ALLOWED, RoutePolicy.BLOCKED, RoutePolicy.REQUIRES_HUMAN_APPROVAL


async def put(
    repository: Repository,
    of: str,
    to: str,
    policy: RoutePolicy = A,
    *,
    base: int = 0,
    notes: str | None = None,
    reason: str | None = None,
) -> Route:
    edit = RouteEdit(from_agent=of, to_agent=to, policy=policy, notes=notes, base_version=base, reason=reason)
    return await repository.call(ROUTES_PUT, edit)


async def applied(repository: Repository, routes: list[tuple[str, str, RoutePolicy]]) -> None:
    lines = "".join(f"- {{from: {of}, to: {to}, policy: {policy.value}}}\n" for of, to, policy in routes)
    await repository.call(ROUTES_APPLY, PolicyApplication(text=f"format: 1\nroutes:\n{lines}"))


def add_approval(fleet: Fleet, route: Route) -> ApprovalId:
    """A request of this pair that waits for a person."""
    approval_id = ApprovalId.new()
    fleet.execute(
        "insert into approvals (team_id, id, thread_id, from_agent_id, to_agent_id, route_id, route_version,"
        " trace_id, envelope, digest, expires_at) values (%s, %s, %s, %s, %s, %s, %s, gen_random_uuid(), '{}',"
        " encode(sha256('x'), 'hex'), now() + interval '1 day')",
        *(fleet.team_id(), approval_id, add_thread(fleet), route.from_agent_id, route.to_agent_id, route.id),
        route.version,
    )
    return approval_id


def audited(fleet: Fleet) -> list[tuple[object, ...]]:
    found = "select action, resource_id, actor_label, reason, metadata from audit_log"
    return fleet.execute(f"{found} where action like %s order by seq", "a2a.route.%")


@pytest.mark.rule("R002-67", "R002-71", "R002-72", "R002-112", "R002-132", "U002-9")
async def test_a_route_is_made_edited_and_removed_and_every_version_is_kept(
    repository: Repository, fleet: Fleet
) -> None:
    atlas, beacon = fleet.agent_id("atlas"), fleet.agent_id("beacon")

    made = await put(repository, "ATLAS", str(beacon), notes="nightly", reason="first")
    edited = await put(repository, "atlas", "beacon", W, base=1, reason="too much")
    same = await put(repository, "atlas", "beacon", W, base=2)
    gone = await repository.call(ROUTES_DELETE, RouteRemoval(route_id=made.id, base_version=2, reason="over"))
    again = await put(repository, "atlas", "beacon", B)

    assert (made.from_agent_id, made.from_agent, made.to_agent_id, made.to_agent) == (
        atlas, "atlas", beacon, "beacon",
    )  # fmt: skip
    assert (made.policy, made.notes, made.version, made.created_by) == (A, "nightly", 1, "Ana Costa")
    assert (edited.id, edited.policy, edited.notes, edited.version) == (made.id, W, "nightly", 2)
    assert edited.updated_at > made.updated_at
    assert (same, gone) == (edited, edited)
    assert (again.id != made.id, again.version, again.notes) == (True, 4, None)
    pair = RouteHistoryQuery(from_agent="atlas", to_agent="beacon", limit=3)
    newest = await repository.call(ROUTES_HISTORY, pair)
    oldest = await repository.call(ROUTES_HISTORY, pair.model_copy(update={"after": newest.next}))
    assert [
        (one.version, one.policy, one.removed, one.changed_by, one.reason, one.notes)
        for one in (*newest.items, *oldest.items)
    ] == [
        (4, B, False, "Ana Costa", None, None),
        (3, W, True, "Ana Costa", "over", "nightly"),
        (2, W, False, "Ana Costa", "too much", "nightly"),
        (1, A, False, "Ana Costa", "first", "nightly"),
    ]
    assert oldest.next is None
    ids = {"from_agent_id": str(atlas), "to_agent_id": str(beacon)}
    assert audited(fleet) == [
        ("a2a.route.create", str(made.id), "Ana Costa", "first", ids | {"policy": "allowed", "version": 1}),
        (
            "a2a.route.update", str(made.id), "Ana Costa", "too much",
            ids | {"old_policy": "allowed", "policy": W.value, "version": 2},
        ),
        ("a2a.route.delete", str(made.id), "Ana Costa", "over", ids | {"old_policy": W.value, "version": 3}),
        ("a2a.route.create", str(again.id), "Ana Costa", None, ids | {"policy": "blocked", "version": 4}),
    ]  # fmt: skip


async def test_an_edit_of_another_version_is_refused_with_the_current_one(
    repository: Repository, fleet: Fleet
) -> None:
    made = await put(repository, "atlas", "beacon")
    current = await put(repository, "atlas", "beacon", B, base=1)

    for base in (0, 1, 3):
        with pytest.raises(Conflict) as refused:
            await put(repository, "atlas", "beacon", W, base=base)
        assert refused.value.details["current"] == current.model_dump(mode="json")
    with pytest.raises(Conflict) as removal:
        await repository.call(ROUTES_DELETE, RouteRemoval(route_id=made.id, base_version=1))
    with pytest.raises(Conflict) as of_nothing:
        await put(repository, "beacon", "atlas", base=1)

    assert removal.value.details["current"] == current.model_dump(mode="json")
    assert of_nothing.value.details == {"current": None}
    assert await repository.call(ROUTES_GET, RouteAsked(route_id=made.id)) == current
    assert len(audited(fleet)) == 2


async def test_of_twenty_edits_of_one_version_one_wins(open_repository: OpenRepository, fleet: Fleet) -> None:
    first, second = await open_repository(), await open_repository()
    await put(first, "atlas", "beacon", notes="0")

    outcomes = await asyncio.gather(
        *(put(one, "atlas", "beacon", base=1, notes=str(n)) for n in range(1, 11) for one in (first, second)),
        return_exceptions=True,
    )

    won = [outcome for outcome in outcomes if isinstance(outcome, Route)]
    lost = [outcome for outcome in outcomes if isinstance(outcome, Conflict)]
    assert (len(won), len(lost)) == (1, 19), outcomes
    assert {Route.model_validate(one.details["current"]).notes for one in lost} == {won[0].notes}
    assert fleet.one("select count(*) from a2a_route_versions") == 2
    assert len(audited(fleet)) == 2


async def test_of_simultaneous_first_edits_of_a_pair_one_wins(open_repository: OpenRepository) -> None:
    first, second = await open_repository(), await open_repository()

    outcomes = await asyncio.gather(
        *(put(one, "atlas", "beacon") for one in (first, second) for _ in range(3)), return_exceptions=True
    )

    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Conflict"] * 5 + ["Route"]


@pytest.mark.rule("R002-73")
async def test_what_cannot_be_a_route_is_refused(repository: Repository, fleet: Fleet) -> None:
    fleet.execute("update agents set deleted_at = now() where name = 'ember'")

    with pytest.raises(Invalid):
        await put(repository, "atlas", str(fleet.agent_id("atlas")))
    for word in ("nobody", "ember", str(fleet.agent_id("ember")), str(AgentId.new())):
        with pytest.raises(NotFound, match="no agent"):
            await put(repository, "atlas", word)

    assert fleet.one("select count(*) from a2a_routes") == 0


@pytest.mark.rule("U002-2")
async def test_people_read_policy_administrators_edit_it_agents_do_neither(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    admin, operator, viewer = [await open_repository(email) for email in ("ana@example.com", OPERATOR, VIEWER)]
    route = await put(admin, "atlas", "beacon")
    edit = RouteEdit(from_agent="atlas", to_agent="beacon", policy=B, base_version=1)
    removal = RouteRemoval(route_id=route.id, base_version=1)

    for person in (operator, viewer):
        assert (await person.call(ROUTES_LIST, RouteQuery())).items == (route,)
        assert (await person.call(ROUTES_MATRIX, MatrixQuery())).cells != ()
    async with acting_agent(admin, fleet) as atlas:
        for nobody in (operator, viewer, atlas):
            with pytest.raises(Forbidden):
                await nobody.call(ROUTES_PUT, edit)
            with pytest.raises(Forbidden):
                await nobody.call(ROUTES_DELETE, removal)
        with pytest.raises(Forbidden):
            await atlas.call(ROUTES_LIST, RouteQuery())

    editing = {operation.name for operation in ROUTES if operation.permission is Permission.ADMINISTER}
    assert editing == {op.name for op in (ROUTES_PUT, ROUTES_DELETE, ROUTES_APPLY, ROUTES_REPLAY)}
    assert (await admin.call(ROUTES_GET, RouteAsked(route_id=route.id))) == route


async def test_the_list_is_paged_and_filtered(repository: Repository) -> None:
    one = await put(repository, "atlas", "beacon", A)
    two = await put(repository, "atlas", "ember", B)
    three = await put(repository, "beacon", "ember", B)

    async def listed(**filters: object) -> list[Route]:
        return list((await repository.call(ROUTES_LIST, RouteQuery.model_validate(filters))).items)

    first = await repository.call(ROUTES_LIST, RouteQuery(limit=2))
    rest = await repository.call(ROUTES_LIST, RouteQuery(limit=2, after=first.next))

    assert [*first.items, *rest.items] == [one, two, three]
    assert rest.next is None
    assert await listed(from_agent="Atlas") == [one, two]
    assert await listed(to_agent=str(three.to_agent_id)) == [two, three]
    assert await listed(policy="blocked") == [two, three]
    assert await listed(from_agent="atlas", to_agent="ember", policy="blocked") == [two]
    for wrong in ({"after": "x"}, {"after": "agt_01h455vb4pex5vsknk084sn02q"}):
        with pytest.raises(Invalid):
            await listed(**wrong)
    with pytest.raises(NotFound):
        await listed(from_agent="nobody")
    history = RouteHistoryQuery(from_agent="atlas", to_agent="ember", after="1x")
    with pytest.raises(Invalid):
        await repository.call(ROUTES_HISTORY, history)


async def test_the_matrix_has_agents_by_name_and_only_the_pairs_that_have_a_route(
    repository: Repository, fleet: Fleet
) -> None:
    fleet.execute("update agents set name = 'Zed' where name = 'atlas'")
    for of, to in (("beacon", "ember"), ("ember", "beacon"), ("Zed", "beacon")):
        await put(repository, of, to, W)
    beacon, ember = fleet.agent_id("beacon"), fleet.agent_id("ember")

    first = await repository.call(ROUTES_MATRIX, MatrixQuery(limit=4))
    rest = await repository.call(ROUTES_MATRIX, MatrixQuery(after=first.next))
    chosen = await repository.call(ROUTES_MATRIX, MatrixQuery(agents=(ember, fleet.agent_id("Zed"), beacon)))

    assert [agent.name for agent in first.agents] == ["beacon", "cartographer", "dispatch", "ember"]
    assert {(cell.from_agent_id, cell.to_agent_id) for cell in first.cells} == {(beacon, ember), (ember, beacon)}
    assert {(cell.policy, cell.version) for cell in first.cells} == {(W, 1)}
    assert [agent.name for agent in rest.agents][-2:] == ["juniper", "Zed"]
    assert [agent.status.value for agent in rest.agents][:3] == ["online", "error", "offline"]
    assert (rest.cells, rest.next) == ((), None)
    assert ([agent.name for agent in chosen.agents], len(chosen.cells)) == (["beacon", "ember", "Zed"], 3)


async def test_what_waited_for_a_person_waits_no_longer_when_the_policy_needs_none(
    repository: Repository, fleet: Fleet
) -> None:
    waiting = {
        to: add_approval(fleet, await put(repository, "atlas", to, W)) for to in ("beacon", "ember", "iris")
    }

    await put(repository, "atlas", "beacon", W, base=1, notes="still asks")
    await put(repository, "atlas", "ember", A, base=1)
    await applied(repository, [("atlas", "beacon", W)])

    states = {to: fleet.one("select state from approvals where id = %s", one) for to, one in waiting.items()}
    assert states == {"beacon": "pending", "ember": "superseded", "iris": "superseded"}
    assert fleet.one("select count(*) from audit_log where action = 'approval.supersede'") == 2


@pytest.mark.rule("R002-68", "R002-69")
async def test_a_deleted_agents_routes_go_and_their_history_stays(repository: Repository, fleet: Fleet) -> None:
    ember = fleet.agent_id("ember")
    route = await put(repository, "atlas", "ember")
    await put(repository, "ember", "beacon")
    await put(repository, "atlas", "beacon")

    await repository.call(AGENTS_DELETE, AgentAsked(agent_id=ember))
    history = RouteHistoryQuery(from_agent="atlas", to_agent=str(ember))
    kept = await repository.call(ROUTES_HISTORY, history)

    assert [one.to_agent for one in (await repository.call(ROUTES_LIST, RouteQuery())).items] == ["beacon"]
    assert [(one.version, one.removed, one.reason) for one in kept.items] == [
        (2, True, "agent deleted"), (1, False, None),
    ]  # fmt: skip
    with pytest.raises(NotFound):
        await repository.call(ROUTES_GET, RouteAsked(route_id=route.id))
    with pytest.raises(NotFound):
        await repository.call(ROUTES_HISTORY, history.model_copy(update={"to_agent": "ember"}))


async def test_an_edit_and_the_deletion_of_its_agent_leave_no_route_of_a_deleted_agent(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    editor, remover = await open_repository(), await open_repository()
    ember = fleet.agent_id("ember")

    await asyncio.gather(
        remover.call(AGENTS_DELETE, AgentAsked(agent_id=ember)),
        *(put(editor, "ember", name) for name in ("atlas", "beacon", "dispatch")),
        return_exceptions=True,
    )

    assert fleet.one("select deleted_at is not null from agents where id = %s", ember)
    assert fleet.one("select count(*) from a2a_routes") == 0


async def test_another_teams_route_answers_like_a_missing_one(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    ours = await put(await open_repository(), "atlas", "beacon")
    fleet.add_team("other")
    theirs, missing = await open_repository("admin@other.example", "other"), RouteId.new()
    questions: list[tuple[AnyOperation, dict[str, object]]] = [
        (ROUTES_GET, {}),
        (ROUTES_DELETE, {"base_version": 1}),
    ]

    for operation, values in questions:
        said = []
        for route_id in (ours.id, missing):
            with pytest.raises(NotFound) as refused:
                await theirs.call(operation, operation.request.model_validate({"route_id": route_id, **values}))
            said.append(str(refused.value).replace(str(route_id), ""))
        assert said[0] == said[1]
    with pytest.raises(NotFound):
        await put(theirs, str(ours.from_agent_id), str(ours.to_agent_id))
    assert (await theirs.call(ROUTES_LIST, RouteQuery())).items == ()
    named = MatrixQuery(agents=(ours.from_agent_id, ours.to_agent_id))
    assert (await theirs.call(ROUTES_MATRIX, named)).agents == ()


async def test_an_edit_is_heard_of(repository: Repository) -> None:
    changes = repository.changes()
    await anext(changes)

    route = await put(repository, "atlas", "beacon")

    async with asyncio.timeout(30):
        async for change in changes:
            if change.topic is Topic.ROUTES:
                break
    assert change.id == str(route.id)
    await changes.aclose()
