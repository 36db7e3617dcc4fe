"""Keeps the header true: asks for what it tells when something has changed, and calls whoever looks elsewhere."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from textual.app import App

from agent_console.domain.errors import ConsoleError
from agent_console.tui.far_clock import FarClock
from agent_console.tui.link import GONE, Clock, Link, LinkState
from agent_console.tui.terminal import calling
from agent_console.tui.waiting_count import COUNTED, Doorbell, Presence, WaitingCount
from agent_console.tui.widgets.header import HeaderBar, HeaderFacts

if TYPE_CHECKING:
    # What is needed only once there is something to ask waits until the first frame is on the screen.
    from agent_console.domain.approvals import ApprovalListed
    from agent_console.domain.records import Page
    from agent_console.repository.port import Change

POOL, WAITING, WHO = "pool", "waiting", "who"


class HeaderWatch:
    """What is shown in the header of every screen, and what of it has to be asked for again."""

    def __init__(self, app: App[Any], link: Link, clock: Clock, doorbell: Doorbell, presence: Presence) -> None:
        self._app = app
        self._presence = presence
        self._link = link
        self._clock = clock
        self.doorbell = doorbell
        self.facts = HeaderFacts("agent-console", production=False, read_only=False)
        self._dirty = {POOL, WAITING}

    def heard(self, change: "Change | None" = None) -> None:
        """Something has changed, or may have; the count of what waits changes with nothing else. A link that has
        just come up knows who one is."""
        from agent_console.repository.port import Topic

        self._dirty.add(POOL)
        if change is None or change.topic in (Topic.APPROVALS, Topic.EVERYTHING):
            self._dirty.add(WAITING)
        if change is not None and change.topic in (Topic.USERS, Topic.EVERYTHING):
            self._dirty.add(WHO)

    def step(self) -> None:
        """One question of each kind at a time."""
        from agent_console.tui.panes.pane import ask, is_waiting

        if self._link.status.state is not LinkState.UP:
            return
        asking = {POOL: self._fetch_pool, WAITING: self._fetch_waiting, WHO: self._fetch_who}
        for question in [question for question in self._dirty if not is_waiting(self._app, question)]:
            self._dirty.remove(question)
            ask(self._app, question, partial(self._asked, question, asking[question]))

    async def _asked(self, question: str, fetch: Callable[[], Awaitable[None]]) -> None:
        """Asked again at once when nobody answered; what was refused would be refused again."""
        try:
            await fetch()
        except GONE:
            self._dirty.add(question)
        except ConsoleError:
            return

    async def _fetch_who(self) -> None:
        """Which keys there are depends on it."""
        before = self._link.me
        await self._link.learn_who()
        if self._link.me != before:
            self._app.refresh_bindings()
            self.show()

    async def _fetch_pool(self) -> None:
        from agent_console.domain.records import Nothing
        from agent_console.repository.operations import POOL_STATUS

        asked = monotonic()
        pool = await self._link.call(POOL_STATUS, Nothing())
        if isinstance(self._clock, FarClock):
            self._clock.hear(pool.at, asked, monotonic())
        self.facts = replace(self.facts, pool=pool)
        self.show()

    async def _fetch_waiting(self) -> None:
        from agent_console.domain.approvals import ApprovalQuery
        from agent_console.repository.operations.approvals import APPROVALS_LIST

        self._count(await self._link.call(APPROVALS_LIST, ApprovalQuery(limit=COUNTED)))

    def _count(self, page: "Page[ApprovalListed]") -> None:
        waiting, before = WaitingCount(len(page.items), page.next is not None), self.facts.waiting
        self.facts = replace(self.facts, waiting=waiting)
        self.show()
        is_news = self.doorbell.is_news((str(approval.id) for approval in page.items), more=waiting.more)
        looks = self._presence.looks(focused=self._app.app_focus)
        if is_news and not looks and not self.doorbell.silent:
            self._call(waiting)
            if self.doorbell.may_ring():
                calling.ring(self._app)
        elif waiting != before and calling.has_title():
            # Somebody else has decided.
            self._call(waiting)

    def _call(self, waiting: WaitingCount) -> None:
        if waiting.count or waiting.more:
            calling.set_title(self._app, f"({waiting}) agent-console: {waiting.words} to decide")
        else:
            self.noticed()

    def noticed(self) -> None:
        """Somebody looks at the terminal again: there is nobody left to call."""
        calling.restore_title(self._app)

    def show(self) -> None:
        """Every screen has its own header, also those that lie below."""
        self.facts = replace(
            self.facts,
            me=self._link.me,
            link=self._link.status,
            answered_at=self._link.answered_at,
            now=self._clock(),
        )
        for screen in self._app.screen_stack:
            for bar in screen.query(HeaderBar):
                bar.facts = self.facts
