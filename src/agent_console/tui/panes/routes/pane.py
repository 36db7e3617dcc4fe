"""The policy of the fleet: which agent may ask which, as a matrix and as a list."""

import asyncio
from dataclasses import replace
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from agent_console.domain.errors import ConsoleError
from agent_console.domain.records import Nothing, Record
from agent_console.domain.routes import Route
from agent_console.repository.operations.routes import ROUTES_EXPORT
from agent_console.repository.port import Change
from agent_console.tui.lists.loaded import ListSoFar
from agent_console.tui.new_file import exports_folder
from agent_console.tui.panes.list_kind import ListKind
from agent_console.tui.panes.list_pane import ListPane
from agent_console.tui.panes.narrowed_pane import FINDING, PAGES_LOOKED_AT
from agent_console.tui.panes.pane import Pane, is_waiting
from agent_console.tui.panes.routes.apply import ApplyScreen
from agent_console.tui.panes.routes.exported import ExportedScreen
from agent_console.tui.panes.routes.files import write_policy
from agent_console.tui.panes.routes.keys import RouteKeys, route_bindings
from agent_console.tui.panes.routes.lists import ROUTES as PLAIN_ROUTES
from agent_console.tui.panes.routes.lists import trail_of_route
from agent_console.tui.panes.routes.matrix import MatrixLook
from agent_console.tui.panes.routes.pair import RoutePair
from agent_console.tui.panes.routes.screen import RouteScreen
from agent_console.tui.panes.surroundings import Surroundings
from agent_console.tui.wanted import ListWanted, Refused, ScreenWanted, ThingWanted
from agent_console.tui.widgets.policy_matrix import PolicyMatrix

EXPORTING = "exporting"
NOT_HERE = "The route of that pair is not among these; f shows another group."

ROUTES = replace(PLAIN_ROUTES, screen=RouteScreen)


class RouteList(ListPane):
    """What would be derived from the operations is done in the editor, which shows what it does first."""

    def __init__(self, kind: ListKind, around: Surroundings) -> None:
        super().__init__(kind, around)
        self._wished: str | None = None

    def go_to(self, route_id: str) -> None:
        """Now, or when the list has come; what lies further down is fetched."""
        self._wished = None if self._fetched else route_id
        if self._fetched and not self.table.move_to(route_id):
            self._go_down_to(route_id)

    def _take(self, loaded: ListSoFar[Record]) -> None:
        super()._take(loaded)
        if (wished := self._wished) is not None:
            self.go_to(wished)

    @work(group=FINDING)
    async def _go_down_to(self, route_id: str) -> None:
        left_at = self.table.cursor_id
        for _ in range(PAGES_LOOKED_AT):
            if self._loaded.complete or not self.around.up or not await self._fetch_further():
                break
            if self.table.cursor_id != left_at or self.table.move_to(route_id):
                # Whoever goes elsewhere meanwhile is not taken back.
                return
        self.notify(NOT_HERE, severity="warning", markup=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action not in ("act", "new") and super().check_action(action, parameters)


class RoutesPane(Pane, RouteKeys):
    """Both looks are of one policy; keys act on the pair under the cursor of the one that is shown."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *route_bindings("routes"),
        Binding("m", "other_look", "Matrix/List", id="routes.look"),
        Binding("l", "trail", "Its audit trail", show=False, id="routes.trail"),
        Binding("R", "route", "Its route", show=False, id="routes.route"),
        Binding("E", "export", "Export to a file", show=False, id="routes.export"),
        Binding("Y", "apply", "Apply a file", show=False, id="routes.apply"),
    ]

    def __init__(self, around: Surroundings) -> None:
        super().__init__("routes", around)
        self.matrix_look = MatrixLook(around)
        self.list_look = RouteList(replace(ROUTES, name="routes-list"), around)
        self.list_look.display = False

    def compose(self) -> ComposeResult:
        yield self.matrix_look
        yield self.list_look

    @property
    def look(self) -> MatrixLook | RouteList:
        return self.list_look if self.list_look.display else self.matrix_look

    @property
    def has_answer(self) -> bool:
        return self.look.has_answer

    def take_focus(self) -> None:
        (self.list_look.table if self.list_look.display else self.matrix_look.matrix).focus()

    def heard(self, change: Change) -> None:
        self.matrix_look.heard(change)
        self.list_look.heard(change)

    def step(self) -> None:
        self.look.step()

    def tick(self) -> None:
        self.look.tick()

    def set_stale(self, stale: bool) -> None:
        self.matrix_look.set_stale(stale)
        self.list_look.set_stale(stale)

    # What the keys act on

    @property
    def chosen_pair(self) -> RoutePair | None:
        if not self.list_look.display:
            return self.matrix_look.pair
        route = self._listed
        return None if route is None else RoutePair.of_route(route)

    @property
    def chosen_route(self) -> bool:
        return self._route_id is not None

    @property
    def _listed(self) -> Route | None:
        row_id = self.list_look.table.cursor_id
        record = None if row_id is None else self.list_look.record(row_id)
        return record if isinstance(record, Route) else None

    @property
    def _route_id(self) -> str | None:
        if self.list_look.display:
            return self.list_look.table.cursor_id
        cell = self.matrix_look.cell
        return None if cell is None else str(cell.route_id)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.chosen_route if action in ("trail", "route") else self.offers(action)

    # Keys

    @on(PolicyMatrix.Chosen)
    def _chosen(self) -> None:
        """Whoever may not edit reads."""
        if self.offers("edit"):
            self.action_edit()
        else:
            self.action_route()

    def action_route(self) -> None:
        if (route_id := self._route_id) is not None:
            self.post_message(ThingWanted("routes", route_id))

    def action_trail(self) -> None:
        pair, route_id = self.chosen_pair, self._route_id
        if pair is not None and route_id is not None:
            self.post_message(ListWanted(trail_of_route(route_id, f"{pair.of_name} → {pair.to_name}")))

    def action_other_look(self) -> None:
        """The cursor goes to the same pair, where the other look has it."""
        pair, route_id = self.chosen_pair, self._route_id
        to_list = not self.list_look.display
        self.list_look.display, self.matrix_look.display = to_list, not to_list
        if to_list and route_id is not None:
            self.list_look.go_to(route_id)
        elif pair is not None:
            self.matrix_look.matrix.move_to((str(pair.of), str(pair.to)))
        self.take_focus()
        self.refresh_bindings()
        self.tick()
        if self.around.up:
            self.step()

    def action_apply(self) -> None:
        self.post_message(ScreenWanted(ApplyScreen(self.around)))

    def action_export(self) -> None:
        if not self.around.up:
            self.notify("There is no connection; nothing was written.", severity="warning", markup=False)
        elif not is_waiting(self, EXPORTING):
            self._export()

    @work(group=EXPORTING)
    async def _export(self) -> None:
        try:
            policy = await self.around.link.call(ROUTES_EXPORT, Nothing())
            path = await asyncio.to_thread(write_policy, exports_folder(), policy.text, self.around.clock())
        except ConsoleError as error:
            self.post_message(Refused(error))
            return
        self.post_message(ScreenWanted(ExportedScreen(self.around, policy, path)))
