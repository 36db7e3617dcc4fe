"""How routes are edited: what may be left out, what is told to who edits an old one, and who is waited for."""

import asyncio

import psycopg
import pytest

from agent_console.domain.errors import Conflict, Invalid, NotFound
from agent_console.domain.kinds import RoutePolicy
from agent_console.domain.routes import RouteEdit, RouteHistoryQuery, RouteQuery, RouteRemoval
from agent_console.repository.operations.routes import ROUTES_DELETE, ROUTES_HISTORY, ROUTES_LIST, ROUTES_PUT
from agent_console.repository.port import Repository
from tests.repository.conftest import OpenRepository
from tests.repository.test_contract_policy_plans import applied, policy
from tests.repository.test_contract_routes import audited, put
from tests.support.fleet import Fleet
from tests.support.locks import somebody_waits_for_a_lock
from tests.support.no_index import no_index_helps

A, B = RoutePolicy.ALLOWED, RoutePolicy.BLOCKED


async def test_who_names_no_version_makes_a_route_and_edits_none(repository: Repository) -> None:
    edit = RouteEdit(from_agent="atlas", to_agent="beacon", policy=A)

    made = await repository.call(ROUTES_PUT, edit)
    with pytest.raises(Conflict, match=r"at version 1 \(allowed\); you made your edit without naming a version"):
        await repository.call(ROUTES_PUT, edit.model_copy(update={"policy": B}))
    await put(repository, "atlas", "beacon", B, base=1)
    with pytest.raises(Conflict, match=r"at version 2 \(blocked\); you edited version 1"):
        await put(repository, "atlas", "beacon", A, base=1)

    assert made.version == 1


async def test_an_agent_needs_no_route_to_itself(repository: Repository) -> None:
    with pytest.raises(Invalid, match="An agent needs no route to itself") as refused:
        await put(repository, "atlas", "Atlas")

    assert refused.value.details == {"rule": "a2a_routes_no_self"}


async def test_notes_are_kept_until_they_are_emptied(repository: Repository) -> None:
    await put(repository, "atlas", "beacon", notes="nightly")

    kept = await put(repository, "atlas", "beacon", B, base=1)
    emptied = await put(repository, "atlas", "beacon", B, base=2, notes="")

    assert (kept.notes, emptied.notes) == ("nightly", None)


async def test_the_history_of_a_pair_tells_of_no_other(repository: Repository) -> None:
    for of, to in (("ember", "beacon"), ("atlas", "ember"), ("beacon", "atlas"), ("atlas", "beacon")):
        await put(repository, of, to, notes=f"{of} to {to}")
    pair = RouteHistoryQuery(from_agent="atlas", to_agent="beacon", limit=1)

    only = await repository.call(ROUTES_HISTORY, pair)

    assert [version.notes for version in only.items] == ["atlas to beacon"]
    assert only.next is None


async def test_a_history_goes_on_from_a_version_and_from_nothing_else(repository: Repository) -> None:
    await put(repository, "atlas", "beacon")
    pair = RouteHistoryQuery(from_agent="atlas", to_agent="beacon")

    from_the_last = await repository.call(ROUTES_HISTORY, pair.model_copy(update={"after": "999999999"}))

    assert [version.version for version in from_the_last.items] == [1]
    for wrong in ("1x", "\N{ARABIC-INDIC DIGIT ONE}", "1000000000"):
        with pytest.raises(Invalid):
            await repository.call(ROUTES_HISTORY, pair.model_copy(update={"after": wrong}))


async def test_the_list_keeps_its_order_though_no_index_gives_it(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    no_index_helps(fleet)
    repository = await open_repository()
    others = ("iris", "beacon", "gantry", "ember", "dispatch", "cartographer")
    made = [await put(repository, "atlas", to) for to in others]

    for to in ("iris", "ember"):
        await put(repository, "atlas", to, B, base=1)

    assert [route.id for route in (await repository.call(ROUTES_LIST, RouteQuery())).items] == [
        route.id for route in made
    ]


async def test_a_file_leaves_the_routes_of_another_team_alone(repository: Repository, fleet: Fleet) -> None:
    theirs = await put(repository, "atlas", "beacon")
    neighbours = fleet.add_team("neighbours")
    fleet.execute("set session_replication_role = replica")
    fleet.execute("update a2a_routes set team_id = %s", neighbours)
    fleet.execute("set session_replication_role = origin")

    plan = await applied(repository, policy(("atlas", "ember", "blocked")))

    assert [(step.from_agent, step.to_agent) for step in plan.steps] == [("atlas", "ember")]
    assert fleet.execute("select id, version from a2a_routes where team_id = %s", neighbours) == [(theirs.id, 1)]


async def test_a_route_that_goes_with_its_agent_while_it_is_removed_is_gone(
    repository: Repository, fleet: Fleet
) -> None:
    route = await put(repository, "atlas", "ember")
    removal = RouteRemoval(route_id=route.id, base_version=1)

    async with await psycopg.AsyncConnection.connect(fleet.administration) as remover:
        await remover.execute("delete from a2a_routes")
        removing = asyncio.create_task(repository.call(ROUTES_DELETE, removal))
        await somebody_waits_for_a_lock(fleet, task=removing)
        await remover.commit()

    with pytest.raises(NotFound, match="no route"):
        await removing
    assert [row[0] for row in audited(fleet)] == ["a2a.route.create"]


async def test_a_file_is_not_applied_to_routes_that_go_with_their_agent_meanwhile(
    repository: Repository, fleet: Fleet
) -> None:
    await put(repository, "atlas", "beacon")
    await put(repository, "atlas", "ember")

    async with await psycopg.AsyncConnection.connect(fleet.administration) as remover:
        await remover.execute("delete from a2a_routes where to_agent_id = %s", (fleet.agent_id("ember"),))
        applying = asyncio.create_task(applied(repository, policy()))
        await somebody_waits_for_a_lock(fleet, task=applying)
        await remover.commit()

    with pytest.raises(Conflict, match="An agent was deleted meanwhile"):
        await applying
    assert fleet.one("select count(*) from a2a_routes") == 1
    assert [row[0] for row in audited(fleet)] == ["a2a.route.create"] * 2
