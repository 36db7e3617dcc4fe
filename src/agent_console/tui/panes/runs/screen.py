"""One run whole, and the ways on from it: its tree, what it said in its thread, the route that let it through."""

from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType

from agent_console.domain.errors import ConsoleError
from agent_console.domain.routes import RouteQuery
from agent_console.domain.runs import Run
from agent_console.domain.threads import ThreadAsked
from agent_console.repository.operations.routes import ROUTES_LIST
from agent_console.repository.operations.threads import THREADS_GET
from agent_console.tui.panes.detail_screen import DetailScreen
from agent_console.tui.panes.pane import is_waiting
from agent_console.tui.panes.runs.trace_screen import TraceScreen
from agent_console.tui.wanted import RecordWanted, Refused, ScreenWanted

MESSAGES = "messages"
ROUTE = "route"


class RunScreen(DetailScreen):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "tree", "Who asked whom", id="run.tree"),
        Binding("m", "messages", "What it said", id="run.messages"),
    ]

    @property
    def run_shown(self) -> Run:
        if not isinstance(self._record, Run):
            raise TypeError(f"{type(self._record).__name__} is no run")
        return self._record

    @property
    def crumb(self) -> str:
        return f"Run of {self.run_shown.target or self.run_shown.id}"

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "jump" and parameters[0] == "routes":
            return self.run_shown.route_version is not None and self.run_shown.requested_by_agent_id is not None
        return super().check_action(action, parameters)

    def action_jump(self, noun: str) -> None:
        if noun != "routes":
            super().action_jump(noun)
        elif not is_waiting(self, ROUTE):
            self._open_route()

    @work(group=ROUTE)
    async def _open_route(self) -> None:
        """A run knows between whom its route leads, and not its id: that may have been made anew since."""
        from agent_console.tui.panes.every import KINDS

        run = self.run_shown
        pair = RouteQuery(from_agent=str(run.requested_by_agent_id), to_agent=str(run.target_agent_id), limit=1)
        try:
            page = await self.around.link.call(ROUTES_LIST, pair)
        except ConsoleError as error:
            self.post_message(Refused(error))
            return
        if page.items:
            self.post_message(RecordWanted(KINDS["routes"], page.items[0]))
        else:
            self.notify("The route that let it through is gone.", severity="warning", markup=False)

    def action_tree(self) -> None:
        self.post_message(ScreenWanted(TraceScreen(self.run_shown, self.around)))

    def action_messages(self) -> None:
        if not is_waiting(self, MESSAGES):
            self._open_thread()

    @work(group=MESSAGES)
    async def _open_thread(self) -> None:
        from agent_console.tui.panes.conversation.lists import THREADS
        from agent_console.tui.panes.conversation.screen import ConversationScreen

        run = self.run_shown
        try:
            thread = await self.around.link.call(THREADS_GET, ThreadAsked(thread_id=run.thread_id))
        except ConsoleError as error:
            self.post_message(Refused(error))
            return
        self.post_message(ScreenWanted(ConversationScreen(THREADS, thread, self.around, run_id=run.id)))
