"""An answer that is a refusal, and yet leaves something behind: its transaction is kept, and then it is raised."""

from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from agent_console.domain.errors import ConsoleError, Internal

Answer = TypeVar("Answer", bound=BaseModel)


class Settled(BaseModel, Generic[Answer]):
    """One of the two, as it stands in the transaction that has just been committed."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    answer: Answer | None = None
    refusal: ConsoleError | None = None

    def answer_or_refuse(self) -> Answer:
        if self.refusal is not None:
            raise self.refusal
        if self.answer is None:
            raise Internal("Nothing was settled.")
        return self.answer
