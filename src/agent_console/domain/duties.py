"""What somebody has to do while time passes, and how each of these duties goes, whichever process does it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field

from agent_console.domain.records import Instant, Record
from agent_console.domain.spans import span

LATE_ROUNDS = 3
LATE_SECONDS = 30.0


@dataclass(frozen=True)
class DutyRule:
    """A duty: what it does, in a sentence, and how often."""

    name: str
    every_seconds: float
    does: str

    @property
    def late_after_seconds(self) -> float:
        """For so long nobody need have done it."""
        return max(LATE_ROUNDS * self.every_seconds, LATE_SECONDS)


# With the 90 s of silence itself this stays below the 95 s within which it has to be noticed.
SILENCE = DutyRule("silence", 3.0, "Notices agents that fell silent and gives their jobs back.")
REST = DutyRule("rest", 3.0, "Lets hosted agents rest that nobody uses.")
JOBS = DutyRule("jobs", 0.5, "Brings due jobs forward; ends leases, deadlines and run times that are over.")
COUNTS = DutyRule("counts", 2.0, "Adds what the queue moved to its counters.")
HISTORY = DutyRule("history", 60.0, "Removes ended jobs that are older than their team keeps them.")
SEALS = DutyRule("seals", 0.5, "Seals the acts of the audit trail into the chain of their team.")
AUDIT_AHEAD = DutyRule("audit_ahead", 3600.0, "Makes the months of the audit trail that lie ahead.")
AUDIT_MONTHS = DutyRule("audit_months", 3600.0, "Drops months of the audit trail that no team keeps any longer.")
RUNS = DutyRule("runs", 1.0, "Ends runs whose deadline is over while their job still waits.")
APPROVALS = DutyRule("approvals", 2.0, "Ends approvals that nobody decided in time, or whose run is over.")

DUTY_RULES = (SILENCE, REST, JOBS, COUNTS, HISTORY, SEALS, AUDIT_AHEAD, AUDIT_MONTHS, RUNS, APPROVALS)


class DutyState(Record):
    """How a duty goes on this database, whoever does it."""

    columns: ClassVar[tuple[str, ...]] = ("name", "late", "done_at", "done_by", "rows", "failures", "error")

    name: str
    does: str
    every_seconds: float
    late: bool = Field(description="Nobody has done it for three rounds, and for half a minute at least.")
    failing: bool = Field(description="Its last round, whoever did it, failed.")
    done_at: Instant | None = Field(description="When it was last done by anybody; null when never.")
    done_seconds_ago: float | None
    done_by: str | None = Field(description="The process that did it last, as host:pid.")
    seconds: float | None = Field(description="How long that round took.")
    rounds: int = Field(description="How often it was tried since the database was made.")
    rows: int = Field(description="How many rows it changed since then.")
    failures: int = Field(description="How often it failed since then.")
    failed_at: Instant | None
    error: str | None = Field(description="What went wrong when it last failed.")


def duty_warnings(duties: Sequence[DutyState]) -> tuple[str, ...]:
    """What an operator should know of the duties: which are late and which fail. Nothing when all is well."""
    if duties and all(duty.late for duty in duties) and not any(duty.failing for duty in duties):
        return (_nobody(duties),)
    late = [_late(duty) for duty in duties if duty.late]
    return (*late, *(_failing(duty) for duty in duties if duty.failing and not duty.late))


def _nobody(duties: Sequence[DutyState]) -> str:
    since = [duty.done_seconds_ago for duty in duties if duty.done_seconds_ago is not None]
    when = f"for {span(min(since))}" if since else "so far"
    return f"nobody has done the duties {when}: run a server (agent-console serve) or keep a console open"


def _late(duty: DutyState) -> str:
    when = "ever" if duty.done_seconds_ago is None else f"for {span(duty.done_seconds_ago)}"
    why = f": {duty.error}" if duty.failing and duty.error else ""
    return f"duty {duty.name} is late, nobody has done it {when}{why}"


def _failing(duty: DutyState) -> str:
    return f"duty {duty.name} failed in its last round: {duty.error}"
