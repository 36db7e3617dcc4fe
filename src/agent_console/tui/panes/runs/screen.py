"""One run whole, and the two ways on from it: the tree it belongs to, and what it said in its thread."""

from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType

from agent_console.domain.errors import ConsoleError
from agent_console.domain.records import Record
from agent_console.domain.runs import Run
from agent_console.domain.threads import ThreadAsked
from agent_console.repository.operations.threads import THREADS_GET
from agent_console.tui.panes.detail_screen import DetailScreen
from agent_console.tui.panes.list_kind import ListKind
from agent_console.tui.panes.pane import is_waiting
from agent_console.tui.panes.runs.trace_screen import TraceScreen
from agent_console.tui.panes.surroundings import Surroundings
from agent_console.tui.wanted import Refused, ScreenWanted

MESSAGES = "messages"


class RunScreen(DetailScreen):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "tree", "Who asked whom", id="run.tree"),
        Binding("m", "messages", "What it said", id="run.messages"),
    ]

    def __init__(self, kind: ListKind, record: Record, around: Surroundings) -> None:
        super().__init__(kind, record, around)
        if not isinstance(record, Run):
            raise TypeError(f"{type(record).__name__} is no run")
        self._run_shown = record

    @property
    def crumb(self) -> str:
        return f"Run of {self._run_shown.target or self._run_shown.id}"

    def action_tree(self) -> None:
        self.post_message(ScreenWanted(TraceScreen(self._run_shown, self.around)))

    def action_messages(self) -> None:
        if not is_waiting(self, MESSAGES):
            self._open_thread()

    @work(group=MESSAGES)
    async def _open_thread(self) -> None:
        from agent_console.tui.panes.conversation.screen import ConversationScreen
        from agent_console.tui.panes.threads import THREADS

        run = self._run_shown
        try:
            thread = await self.around.link.call(THREADS_GET, ThreadAsked(thread_id=run.thread_id))
        except ConsoleError as error:
            self.post_message(Refused(error))
            return
        self.post_message(ScreenWanted(ConversationScreen(THREADS, thread, self.around, run_id=run.id)))
