"""The duties: what is done while time passes, and how it goes."""

from agent_console.domain.duties import DutyState
from agent_console.domain.permissions import Permission
from agent_console.domain.records import Nothing, Page
from agent_console.repository.operations.declared import AnyOperation, Operation, Verb

DUTIES_LIST = Operation(
    name="duties.list",
    summary="What is done while time passes: when each duty was last done, by which process, and which are late.",
    verb=Verb.GET,
    path="/v1/duties",
    request=Nothing,
    answer=Page[DutyState],
    permission=Permission.SEE_FLEET,
)

NOUNS = {"duties": "What servers and consoles do while time passes, and how it goes."}

DUTIES: tuple[AnyOperation, ...] = (DUTIES_LIST,)
