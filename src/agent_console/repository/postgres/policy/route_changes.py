"""Changing routes: whoever edits a policy is alone in it, and each change is a version and an audit row."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, select, text, update

from agent_console.database.tables import a2a_route_versions, a2a_routes
from agent_console.domain.audit import AuditEvent, Facts
from agent_console.domain.errors import Conflict, Invalid
from agent_console.domain.ids import AgentId, RouteId, TeamId
from agent_console.domain.kinds import RoutePolicy
from agent_console.domain.policy_plans import Step
from agent_console.domain.routes import Route, RouteEdit, RouteRemoval
from agent_console.repository.operations.routes import (
    ROUTE_CREATED,
    ROUTE_DELETED,
    ROUTE_UPDATED,
    ROUTES_DELETE,
    ROUTES_PUT,
)
from agent_console.repository.port import Topic
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.policy.approval_endings import supersede_for_routes
from agent_console.repository.postgres.policy.routes import no_route, route_of
from agent_console.repository.postgres.registry.agent_words import pair_called
from agent_console.repository.postgres.work import Work, answers

Pair = tuple[AgentId, AgentId]

ALONE = text("""
    select now() as at
      from pg_advisory_xact_lock(hashtext('agent_console.a2a_routes'), hashtext(cast(:team_id as text)))
""")
# A pair that had a route before goes on counting, so that no old edit can pass for a new one. By
# a2a_route_versions_pair_uq, one entry for each pair.
LAST_VERSIONS = text("""
    select p.from_agent_id, p.to_agent_id, v.version
      from unnest(cast(:of as uuid[]), cast(:to as uuid[])) as p (from_agent_id, to_agent_id)
     cross join lateral (
           select version from a2a_route_versions
            where team_id = :team_id and from_agent_id = p.from_agent_id and to_agent_id = p.to_agent_id
            order by version desc
            limit 1) as v
""")
# By approvals_pair_idx.
WAITING = text("""
    select p.from_agent_id, p.to_agent_id
      from unnest(cast(:of as uuid[]), cast(:to as uuid[])) as p (from_agent_id, to_agent_id)
     where exists (
           select from approvals a
            where a.team_id = :team_id and a.from_agent_id = p.from_agent_id and a.to_agent_id = p.to_agent_id
              and a.state = 'pending')
""")


@dataclass(frozen=True)
class Standing:
    """A route as it stands."""

    id: RouteId
    from_agent_id: AgentId
    to_agent_id: AgentId
    policy: RoutePolicy
    notes: str | None
    version: int

    @property
    def pair(self) -> Pair:
        return self.from_agent_id, self.to_agent_id


@dataclass(frozen=True)
class Change:
    """What becomes of the route of one pair: no `old` one is made, with no `policy` it is removed."""

    pair: Pair
    old: Standing | None
    policy: RoutePolicy | None
    notes: str | None = None

    @property
    def step(self) -> Step:
        if self.old is None:
            return Step.CREATE
        return Step.DELETE if self.policy is None else Step.UPDATE


async def alone(work: Work) -> datetime:
    """Nobody else edits the policy of the team until this has ended; the answer is the transaction's time."""
    found: datetime = (await work.connection.execute(ALONE, {"team_id": str(work.caller.team_id)})).scalar_one()
    return found


async def standing(work: Work, *where: Any, lock: bool = True) -> list[Standing]:
    """With the lock no deletion of an agent takes a route away meanwhile. They are locked in the order of their
    ids, so that two deletions never wait for each other."""
    names = ("id", "from_agent_id", "to_agent_id", "policy", "notes", "version")
    wanted = select(*(a2a_routes.c[name] for name in names)).where(
        a2a_routes.c.team_id == work.caller.team_id, *where
    )
    rows = await work.connection.execute(wanted.order_by(a2a_routes.c.id).with_for_update() if lock else wanted)
    return [
        Standing(row.id, row.from_agent_id, row.to_agent_id, RoutePolicy(row.policy), row.notes, row.version)
        for row in rows
    ]


@answers(ROUTES_PUT)
async def put_route(work: Work, asked: RouteEdit) -> Route:
    at = await alone(work)
    of, to = await pair_called(work, asked.from_agent, asked.to_agent, lock=True)
    if of.id == to.id:
        raise Invalid(
            "An agent needs no route to itself.",
            hint="Name another agent.",
            details={"rule": "a2a_routes_no_self"},
        )
    same_pair = (a2a_routes.c.from_agent_id == of.id, a2a_routes.c.to_agent_id == to.id)
    old = next(iter(await standing(work, *same_pair)), None)
    await _require_base(work, old, asked.base_version or 0)
    kept = None if old is None else old.notes
    notes = kept if asked.notes is None else asked.notes or None
    if old is not None and (old.policy, old.notes) == (asked.policy, notes):
        return await route_of(work, old.id)
    (route_id,) = await write(work, [Change((of.id, to.id), old, asked.policy, notes)], at, asked.reason)
    return await route_of(work, route_id)


@answers(ROUTES_DELETE)
async def delete_route(work: Work, asked: RouteRemoval) -> Route:
    at = await alone(work)
    old = next(iter(await standing(work, a2a_routes.c.id == asked.route_id)), None)
    if old is None:
        raise no_route(asked.route_id)
    await _require_base(work, old, asked.base_version)
    last = await route_of(work, old.id)
    await write(work, [Change(old.pair, old, None)], at, asked.reason)
    return last


async def _require_base(work: Work, old: Standing | None, base: int) -> None:
    if base == (0 if old is None else old.version):
        return
    if old is None:
        raise Conflict(
            f"The route that you edited in version {base} is no longer there.",
            hint="Leave base_version out to make it anew.",
            details={"current": None},
        )
    current = await route_of(work, old.id)
    said = "made your edit without naming a version" if base == 0 else f"edited version {base}"
    raise Conflict(
        f"The route is at version {old.version} ({current.policy.value}); you {said}.",
        hint=f"Look at it, and edit version {old.version}.",
        details={"current": current.model_dump(mode="json")},
    )


async def write(
    work: Work, changes: Sequence[Change], at: datetime, reason: str | None, apply_id: str | None = None
) -> list[RouteId]:
    """Make all changes: routes, versions, audit rows, and what waited for a person because of an old policy."""
    numbered = await _numbered(work, changes)
    # The routes come after what takes longest: agents that ask wait for who changes theirs.
    await audit.append_all(work, [_event(one, reason, apply_id) for one in numbered], at)
    for one in numbered:
        work.announce(Topic.ROUTES, one.route_id)
    for step, statement in ((Step.CREATE, _create), (Step.UPDATE, _update), (Step.DELETE, _delete)):
        if concerned := [one for one in numbered if one.change.step is step]:
            await statement(work, concerned)
    if numbered:
        versions = [_version_row(work, one, reason) for one in numbered]
        await work.connection.execute(insert(a2a_route_versions), versions)
    await supersede_for_routes(
        work, await _waiting(work, [change.pair for change in changes if _needs_no_person_any_more(change)]), at
    )
    return [one.route_id for one in numbered]


@dataclass(frozen=True)
class _Numbered:
    change: Change
    route_id: RouteId
    version: int


async def _numbered(work: Work, changes: Sequence[Change]) -> list[_Numbered]:
    new = [change.pair for change in changes if change.old is None]
    last = await _last_versions(work, new) if new else {}
    return [
        _Numbered(change, RouteId.new(), last.get(change.pair, 0) + 1)
        if change.old is None
        else _Numbered(change, change.old.id, change.old.version + 1)
        for change in changes
    ]


async def _last_versions(work: Work, pairs: Sequence[Pair]) -> dict[Pair, int]:
    found = await work.connection.execute(LAST_VERSIONS, _of_pairs(work, pairs))
    return {(AgentId.of(row.from_agent_id), AgentId.of(row.to_agent_id)): row.version for row in found}


async def _waiting(work: Work, pairs: Sequence[Pair]) -> list[Pair]:
    """Those of them for which a request waits; nobody makes another one while their routes are ours."""
    found = await work.connection.execute(WAITING, _of_pairs(work, pairs)) if pairs else ()
    return [(AgentId.of(row.from_agent_id), AgentId.of(row.to_agent_id)) for row in found]


def _of_pairs(work: Work, pairs: Sequence[Pair]) -> dict[str, object]:
    return {"team_id": work.caller.team_id, "of": [of for of, _ in pairs], "to": [to for _, to in pairs]}


async def _create(work: Work, made: Sequence[_Numbered]) -> None:
    by = {"created_by_user_id": work.caller.user_id, "updated_by_user_id": work.caller.user_id}
    await work.connection.execute(
        insert(a2a_routes),
        [_row(work.caller.team_id, one) | {"id": one.route_id} | by for one in made],
    )


async def _update(work: Work, edited: Sequence[_Numbered]) -> None:
    statement = (
        update(a2a_routes)
        .where(a2a_routes.c.team_id == work.caller.team_id, a2a_routes.c.id == bindparam("route"))
        .values(
            policy=bindparam("new_policy"),
            notes=bindparam("new_notes"),
            version=bindparam("new_version"),
            updated_by_user_id=work.caller.user_id,
            updated_at=func.now(),
        )
    )
    await work.connection.execute(
        statement,
        [
            {"route": one.route_id, "new_policy": one.change.policy, "new_notes": one.change.notes}
            | {"new_version": one.version}
            for one in edited
        ],
    )


async def _delete(work: Work, removed: Sequence[_Numbered]) -> None:
    ids = [one.route_id for one in removed]
    gone = await work.connection.execute(
        delete(a2a_routes).where(a2a_routes.c.team_id == work.caller.team_id, a2a_routes.c.id.in_(ids))
    )
    if gone.rowcount != len(ids):
        raise Conflict("An agent was deleted meanwhile, and its routes with it.", hint="Try again.")


def _row(team_id: TeamId, one: _Numbered) -> dict[str, object]:
    of, to = one.change.pair
    pair = {"team_id": team_id, "from_agent_id": of, "to_agent_id": to, "version": one.version}
    return pair | {"policy": one.change.policy, "notes": one.change.notes}


def _version_row(work: Work, one: _Numbered, reason: str | None) -> dict[str, object]:
    row = _row(work.caller.team_id, one) | {"route_id": one.route_id, "removed": one.change.policy is None}
    if one.change.policy is None and one.change.old is not None:
        row |= {"policy": one.change.old.policy, "notes": one.change.old.notes}
    return row | {"reason": reason, "changed_by_user_id": work.caller.user_id}


def _event(one: _Numbered, reason: str | None, apply_id: str | None) -> AuditEvent:
    action = {Step.CREATE: ROUTE_CREATED, Step.UPDATE: ROUTE_UPDATED, Step.DELETE: ROUTE_DELETED}[one.change.step]
    of, to = one.change.pair
    facts: Facts = {"from_agent_id": str(of), "to_agent_id": str(to)}
    facts["version"] = one.version
    if one.change.old is not None:
        facts["old_policy"] = one.change.old.policy.value
    if one.change.policy is not None:
        facts["policy"] = one.change.policy.value
    if apply_id is not None:
        facts["apply_id"] = apply_id
    return AuditEvent(action, "route", str(one.route_id), metadata=facts, reason=reason)


def _needs_no_person_any_more(change: Change) -> bool:
    waits = RoutePolicy.REQUIRES_HUMAN_APPROVAL
    return change.old is not None and change.old.policy is waits and change.policy is not waits
