"""Work on many things at once: a batch is done whole or not at all, and between two batches one can stop."""

from typing import Self

from pydantic import Field

from agent_console.domain.records import Record, Request

BATCH_MOST = 500
REFUSALS_KEPT = 500


class BatchRequest(Request):
    """Asks for one batch: `after` is the `next` of the batch before."""

    dry_run: bool = Field(False, description="Change nothing: only say how many and show a few.")
    batch_size: int = Field(BATCH_MOST, ge=1, le=BATCH_MOST, description="How many at most in one step.")
    after: str | None = Field(None, max_length=500, description="Where the batch before ended.")


class Refusal(Record):
    id: str
    why: str


class Batch(Record):
    """What one batch did. Whoever wants all of it asks again with `after` = `next` until that is null."""

    done: int = Field(description="How many were changed.")
    unchanged: int = Field(0, description="How many were so already.")
    refused: tuple[Refusal, ...] = Field((), description="Which were not changed, and why.")
    refused_count: int = 0
    left: int = Field(0, description="How many still match.")
    left_capped: bool = Field(False, description="True when there may be more: counting stops early.")
    next: str | None = Field(None, description="Ask again with after=this for the next batch; null at the end.")

    def following(self, earlier: Self | None) -> Self:
        """Both together: what was done is added up, what is left is what the later one says."""
        if earlier is None:
            return self
        return self.model_copy(
            update={
                "done": earlier.done + self.done,
                "unchanged": earlier.unchanged + self.unchanged,
                "refused": (earlier.refused + self.refused)[:REFUSALS_KEPT],
                "refused_count": earlier.refused_count + self.refused_count,
            }
        )
