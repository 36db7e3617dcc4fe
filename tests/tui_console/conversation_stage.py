"""A thread on the stage: opened in the console, and what its reader reads there."""

from textual.pilot import Pilot

from agent_console.domain.ids import ThreadId
from agent_console.tui.app import ConsoleApp
from agent_console.tui.panes.conversation.screen import ConversationScreen
from agent_console.tui.wanted import ThingWanted
from tests.support.conversations import add_thread, let_in, say_much
from tests.support.fleet import Fleet
from tests.tui_console.stage import ADMIN, loaded, shown_text, until


def long_thread(fleet: Fleet, count: int) -> ThreadId:
    """Its messages read `line 1` and so on; the operator takes part and may write."""
    thread_id = add_thread(fleet)
    let_in(fleet, thread_id, ADMIN, write=True)
    say_much(fleet, thread_id, count)
    return thread_id


def thread_called(fleet: Fleet, title: str) -> ThreadId:
    return ThreadId(str(fleet.one("select id::text from threads where title = %s", title)))


async def opened(pilot: Pilot[None], thread_id: ThreadId) -> ConversationScreen:
    app = await loaded(pilot)
    app.pane.post_message(ThingWanted("threads", str(thread_id)))
    return await until_open(pilot, app)


async def until_open(pilot: Pilot[None], app: ConsoleApp) -> ConversationScreen:
    await until(lambda: isinstance(app.screen, ConversationScreen) and app.screen.has_answer, "the thread")
    await pilot.pause()
    screen = app.screen
    assert isinstance(screen, ConversationScreen)
    return screen


async def type_in(pilot: Pilot[None], text: str) -> None:
    await pilot.press(*("space" if letter == " " else letter for letter in text))


def lines(app: ConsoleApp) -> list[str]:
    return [line.strip() for line in shown_text(app).splitlines()]


def words(app: ConsoleApp) -> dict[str, int]:
    """What was said, as far as it is on the screen, and on which line."""
    return {line.removeprefix("│ "): y for y, line in enumerate(lines(app)) if line.startswith("│ ")}


def seqs_of(fleet: Fleet, thread_id: ThreadId) -> list[object]:
    rows = fleet.execute("select seq from messages where thread_id = %s order by seq", thread_id)
    return [seq for (seq,) in rows]


def held_seqs(screen: ConversationScreen) -> list[int]:
    return [message.seq for message in screen.talk.reading.held.messages]
