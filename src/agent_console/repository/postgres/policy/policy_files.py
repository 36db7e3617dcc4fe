"""The policy as one file: written out whole, planned against what stands, applied in one transaction."""

import asyncio
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from agent_console.database.tables import agents
from agent_console.domain.audit import AuditEvent, Facts
from agent_console.domain.errors import Conflict, Invalid
from agent_console.domain.ids import AgentId, RouteId
from agent_console.domain.policy_plans import (
    APPLY_SECONDS,
    CHANGES_MOST,
    PlannedStep,
    PolicyApplication,
    PolicyPlan,
    PolicyText,
    Step,
)
from agent_console.domain.records import Nothing
from agent_console.repository.operations.routes import POLICY_APPLIED, ROUTES_APPLY, ROUTES_EXPORT
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.database_time import transaction_time
from agent_console.repository.postgres.own_pace import answers_at_own_pace
from agent_console.repository.postgres.policy.route_changes import Change, Pair, Standing, alone, standing, write
from agent_console.repository.postgres.registry.agent_words import agents_called
from agent_console.repository.postgres.work import Work, answers

if TYPE_CHECKING:
    from agent_console.domain.policy_files import FileRoute
    from agent_console.repository.postgres.repository import PostgresRepository


@dataclass(frozen=True)
class Planned:
    """What a file changes, and the names of everyone it concerns."""

    changes: tuple[Change, ...]
    unchanged: int
    digest: str
    names: Mapping[AgentId, str]

    def count(self, step: Step) -> int:
        return sum(change.step is step for change in self.changes)


@answers(ROUTES_EXPORT)
async def export_policy(work: Work, request: Nothing) -> PolicyText:
    # Reading and writing YAML is imported by those who do.
    from agent_console.domain.policy_files import FileRoute, agent_in_file, written_policy

    current = await standing(work, lock=False)
    names = await _names(work, (agent_id for route in current for agent_id in route.pair))
    listed = [
        FileRoute(
            from_agent=agent_in_file(names[route.from_agent_id], route.from_agent_id),
            to_agent=agent_in_file(names[route.to_agent_id], route.to_agent_id),
            policy=route.policy,
            notes=route.notes,
        )
        for route in current
    ]
    text = await asyncio.to_thread(written_policy, listed)
    return PolicyText(text=text, routes=len(listed), digest=digest_of(current))


@answers_at_own_pace(ROUTES_APPLY)
async def apply_in_its_time(repository: "PostgresRepository", asked: PolicyApplication) -> PolicyPlan:
    return await repository.in_one_transaction(ROUTES_APPLY, apply_policy, asked, seconds=APPLY_SECONDS)


async def apply_policy(work: Work, asked: PolicyApplication) -> PolicyPlan:
    from agent_console.domain.policy_files import read_policy

    # Read before anything is locked: a large file takes a while.
    routes = await asyncio.to_thread(read_policy, asked.text)
    at = await transaction_time(work.connection) if asked.dry_run else await alone(work)
    planned = await _planned(work, asked, routes)
    if asked.expect_digest not in (None, planned.digest):
        raise Conflict(
            "The policy was changed after the plan was made.",
            hint="Nothing was changed. Look at a new plan: routes apply --dry-run",
            details={"digest": planned.digest},
        )
    if len(planned.changes) > CHANGES_MOST:
        raise Invalid(
            f"{len(planned.changes):,} routes would change; at most {CHANGES_MOST:,} do at once.",
            hint="Nothing was changed. Apply it in parts that do not delete what is missing.",
        )
    apply_id = None
    if not asked.dry_run and planned.changes:
        apply_id = await _applied(work, planned, at, asked.reason)
    return PolicyPlan(
        applied=not asked.dry_run,
        digest=planned.digest,
        created=planned.count(Step.CREATE),
        updated=planned.count(Step.UPDATE),
        deleted=planned.count(Step.DELETE),
        unchanged=planned.unchanged,
        steps=tuple(_shown(change, planned.names) for change in planned.changes),
        apply_id=apply_id,
    )


def digest_of(routes: Iterable[Standing]) -> str:
    """Any edit of any route gives another one."""
    lines = sorted(f"{route.from_agent_id} {route.to_agent_id} {route.id} {route.version}\n" for route in routes)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


async def _planned(work: Work, asked: PolicyApplication, routes: "Sequence[FileRoute]") -> Planned:
    wanted = await _wanted(work, routes, lock=not asked.dry_run)
    current = {route.pair: route for route in await standing(work, lock=False)}
    named = [
        Change(pair, current.get(pair), route.policy, route.notes)
        for pair, route in wanted.items()
        if not _stands(current.get(pair), route)
    ]
    missing = [Change(pair, old, None) for pair, old in current.items() if pair not in wanted]
    changes = named + missing if asked.delete_missing else named
    unchanged = len(wanted) - len(named) + (0 if asked.delete_missing else len(missing))
    names = await _names(work, (agent_id for change in changes for agent_id in change.pair))
    changes.sort(key=lambda change: tuple(names[end].casefold() for end in change.pair))
    return Planned(tuple(changes), unchanged, digest_of(current.values()), names)


def _stands(old: Standing | None, route: "FileRoute") -> bool:
    return old is not None and (old.policy, old.notes) == (route.policy, route.notes)


async def _wanted(work: Work, routes: "Sequence[FileRoute]", *, lock: bool) -> "dict[Pair, FileRoute]":
    """What the file says of each pair; everything that is wrong with its agents is told at once."""
    from agent_console.domain.policy_files import Problem, quoted, refused_file

    words = {word for route in routes for word in (route.from_agent, route.to_agent)}
    found = await agents_called(work, words, lock=lock)
    wanted: dict[Pair, FileRoute] = {}
    problems: list[Problem] = []
    for route in routes:
        unknown = [word for word in (route.from_agent, route.to_agent) if word not in found]
        problems += [Problem(route.line, f"there is no agent {quoted(word)}") for word in unknown]
        if unknown:
            continue
        pair = found[route.from_agent].id, found[route.to_agent].id
        if pair[0] == pair[1]:
            problems.append(Problem(route.line, "an agent needs no route to itself"))
        elif pair in wanted:
            problems.append(Problem(route.line, f"line {wanted[pair].line} is about the same two agents"))
        else:
            wanted[pair] = route
    if problems:
        raise refused_file(problems)
    return wanted


async def _names(work: Work, ids: Iterable[AgentId]) -> dict[AgentId, str]:
    wanted = select(agents.c.id, agents.c.name).where(
        agents.c.team_id == work.caller.team_id, agents.c.id == func.any(list(set(ids)))
    )
    return {row.id: row.name for row in await work.connection.execute(wanted)}


async def _applied(work: Work, planned: Planned, at: datetime, reason: str | None) -> str:
    """One row tells of the whole, one of each route; the rows of the routes are the truth."""
    apply_id = str(RouteId.new()).removeprefix("rte_")
    facts: Facts = {
        "created": planned.count(Step.CREATE),
        "updated": planned.count(Step.UPDATE),
        "deleted": planned.count(Step.DELETE),
        "unchanged": planned.unchanged,
        "old_digest": planned.digest,
    }
    await audit.append(work, AuditEvent(POLICY_APPLIED, "policy", apply_id, metadata=facts, reason=reason), at)
    await write(work, planned.changes, at, reason, apply_id)
    return apply_id


def _shown(change: Change, names: Mapping[AgentId, str]) -> PlannedStep:
    of, to = change.pair
    return PlannedStep(
        step=change.step,
        from_agent=names[of],
        to_agent=names[to],
        was=None if change.old is None else change.old.policy,
        becomes=change.policy,
        old_notes=None if change.old is None else change.old.notes,
        notes=change.notes,
    )
