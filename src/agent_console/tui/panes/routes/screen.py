"""One route, whole, with the keys that work on its pair."""

from typing import ClassVar

from textual.binding import BindingType

from agent_console.domain.routes import Route
from agent_console.tui.panes.detail_screen import DetailScreen
from agent_console.tui.panes.list_kind import ListKind
from agent_console.tui.panes.routes.keys import RouteKeys, route_bindings
from agent_console.tui.panes.routes.pair import RoutePair
from agent_console.tui.panes.surroundings import Surroundings


class RouteScreen(DetailScreen, RouteKeys):
    BINDINGS: ClassVar[list[BindingType]] = [*route_bindings("route")]

    def __init__(self, kind: ListKind, route: Route, around: Surroundings) -> None:
        super().__init__(kind, route, around)

    @property
    def chosen_pair(self) -> RoutePair | None:
        return RoutePair.of_route(self._record) if isinstance(self._record, Route) else None

    @property
    def chosen_route(self) -> bool:
        return not self._is_gone

    @property
    def crumb(self) -> str:
        pair = self.chosen_pair
        return "" if pair is None else f"{pair.of_name} → {pair.to_name}"

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The editor does what the derived actions would, and shows what it does first."""
        if action == "act":
            return False
        return self.offers(action) and super().check_action(action, parameters)
