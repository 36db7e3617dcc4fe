"""What has to be true whatever was broken: looked at in the database itself, past every part of the program."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from agent_console.domain.ids import Id
from tests.database.queue_counted import BOTH
from tests.faults.life import Told
from tests.faults.world import World
from tests.support.fleet import Fleet

MISSING = (
    "select count(*) from unnest(%s::uuid[]) as told (id) where not exists (select from {} t where t.id = told.id)"
)
# A job is claimed while it waits. Claimed again without having gone back, it has two owners under one fence.
TWO_OWNERS = """
    select count(*)
      from (select payload ->> 'from' as was, payload ->> 'to' as became,
                   lag(payload ->> 'to') over (partition by team_id, job_id order by seq) as before
              from job_events where payload ? 'to' and payload ->> 'to' <> 'cancelling') as move
     where before is not null and was <> before
"""
ENDED_TWICE = """
    select count(*)
      from (select from job_events where payload ->> 'to' in ('succeeded', 'failed', 'dead_letter', 'cancelled')
             group by team_id, job_id having count(*) > 1) as twice
"""
RESULTS_TWICE = (
    "select count(*) from (select from job_results group by team_id, job_id having count(*) > 1) as twice"
)
DECIDED_TWICE = """
    select count(*)
      from (select from audit_log where action in ('approval.approve', 'approval.reject', 'approval.expire')
             group by team_id, resource_id having count(*) > 1) as twice
"""
# A yes begins one run and nothing else does; a decision is one act of the trail.
UNEVEN_DECISIONS = """
    select count(*)
      from approvals p
     where p.state in ('approved', 'rejected')
       and (p.state = 'approved') is distinct from (p.run_id is not null)
"""
STATES = "select replace(id::text, '-', ''), state from approvals where state <> 'pending'"


@dataclass(frozen=True)
class Found:
    """How often each thing went wrong; all of it has to be zero."""

    wrong: Counter[str]

    def __str__(self) -> str:
        return ", ".join(f"{what}: {count}" for what, count in self.wrong.items() if count) or "nothing"

    @property
    def total(self) -> int:
        return self.wrong.total()


def looked_at(world: World, told: Told) -> Found:
    with world.looking() as fleet:
        return looked_at_in(fleet, told, world.journal)


def looked_at_in(fleet: Fleet, told: Told, journal: Path) -> Found:
    def number(question: str, *values: object) -> int:
        return int(str(fleet.one(question, *values)))

    def missing(table: str, ids: Iterable[Id]) -> int:
        return number(MISSING.format(table), list(ids))

    states = {str(row[0]): str(row[1]) for row in fleet.execute(STATES)}
    wrong = Counter(
        {
            "acknowledged jobs lost": missing("jobs", told.jobs),
            "acknowledged messages lost": missing("messages", told.messages),
            "acknowledged questions lost": missing("approvals", told.asked),
            "acknowledged decisions lost": sum(
                said != states.get(one.hex) for one, answers in told.decided.items() for said in answers
            ),
            "decisions acknowledged twice": sum(len(answers) > 1 for answers in told.decided.values()),
            "approvals decided twice": number(DECIDED_TWICE),
            "approvals without their run": number(UNEVEN_DECISIONS),
            "jobs with two owners": number(TWO_OWNERS),
            "jobs begun twice under one fence": begun_twice(journal),
            "jobs ended twice": number(ENDED_TWICE),
            "jobs with two results": number(RESULTS_TWICE),
            "counts that are wrong": int(fleet.one(BOTH) is not True),
        }
    )
    return Found(wrong)


def begun_twice(journal: Path) -> int:
    """Two agents that began the same try of a job. A last line may be cut off by a kill."""
    agents: dict[tuple[str, ...], set[str]] = {}
    for line in journal.read_text().splitlines() if journal.exists() else ():
        *fence, agent = line.split()
        agents.setdefault(tuple(fence), set()).add(agent)
    return sum(len(names) > 1 for names in agents.values())
