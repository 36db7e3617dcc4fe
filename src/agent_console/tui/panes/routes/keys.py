"""The keys that work wherever two agents and their route are shown."""

from textual.binding import Binding
from textual.widget import Widget

from agent_console.domain.permissions import GRANTS, Permission
from agent_console.tui.panes.routes.draft import Draft
from agent_console.tui.panes.routes.editor import editor_of
from agent_console.tui.panes.routes.explain import ExplainScreen
from agent_console.tui.panes.routes.history import HistoryScreen
from agent_console.tui.panes.routes.pair import RoutePair
from agent_console.tui.panes.surroundings import Surroundings
from agent_console.tui.wanted import ScreenWanted, ThingWanted

CHANGING = frozenset({"edit", "remove", "apply"})


def route_bindings(where: str) -> list[Binding]:
    return [
        Binding("e", "edit", "Edit", id=f"{where}.edit"),
        Binding("x", "explain", "Explain", id=f"{where}.explain"),
        Binding("h", "history", "History", id=f"{where}.history"),
        Binding("d", "remove", "Remove", show=False, id=f"{where}.remove"),
        Binding("A", "agent('from')", "The agent that asks", show=False, id=f"{where}.from_agent"),
        Binding("O", "agent('to')", "The agent that is asked", show=False, id=f"{where}.to_agent"),
    ]


def may_change_policy(around: Surroundings) -> bool:
    role = around.acting_as
    return role is not None and Permission.ADMINISTER in GRANTS[role]


class RouteKeys(Widget):
    """Each key acts on the pair it was pressed on."""

    around: Surroundings

    @property
    def chosen_pair(self) -> RoutePair | None:
        raise NotImplementedError

    @property
    def chosen_route(self) -> bool:
        """Whether the pair has a route."""
        raise NotImplementedError

    def offers(self, action: str) -> bool:
        """What can't be done now, by this role or on a read-only profile is not on the menu."""
        pair = self.chosen_pair
        if action in CHANGING and not may_change_policy(self.around):
            return False
        match action:
            case "edit" | "history" | "explain":
                return pair is not None and not pair.is_itself
            case "remove":
                return self.chosen_route
            case "agent":
                return pair is not None
        return True

    def action_edit(self) -> None:
        if (pair := self.chosen_pair) is not None and self.offers("edit"):
            self.post_message(ScreenWanted(editor_of(self.around, pair)))

    def action_remove(self) -> None:
        """Only a draft: it is removed by a key of its own, like every change."""
        if (pair := self.chosen_pair) is not None and self.offers("remove"):
            self.post_message(ScreenWanted(editor_of(self.around, pair, Draft(policy=None))))

    def action_explain(self) -> None:
        if (pair := self.chosen_pair) is not None:
            self.post_message(ScreenWanted(ExplainScreen(self.around, pair)))

    def action_history(self) -> None:
        if (pair := self.chosen_pair) is not None:
            self.post_message(ScreenWanted(HistoryScreen(self.around, pair)))

    def action_agent(self, side: str) -> None:
        if (pair := self.chosen_pair) is not None:
            self.post_message(ThingWanted("agents", str(pair.of if side == "from" else pair.to)))
