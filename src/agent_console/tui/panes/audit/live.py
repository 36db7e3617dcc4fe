"""The audit trail, live: it goes with what comes in, or stands still and counts it."""

from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input

from agent_console.domain.audit_proof import Verified
from agent_console.domain.audit_trail import LIMIT_MAX, AuditFilter, AuditTail
from agent_console.domain.errors import ConsoleError
from agent_console.domain.ids import Id, UserId
from agent_console.domain.permissions import GRANTS
from agent_console.domain.records import Nothing, Page, Record
from agent_console.repository.operations.audit_trail import AUDIT_SEAL_STATUS, AUDIT_TAIL, AUDIT_VERIFY
from agent_console.repository.port import Change, Topic
from agent_console.tui.agent_text import agent_text
from agent_console.tui.dialogs.proof_dialog import ProofDialog
from agent_console.tui.dialogs.trail_export import TrailExport
from agent_console.tui.link import GONE
from agent_console.tui.lists.loaded import ListSoFar
from agent_console.tui.panes.audit.chain import ChainState, chain_line
from agent_console.tui.panes.audit.filter_line import AuditFilterLine
from agent_console.tui.panes.audit.filters import filter_words, read_filter
from agent_console.tui.panes.audit.lists import audit_kind, group_fields, narrowed_to
from agent_console.tui.panes.audit.pause import Pause, pause_words
from agent_console.tui.panes.audit.so_far import ActsSoFar
from agent_console.tui.panes.list_pane import AHEAD, ListPane
from agent_console.tui.panes.pane import is_waiting
from agent_console.tui.panes.surroundings import Surroundings
from agent_console.tui.wanted import Refused
from agent_console.tui.widgets.changing_line import ChangingLine
from agent_console.tui.widgets.virtual_table_messages import CursorMoved

KEPT = 2_000
"""Who follows for days keeps so many acts; the older ones are asked for again when somebody scrolls there."""
CHAIN = "chain"
COUNTING = "counting"
ABOVE = "above"
NOTHING_MATCHES = "Nothing matches.\n/ and f show other acts."
BEGUN_ANEW = "More came in than one page holds: the list begins at the newest. What you read lies further down."


class AuditPane(ListPane):
    """On the newest act the list follows; anywhere else it is paused, and says how many came in meanwhile."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "new", "Drop old months…", id="list.new", show=False),
        Binding("slash", "filter", "Search", id="audit.filter"),
        Binding("p", "pause", "Pause", id="audit.pause"),
        Binding("home,g", "follow", "Newest", priority=True, show=False, id="audit.follow"),
        Binding("V", "verify", "Verify", id="audit.verify"),
        Binding("E", "export", "Export", id="audit.export"),
    ]

    pause: Pause | None = None
    chain = ChainState()
    _typed = AuditFilter()

    def __init__(self, around: Surroundings) -> None:
        self._seen: dict[str, set[Id]] = {}
        super().__init__(audit_kind(lambda: self._typed, lambda: around.link.me), around)
        self._chain_is_dirty = True
        self._chain_was_asked_for = False
        self._may_have_come = False
        self._counting_was_refused = False
        self._sealed_when_asked = 0
        self._catching_up = False
        self._chain_line = ChangingLine(classes="heading")
        self._filter_line = AuditFilterLine()

    def compose(self) -> ComposeResult:
        with Horizontal():
            with Vertical(classes="list"):
                yield self._heading_line
                yield self._chain_line
                yield self._filter_line
                yield self.table
            yield self._side

    @property
    def has_answer(self) -> bool:
        return super().has_answer and self.chain.status is not None

    @property
    def narrowed(self) -> tuple[object, ...]:
        return (*super().narrowed, self._typed)

    @property
    def empty_words(self) -> str:
        is_plain = self.is_searching or self.wanted == AuditFilter()
        return super().empty_words if is_plain else NOTHING_MATCHES

    @property
    def wanted(self) -> AuditFilter:
        """What is shown: what was typed, and of that the group."""
        return narrowed_to(self._typed, self._group_key, self._me)

    @property
    def _group_key(self) -> str:
        return self.kind.groups[self._group].key

    @property
    def _me(self) -> UserId | None:
        return None if self._link.me is None else self._link.me.user_id

    @property
    def acts(self) -> ActsSoFar:
        return _acts_in(self._loaded)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        match action:
            case "follow":
                return not isinstance(self.app.focused, Input)
            case "export":
                return self.around.up
            case "verify":
                me = self._link.me
                return self.around.up and me is not None and AUDIT_VERIFY.permission in GRANTS[me.role]
        return super().check_action(action, parameters)

    def words_now(self, action: str) -> str | None:
        return "Follow" if action == "pause" and self.pause is not None else None

    # Freshness

    def heard(self, change: Change) -> None:
        super().heard(change)
        if change.topic in (Topic.AUDIT, Topic.EVERYTHING):
            self._chain_is_dirty = self._may_have_come = True
            self._counting_was_refused = False

    def step(self) -> None:
        super().step()
        if not self._chain_was_asked_for:
            self._chain_was_asked_for = True
            self._look_at_chain()
        if self.pause is None or self._counting_was_refused or is_waiting(self, COUNTING):
            return
        if self._may_have_come or self.pause.behind:
            self._may_have_come = False
            self._count_new(self.pause)

    def tick(self) -> None:
        """The chain is looked at once a second at most, however fast acts are sealed."""
        super().tick()
        if self._chain_is_dirty and self.around.up:
            self._look_at_chain()
        self._show_chain()

    def set_stale(self, stale: bool) -> None:
        super().set_stale(stale)
        self._chain_is_dirty = self._may_have_come = True

    def _look_at_chain(self) -> None:
        if not is_waiting(self, CHAIN):
            self._chain_is_dirty = False
            self._fetch_chain()

    @work(group=CHAIN)
    async def _fetch_chain(self) -> None:
        try:
            status = await self._link.call(AUDIT_SEAL_STATUS, Nothing())
        except ConsoleError as error:
            # The list asks for the same right over the same line, and tells what is wrong.
            self._chain_is_dirty = isinstance(error, GONE)
            return
        # Not before the answer: meanwhile somebody may have proved the chain.
        self.chain = self.chain.sealed(status)
        self._show_chain()

    def _show_chain(self) -> None:
        self._chain_line.show(chain_line(self.chain, self._clock()))

    async def _fetch(self, after: str | None, limit: int) -> None:
        if after is None:
            # What was sealed by now is in the answer; only what is sealed later can be new to whoever pauses.
            self._sealed_when_asked = self.chain.position
        await super()._fetch(after, limit)

    def stand_still(self) -> None:
        """Who follows keeps only the newest acts; whoever stands still keeps them all."""
        self._pause()

    def _take(self, loaded: ListSoFar[Record]) -> None:
        acts, before = _acts_in(loaded), self.table.cursor_id
        if self.table.cursor_index:
            # Whoever has just left the newest is not taken back to it.
            self._pause()
        if self.pause is None:
            acts = acts.cut_to(KEPT)
        elif acts.pinned is None:
            self.pause = self._pause_at(acts)
            acts = acts.pinned_here()
        for act in acts.records:
            if (who := act.actor_user_id or act.actor_agent_id) is not None:
                self._seen.setdefault(act.actor, set()).add(who)
        super()._take(acts)
        if self.pause is None and acts.records:
            self.table.move_to(str(acts.records[0].id))
        if self._catching_up and before is not None and acts.index_of(before) is None:
            self.notify(BEGUN_ANEW, severity="warning", markup=False)

    # Follow and pause

    @on(CursorMoved)
    def _follow_or_pause(self) -> None:
        place = self.table.cursor_index
        if place is None:
            return
        if place > 0:
            self._pause()
        elif self.pause is not None and self.pause.new:
            self._catch_up()
        elif self.pause is not None and not self.pause.behind:
            self._go_on()

    def _pause(self) -> None:
        if self.pause is None and self.acts.records:
            self.pause = self._pause_at(self.acts)
            self._loaded = self.acts.pinned_here()
            self._show_heading()
            self.refresh_bindings()

    def _pause_at(self, acts: ActsSoFar) -> Pause | None:
        if not acts.records:
            return self.pause
        return Pause(acts.records[0].seq, max(acts.last_sealed, self._sealed_when_asked))

    def _go_on(self) -> None:
        self.pause = None
        self._loaded = self.acts.unpinned()
        self._dirty = True
        self._show_heading()
        self.refresh_bindings()

    def _catch_up(self) -> None:
        """Whoever comes to the top of a list that stands still finds what came in above, and keeps the place."""
        if self.pause is not None and self.around.up and not is_waiting(self, ABOVE):
            self._fetch_above(min(LIMIT_MAX, self.pause.new + self.table.size.height + AHEAD))

    @work(group=ABOVE)
    async def _fetch_above(self, limit: int) -> None:
        self._sealed_when_asked = self.chain.position
        try:
            page: Page[Record] = await self._link.call(self.kind.list_operation, self.asked(limit, None))
        except ConsoleError as error:
            self.post_message(Refused(error))
            return
        if self.pause is not None:
            self._catching_up = True
            self._take(self.acts.unpinned().merged(None, page))
            self._catching_up = False

    @work(group=COUNTING)
    async def _count_new(self, pause: Pause) -> None:
        given = self.wanted.model_dump(exclude_none=True)
        asked = AuditTail.model_validate(given | {"after_position": pause.counted_to, "limit": LIMIT_MAX})
        try:
            page = await self._link.call(AUDIT_TAIL, asked)
        except ConsoleError as error:
            self._may_have_come = True
            self._counting_was_refused = not isinstance(error, GONE)
            return
        if self.pause == pause:
            self.pause = pause.counting(page)
            self._show_heading()
        else:
            self._may_have_come = True

    def action_pause(self) -> None:
        if self.pause is None:
            self._pause()
        else:
            self.action_follow()

    def action_follow(self) -> None:
        """To the newest, and from there on with whatever comes."""
        if self.pause is not None:
            self._go_on()
        self.table.action_first_row()
        if self.around.up:
            self.refetch()

    # What is seen

    def _heading(self) -> Content:
        told = self._typed.model_copy(update=dict.fromkeys(group_fields(self._group_key, self._me)))
        words = filter_words(told, self._seen, self._me)
        shown = super()._heading() + agent_text(f"  {words}  ", "$foreground-muted", limit=200)
        return shown + pause_words(self.pause)

    def _above(self) -> str:
        """How many came in is told by the pause."""
        return ""

    # Filters

    def action_filter(self) -> None:
        self._filter_line.open()

    @on(AuditFilterLine.Left)
    def _filter_left(self) -> None:
        self.table.focus()

    @on(AuditFilterLine.Given)
    def _filtered(self, message: AuditFilterLine.Given) -> None:
        try:
            wanted = read_filter(message.text, self._clock(), self._seen, self._me)
        except ConsoleError as error:
            self._filter_line.refuse(str(error))
            return
        self._filter_line.action_leave()
        self.search(wanted)

    def search(self, wanted: AuditFilter) -> None:
        """Show only what matches, from the newest on."""
        if self.can_begin_anew():
            self._typed, self._group = wanted, 0
            self.begin_anew()

    def begin_anew(self) -> None:
        self.pause, self._catching_up = None, False
        super().begin_anew()

    # Verify and export

    def action_verify(self) -> None:
        self.app.push_screen(ProofDialog(self._link, self._clock), self._verified)

    def _verified(self, found: Verified | None) -> None:
        if found is not None:
            self.chain = self.chain.proved(found)
            self._show_chain()

    def action_export(self) -> None:
        words = filter_words(self.wanted, self._seen, self._me, any_time="from the first act on")
        stem = f"audit-{self._clock():%Y%m%dT%H%M%SZ}"
        self.app.push_screen(TrailExport(self._link, self.wanted, words, stem, self.chain.position))


def _acts_in(loaded: ListSoFar[Record]) -> ActsSoFar:
    if not isinstance(loaded, ActsSoFar):
        raise TypeError("the audit trail is held in the order of its seq")
    return loaded
