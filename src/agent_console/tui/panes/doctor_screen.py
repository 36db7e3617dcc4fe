"""The doctor: from the operator's terminal to the data, what is well, what is not, and what to do."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import groupby
from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType

from agent_console.domain.doctor import findings, summary
from agent_console.domain.doctor_facts import FarFacts, LocalFacts
from agent_console.domain.findings import Finding, Verdict
from agent_console.repository.examining import examined
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.facts import Fact, FactSheet, Heading, Remark, SheetPart
from agent_console.tui.link import Link
from agent_console.tui.panes.pane import is_waiting
from agent_console.tui.panes.panel_screen import PanelScreen, reading_bindings
from agent_console.tui.panes.surroundings import Surroundings
from agent_console.tui.setup import system_clock

EXAMINING = "examining"
VALUE_SHOWN = 500
STYLE: dict[Verdict, str] = {
    Verdict.FINE: "",
    Verdict.WARNING: "$text-warning",
    Verdict.WRONG: "bold $text-error",
    Verdict.UNKNOWN: "$foreground-muted",
}
WAITING = FactSheet((Remark(system_text("Examining …", "$foreground-muted")),))


def doctor_sheet(found: tuple[Finding, ...]) -> FactSheet:
    return FactSheet(tuple(_parts(found)))


def _parts(found: tuple[Finding, ...]) -> Iterator[SheetPart]:
    """What there is to do first, what is wrong before what is only worth a look; then everything by part."""
    yield Heading(system_text(f"Doctor: {summary(found)}", "bold"))
    for verdict in (Verdict.WRONG, Verdict.WARNING):
        for finding in found:
            if finding.verdict is verdict:
                yield from _told(finding, with_advice=True)
    for part, group in groupby(found, key=lambda finding: finding.part):
        yield Heading(system_text(part, "bold"))
        for finding in group:
            yield from _told(finding, with_advice=finding.verdict is Verdict.UNKNOWN)


def _told(finding: Finding, *, with_advice: bool) -> Iterator[SheetPart]:
    value = agent_text(finding.value, STYLE[finding.verdict], limit=VALUE_SHOWN)
    yield Fact(f"{finding.verdict.glyph} {finding.what}", value)
    if with_advice and finding.advice:
        yield Fact("", system_text("→ ", "$foreground-muted") + agent_text(finding.advice, limit=VALUE_SHOWN))


async def examined_here(link: Link) -> FarFacts:
    """By this machine's own clock, since it is on trial too. While nobody answers, why is known already."""
    if link.status.message:
        return FarFacts(problem=link.status.message, hint=link.status.hint)
    return await examined(link, system_clock)


class DoctorScreen(PanelScreen):
    """Examines when it is opened, when the connection comes or goes, and when somebody asks for it again."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "again", "Examine again", id="doctor.again"),
        *reading_bindings("doctor"),
    ]

    def __init__(
        self,
        around: Surroundings,
        examine: Callable[[], LocalFacts],
        ask: Callable[[Link], Awaitable[FarFacts]] = examined_here,
    ) -> None:
        super().__init__(around)
        self._examine = examine
        self._ask = ask
        self._again = False
        self.found: tuple[Finding, ...] = ()

    def tick(self) -> None:
        self._panel.show(doctor_sheet(self.found) if self.found else WAITING)

    @property
    def crumb(self) -> str:
        return "Doctor"

    @property
    def has_answer(self) -> bool:
        return bool(self.found) and not is_waiting(self, EXAMINING)

    def set_stale(self, stale: bool) -> None:
        """A lost connection is a finding of its own, so it is looked at at once."""
        self.action_again()

    def action_again(self) -> None:
        self._again = True
        if not is_waiting(self, EXAMINING):
            self._look()

    @work(group=EXAMINING)
    async def _look(self) -> None:
        """Once more when somebody asked meanwhile: what was found may be over by then."""
        while self._again:
            self._again = False
            local = await asyncio.to_thread(self._examine)
            self.found = findings(local, await self._ask(self.around.link))
            self.tick()
            # A scroll bar that came with it makes the lines shorter.
            self.call_after_refresh(self.tick)
