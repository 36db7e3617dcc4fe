"""Proving that nobody changed the audit trail, and dropping the months that need not be kept."""

from enum import StrEnum
from typing import Self

from pydantic import Field

from agent_console.domain.audit_trail import Checkpoint, HashText, KeptSeal
from agent_console.domain.batches import Batch, BatchRequest
from agent_console.domain.ids import AuditId
from agent_console.domain.records import Record, Request

STEP = 100_000


class DamageKind(StrEnum):
    CHANGED = "changed"
    MISSING = "missing"
    INSERTED = "inserted"
    REORDERED = "reordered"
    FORKED = "forked"
    CUT = "cut"
    DROPPED = "dropped"


class Damage(Record):
    """The first thing that is not as it was sealed."""

    kind: DamageKind
    position: int | None = Field(description="Where in the chain; null when it has no place there.")
    audit_id: AuditId | None
    seq: int | None
    message: str


class Verification(Request):
    """Asks for one part of the proof: `after` is the `next` of the part before."""

    seal: KeptSeal | None = Field(None, description="A seal exported before: the chain must still hold it.")
    batch_size: int = Field(STEP, ge=1, le=STEP, description="How many acts in one step.")
    after: str | None = Field(None, max_length=500, description="Where the part before ended.")


class Verified(Record):
    """What one part of the proof found. Whoever wants all of it asks on until `next` is null."""

    done: int = Field(description="How many acts had their hashes taken anew.")
    left: int = Field(description="How many sealed acts are still to be proved.")
    position: int = Field(description="The chain holds up to here.")
    hash: HashText
    unsealed: int = Field(0, description="Acts after it that are not sealed yet; their own hashes hold.")
    damage: Damage | None = None
    next: str | None = Field(None, description="Ask again with after=this for the next part; null at the end.")


class Pruning(BatchRequest):
    """One month in one step, the oldest first."""


class PrunedMonth(Record):
    month: str
    rows: int = Field(description="How many acts of the team it holds, or held.")


class Pruned(Batch):
    """`done` counts months."""

    months: tuple[PrunedMonth, ...] = ()
    checkpoint: Checkpoint | None = Field(None, description="What is left of the last month of the team.")

    def following(self, earlier: Self | None) -> Self:
        if earlier is None:
            return self
        together = super().following(earlier)
        return together.model_copy(
            update={"months": earlier.months + self.months, "checkpoint": self.checkpoint or earlier.checkpoint}
        )
