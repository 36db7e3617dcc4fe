"""One request as it stands: read to its end, watched while it waits, with a word on who else reads it."""

import secrets
from datetime import datetime, timedelta
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content

from agent_console.domain.approvals import Approval, ApprovalAsked, ApprovalListed, Looker, Looking
from agent_console.domain.errors import ConsoleError, NotFound
from agent_console.domain.ids import UserId
from agent_console.repository.operations.approvals import APPROVALS_GET, APPROVALS_LOOK, APPROVALS_LOOKERS
from agent_console.repository.port import Change, Topic
from agent_console.tui.agent_text import system_text
from agent_console.tui.link import GONE
from agent_console.tui.panes.approvals.looks import lookers_text, seconds_left, time_line, waits
from agent_console.tui.panes.approvals.offer import Offer, Standing, may_decide, offer_of
from agent_console.tui.panes.approvals.sheet import approval_sheet
from agent_console.tui.panes.list_kind import ListKind
from agent_console.tui.panes.pane import is_waiting
from agent_console.tui.panes.panel_screen import PanelScreen, reading_bindings
from agent_console.tui.panes.related import THINGS
from agent_console.tui.panes.surroundings import Surroundings
from agent_console.tui.wanted import Refused, ThingWanted
from agent_console.tui.widgets.changing_line import ChangingLine
from agent_console.tui.widgets.request_panel import RequestPanel

ITSELF, LOOKING = "itself", "looking"
LOOK_AGAIN = timedelta(seconds=5)
NOBODY = "Nobody else is looking."
GONE_FOR_GOOD = "It no longer exists, or you may no longer read it. This is the last that was known of it."


class ApprovalReading(PanelScreen):
    """The time and the offer stay in sight while the request scrolls between them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "Back", id="approval.close"),
        *(
            Binding(THINGS[noun][0], f"jump('{noun}')", THINGS[noun][1], id=f"approval.to_{noun}", show=False)
            for noun in ("agents", "threads", "runs", "routes")
        ),
        Binding("O", "jump('asked')", "The agent that is asked", id="approval.to_asked", show=False),
        *reading_bindings("approval"),
    ]

    _panel: RequestPanel

    def __init__(self, kind: ListKind, record: ApprovalListed, around: Surroundings) -> None:
        super().__init__(around)
        self.kind = kind
        self._listed = record
        self._approval: Approval | None = None
        self._since = around.passed()
        self._dirty = True
        self._is_gone = False
        self._asking = False
        self._told: Content = system_text("")
        self._lookers: tuple[Looker, ...] = ()
        self._looked_at: datetime | None = None
        self._session = secrets.token_hex(8)
        self._panel = RequestPanel(classes="request")
        self._time = ChangingLine(classes="time")
        self._bar = ChangingLine(system_text("Loading …"), classes="offer")
        self._menu: tuple[object, ...] = ()

    def body(self) -> ComposeResult:
        yield self._time
        yield self._panel
        yield self._bar

    @property
    def crumb(self) -> str:
        listed = self._listed
        return f"{listed.from_agent or listed.from_agent_id} → {listed.to_agent or listed.to_agent_id}"

    @property
    def about(self) -> str:
        return f"approvals {self._listed.id}"

    @property
    def has_answer(self) -> bool:
        return self._approval is not None or self._is_gone

    @property
    def _me(self) -> UserId | None:
        me = self.around.link.me
        return None if me is None else me.user_id

    @property
    def offer(self) -> Offer:
        me = self.around.link.me
        return offer_of(
            Standing(
                approval=self._approval,
                now=self.around.clock(),
                passed=self.around.passed(),
                since=self._since,
                role=None if me is None else me.role,
                me=self._me,
                up=self.around.up and not self._is_gone,
                read_only=self.around.read_only,
                read_to_end=self._panel.end_seen,
                asking=self._asking,
            )
        )

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "jump" or self._leads_to(str(parameters[0])) is not None

    # What is seen

    def tick(self) -> None:
        self.show()
        if self._approval is not None and waits(self._approval):
            # The other side's clock decides; when ours says that it is over, it is asked.
            self._dirty |= seconds_left(self._approval, self.around.clock()) <= 0

    def show(self) -> None:
        now, approval = self.around.clock(), self._approval
        if approval is not None:
            self._time.show(self._time_lines(approval, now))
        offer = self.offer
        told = self._told + system_text("\n") if self._told.plain else self._told
        self._bar.show(told + offer.words)
        menu = (offer.keys, approval is None, self.around.up)
        if menu != self._menu:
            self._menu = menu
            self.refresh_bindings()

    def _time_lines(self, approval: Approval, now: datetime) -> Content:
        line = time_line(approval, now)
        lookers = lookers_text(self._lookers, now, self._me)
        return line + system_text("\n") + lookers if lookers.plain and waits(approval) else line

    def say(self, words: Content) -> None:
        """A sentence above the offer, until there is something else to say."""
        self._told = words
        self.show()

    @on(RequestPanel.EndSeen)
    def _read_to_the_end(self) -> None:
        self.show()

    def set_stale(self, stale: bool) -> None:
        self._panel.set_stale(stale or self._is_gone)
        self._dirty = True
        self._looked_at = None
        if stale:
            self.workers.cancel_group(self, ITSELF)
            self.workers.cancel_group(self, LOOKING)
            self._lookers = ()
        if self.is_mounted:
            self.show()

    # Freshness

    def heard(self, change: Change) -> None:
        if change.topic in (Topic.APPROVALS, Topic.EVERYTHING) and change.id in (None, str(self._listed.id)):
            self._dirty = True

    def step(self) -> None:
        if self._is_gone:
            return
        if self._dirty and not self._asking and not is_waiting(self, ITSELF):
            self._dirty = False
            self._fetch()
        if self._is_due_to_look() and not is_waiting(self, LOOKING):
            self._looked_at = self.around.clock()
            self._look()

    def look_again(self) -> None:
        self._dirty = True
        self.show()
        if self.around.up:
            self.step()

    @work(group=ITSELF)
    async def _fetch(self) -> None:
        try:
            found = await self.around.link.call(APPROVALS_GET, ApprovalAsked(approval_id=self._listed.id))
        except NotFound:
            self._is_gone = True
            self._panel.set_stale(True)
            self.say(system_text(GONE_FOR_GOOD, "$text-warning"))
        except GONE:
            self._dirty = True
        except ConsoleError as error:
            self.post_message(Refused(error))
        else:
            self.take(found)

    def take(self, found: Approval) -> None:
        """This is how it stands now."""
        before, self._approval, self._listed = self._approval, found, found
        if before is None or before.envelope != found.envelope:
            # Other words have been read by nobody.
            self._panel.read_anew()
        self._panel.show(approval_sheet(found))
        self.call_after_refresh(self._panel.look)
        self.show()

    # Who else looks

    def _is_due_to_look(self) -> bool:
        if self._approval is None or not waits(self._approval):
            return False
        return self._looked_at is None or self.around.clock() - self._looked_at >= LOOK_AGAIN

    @work(group=LOOKING)
    async def _look(self) -> None:
        approval_id, link = self._listed.id, self.around.link
        try:
            if may_decide(self.around.acting_as):
                looking = Looking(approval_id=approval_id, session=self._session)
                self._lookers = (await link.call(APPROVALS_LOOK, looking)).items
            else:
                self._lookers = (await link.call(APPROVALS_LOOKERS, ApprovalAsked(approval_id=approval_id))).items
        except ConsoleError:
            # The request can be decided without it; it is asked again in a few seconds.
            self._lookers = ()
        self.show()

    def action_lookers(self) -> None:
        self._looked_at = None
        words = lookers_text(self._lookers, self.around.clock(), self._me)
        self.say(words if words.plain else system_text(NOBODY, "$foreground-muted"))

    # Where it leads

    def _leads_to(self, noun: str) -> str | None:
        return str(self._listed.to_agent_id) if noun == "asked" else self.kind.leads_to(noun, self._listed)

    def action_jump(self, noun: str) -> None:
        if (thing_id := self._leads_to(noun)) is not None:
            self.post_message(ThingWanted("agents" if noun == "asked" else noun, thing_id))
