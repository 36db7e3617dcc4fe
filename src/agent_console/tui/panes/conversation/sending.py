"""Saying what was drafted: once, whatever happens to the answer."""

from dataclasses import dataclass

from pydantic import ValidationError

from agent_console.domain.errors import ConsoleError
from agent_console.domain.ids import ThreadId
from agent_console.domain.problems import problem_of
from agent_console.repository.operations.messages import MESSAGES_POST
from agent_console.tui.link import Link, NotSent, is_unsure
from agent_console.tui.panes.conversation.drafts import Drafts

NOTHING_TO_SAY = "There is nothing to send yet."
NO_CONNECTION = "There is no connection; the draft is kept."
NO_ANSWER = "No answer came, so it may have been said. Sent again it is not said twice."


@dataclass(frozen=True)
class Sent:
    """`problem` says why it was not said; then the draft is kept."""

    problem: str = ""
    warnings: tuple[str, ...] = ()


async def send(link: Link, drafts: Drafts, thread_id: ThreadId) -> Sent:
    try:
        message = drafts.message_of(thread_id)
    except ValidationError as error:
        return Sent(problem_of(error.errors()[0]))
    try:
        posted = await link.call(MESSAGES_POST, message)
    except NotSent:
        return Sent(NO_CONNECTION)
    except ConsoleError as error:
        return Sent(NO_ANSWER if is_unsure(error) else str(error))
    drafts.was_said(message)
    return Sent(warnings=posted.warnings)
