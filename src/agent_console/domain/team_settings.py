"""What a team can set: every setting with its bounds, its default and what it is for."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from agent_console.domain.ids import UserId
from agent_console.domain.records import Instant, Record, Request


@dataclass(frozen=True)
class SettingRule:
    """A whole number between two bounds."""

    name: str
    default: int
    minimum: int
    maximum: int
    help: str


AUDIT_RETENTION_DAYS = SettingRule(
    "audit_retention_days", 90, 1, 3650, "Days before a sealed month of the audit trail may be dropped."
)
JOB_HISTORY_DAYS = SettingRule(
    "job_history_days", 90, 1, 3650, "Days before a finished job and its events are removed."
)
APPROVAL_EXPIRY_MINUTES = SettingRule(
    "approval_expiry_minutes", 1440, 1, 10080, "Minutes before an approval nobody decided expires."
)
MAX_HOPS = SettingRule("max_hops", 2, 1, 10, "How many agents may pass one request on.")
DUPLICATE_WINDOW_SECONDS = SettingRule(
    "duplicate_window_seconds", 45, 0, 3600, "Seconds in which the same request again is dropped."
)
RUNS_PER_THREAD = SettingRule("runs_per_thread", 3, 1, 100, "How many runs of one thread may be open at once.")
WAITING_PER_AGENT = SettingRule(
    "waiting_per_agent", 20, 1, 1000, "How many requests of one agent may wait for a person at once."
)
LEASE_MAX_SECONDS = SettingRule(
    "lease_max_seconds", 3600, 10, 86400, "The longest lease an agent may ask for, in seconds."
)
HOSTED_PER_OWNER = SettingRule("hosted_per_owner", 10, 0, 1000, "How many hosted agents one person may own.")

SETTINGS: dict[str, SettingRule] = {
    rule.name: rule
    for rule in (
        AUDIT_RETENTION_DAYS,
        JOB_HISTORY_DAYS,
        APPROVAL_EXPIRY_MINUTES,
        MAX_HOPS,
        DUPLICATE_WINDOW_SECONDS,
        RUNS_PER_THREAD,
        WAITING_PER_AGENT,
        LEASE_MAX_SECONDS,
        HOSTED_PER_OWNER,
    )
}


def _no_truth_value(value: object) -> object:
    if value is True or value is False:
        raise ValueError("must be a whole number")
    return value


class Setting(Record):
    columns: ClassVar[tuple[str, ...]] = ("name", "value", "default", "minimum", "maximum", "help")

    name: str
    value: int
    default: int
    minimum: int
    maximum: int
    help: str
    updated_by_user_id: UserId | None = Field(description="Who set it; null while it has its default.")
    updated_by: str | None
    updated_at: Instant | None


class SettingChange(Request):
    name: str = Field(min_length=1, max_length=100, description="Which setting; settings.list names them.")
    value: Annotated[int, BeforeValidator(_no_truth_value)] = Field(description="Its new value.")
