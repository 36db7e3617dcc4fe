"""Every version of the route of a pair: who, when and why, and what differs from the version before."""

from datetime import datetime
from typing import ClassVar

from textual.binding import Binding, BindingType

from agent_console.domain.kinds import RoutePolicy
from agent_console.domain.routes import RouteHistoryQuery, RouteVersion
from agent_console.repository.operations.routes import ROUTES_HISTORY
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.facts import Fact, Heading, Remark, SheetPart
from agent_console.tui.panes.routes.lists import who_and_when
from agent_console.tui.panes.routes.looks import notes_change, notes_text, policy_change, policy_text
from agent_console.tui.panes.routes.pair import RoutePair
from agent_console.tui.panes.routes.sheet import RouteSheet
from agent_console.tui.panes.surroundings import Surroundings

PAGE = 20
MOST = 200


class HistoryScreen(RouteSheet):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("o", "older", "Older", id="history.older")]

    def __init__(self, around: Surroundings, pair: RoutePair) -> None:
        super().__init__(around, pair)
        self._versions: tuple[RouteVersion, ...] = ()
        self._wanted = PAGE
        self._more = False

    @property
    def crumb(self) -> str:
        return f"History of {self.pair.of_name} → {self.pair.to_name}"

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "older" or (self._more and self._wanted < MOST)

    async def ask(self) -> None:
        query = RouteHistoryQuery(from_agent=str(self.pair.of), to_agent=str(self.pair.to), limit=self._wanted)
        page = await self.around.link.call(ROUTES_HISTORY, query)
        self._versions, self._more = page.items, page.next is not None
        self.refresh_bindings()

    def action_older(self) -> None:
        self._wanted = min(MOST, self._wanted + PAGE)
        self._dirty = True
        if self.around.up:
            self.step()

    def parts(self) -> tuple[SheetPart, ...]:
        if not self._versions:
            return (Remark(system_text("This pair never had a route.", "$foreground-muted")),)
        now = self.around.clock()
        following = (*self._versions[1:], None)
        known = len(self._versions) if self._more else len(self._versions) + 1
        told = [
            part
            for place, (version, before) in enumerate(zip(self._versions, following, strict=True))
            for part in version_parts(version, before, now, knows_before=place + 1 < known)
        ]
        return (*told, *self._older())

    def _older(self) -> tuple[SheetPart, ...]:
        if not self._more:
            return ()
        how = "o shows more" if self._wanted < MOST else "the command routes history shows all"
        return (Heading(system_text(f"There are older ones; {how}.", "$foreground-muted")),)


def version_parts(
    version: RouteVersion, before: RouteVersion | None, now: datetime, *, knows_before: bool
) -> tuple[SheetPart, ...]:
    title = system_text(f"version {version.version}   ", "bold")
    heading = Heading(title + who_and_when(version.changed_by, version.changed_at, now))
    why = Fact("reason", agent_text(version.reason or "none given", limit=600))
    if version.removed:
        removed = policy_change(version.policy, None)
        return heading, Fact("policy", removed + system_text("   removed", "bold $text-warning")), why
    if not knows_before:
        return heading, Fact("policy", policy_text(version.policy)), Fact("notes", notes_text(version.notes)), why
    was, old_notes = _standing(before)
    return (
        heading,
        Fact("policy", policy_change(was, version.policy)),
        Fact("notes", notes_change(old_notes, version.notes)),
        why,
    )


def _standing(version: RouteVersion | None) -> tuple[RoutePolicy | None, str | None]:
    """What a version left behind: a removed one left nothing."""
    if version is None or version.removed:
        return None, None
    return version.policy, version.notes
