"""What waits for a person, the next to expire first; and what was decided, the newest first."""

from datetime import datetime
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content

from agent_console.domain.approvals import (
    APPROVAL_FILTERS,
    BEGINS,
    ApprovalAsked,
    ApprovalHistoryQuery,
    ApprovalListed,
    ApprovalQuery,
)
from agent_console.domain.ids import ApprovalId
from agent_console.domain.records import Request
from agent_console.domain.spans import ago
from agent_console.domain.states import ApprovalState
from agent_console.repository.operations import AnyOperation
from agent_console.repository.operations.approvals import APPROVALS_GET, APPROVALS_HISTORY, APPROVALS_LIST
from agent_console.repository.port import Topic
from agent_console.tui.agent_text import agent_block, agent_text, system_text
from agent_console.tui.facts import Fact, FactSheet, Heading, Quote, SheetPart
from agent_console.tui.lists.cursor_list import CursorList
from agent_console.tui.panes.approvals.bulk import MOST, ApprovalBulkScreen
from agent_console.tui.panes.approvals.looks import (
    NAME_SHOWN,
    countdown,
    decided_text,
    hop_text,
    pair_text,
    state_text,
    waits,
)
from agent_console.tui.panes.approvals.offer import may_decide
from agent_console.tui.panes.approvals.screen import approval_screen
from agent_console.tui.panes.list_kind import ListGroup, ListKind
from agent_console.tui.panes.list_pane import PAGES_AT_ONCE, ListPane
from agent_console.tui.panes.surroundings import Surroundings
from agent_console.tui.wanted import RecordWanted, ScreenWanted
from agent_console.tui.widgets.virtual_table_columns import Column

PENDING, DECIDED = "pending", "decided"
GROUPS = (
    ListGroup(PENDING, "waiting for a person", among="those waiting for a person"),
    ListGroup(
        DECIDED,
        "decided",
        among="those decided",
        empty="Nothing has been decided so far.\nf shows what waits for a person.",
    ),
)
COLUMNS = (
    Column("state", "State", 13, min_width=12),
    Column("pair", "From → to", None, min_width=21, narrow_to=14),
    Column("asks", "Asks", None, min_width=17, narrow_to=8),
    Column("hop", "Hop", 4, drop=1),
    Column("when", "Since, by", 16, drop=2),
)
ASKS_SHOWN = 120
MIXED = "Only requests of one agent to one other can be decided together."
NOT_PENDING = "What is decided already can't be decided again; unmark it first."


def approval_cells(approval: ApprovalListed, now: datetime) -> tuple[Content, ...]:
    return (
        countdown(approval, now) if waits(approval) else state_text(approval),
        pair_text(approval, ""),
        agent_text(first_line(approval.begins), "$foreground-muted", limit=ASKS_SHOWN),
        hop_text(approval, "/"),
        _since(approval, now),
    )


def first_line(words: str) -> str:
    """Of a request, the first line that says something."""
    return next((line.strip() for line in words.splitlines() if line.strip()), "")


def _since(approval: ApprovalListed, now: datetime) -> Content:
    if waits(approval):
        return system_text(ago(approval.created_at, now), "$foreground-muted")
    when = system_text(f"{ago(approval.decided_at, now)} ", "$foreground-muted")
    return when + agent_text(approval.decided_by or "nobody", limit=NAME_SHOWN)


def approval_facts(approval: ApprovalListed, now: datetime) -> FactSheet:
    """Beside the list: enough to choose what to open, never enough to decide."""
    state = countdown(approval, now) if waits(approval) else decided_text(approval, now, None)
    facts: list[SheetPart] = [
        Heading(pair_text(approval)),
        Fact("state", state),
        Fact("id", system_text(str(approval.id))),
        Fact("hop", hop_text(approval, " of ")),
        Fact("route", system_text(f"policy version {approval.route_version}")),
        Fact("waiting since", system_text(f"{ago(approval.created_at, now)} ago")),
    ]
    if approval.run_id is not None:
        facts.append(Fact("run made", system_text(str(approval.run_id))))
    asks = Heading(system_text("how it begins (Enter opens it):", "bold"))
    return FactSheet((*facts, asks, Quote(agent_block(_beginning(approval)))))


def _beginning(approval: ApprovalListed) -> str:
    return f"{approval.begins} …" if len(approval.begins) >= BEGINS else approval.begins


def asked_for(group: str, limit: int, after: str | None) -> Request:
    if group == DECIDED:
        return ApprovalHistoryQuery(limit=limit, after=after)
    return ApprovalQuery(limit=limit, after=after)


def _run_of(approval: ApprovalListed) -> object | None:
    """What it led to; while it waits, what it is part of."""
    return approval.run_id or approval.parent_run_id


APPROVALS = ListKind(
    name="approvals",
    title="Approvals",
    topics=frozenset({Topic.APPROVALS}),
    columns=COLUMNS,
    newest_first=False,
    list_operation=APPROVALS_LIST,
    query=asked_for,
    get_operation=APPROVALS_GET,
    asked=lambda row_id: ApprovalAsked(approval_id=ApprovalId.parse(row_id)),
    cells=approval_cells,
    facts=approval_facts,
    empty="Nothing waits for a person.\nf shows what was decided.",
    groups=GROUPS,
    jumps={
        "agents": lambda approval: approval.from_agent_id,
        "threads": lambda approval: approval.thread_id,
        "runs": _run_of,
        "routes": lambda approval: approval.route_id,
    },
    screen=approval_screen,
    so_far=CursorList,
)


class ApprovalsPane(ListPane):
    """Opens what is decided one by one, and what is marked together if it is of one pair."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("a", "act", "Decide", id="list.act")]

    def __init__(self, around: Surroundings) -> None:
        super().__init__(APPROVALS, around)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        match action:
            case "act":
                return self._had_rows and self._shows_pending and may_decide(self.around.acting_as)
            case "save":
                # A list is exported by the operation of its kind, which tells only what waits.
                return self._shows_pending and super().check_action(action, parameters)
        return super().check_action(action, parameters)

    @property
    def _shows_pending(self) -> bool:
        return self.kind.groups[self._group].key == PENDING

    def action_act(self) -> None:
        """A key is about what is marked, or else about the row it was pressed on; it opens, it never decides."""
        marked = tuple(record for record in self._marked_records() if isinstance(record, ApprovalListed))
        if not marked:
            if (record := self._at_cursor()) is not None:
                self.post_message(RecordWanted(self.kind, record))
        elif (problem := together_problem(marked)) is not None:
            self.notify(system_text(problem).plain, severity="warning", markup=False)
        else:
            self.post_message(ScreenWanted(ApprovalBulkScreen(marked, self.around, self._acted)))

    def narrow_to(self, text: str) -> None:
        """Whoever asks for what was decided, or for what waits, is shown the list in which that is."""
        wanted = APPROVAL_FILTERS.read(text).wanted("status")
        pending = {state == ApprovalState.PENDING for state in wanted}
        if self.around.up and len(pending) == 1 and self._shows_pending not in pending:
            self._group = (self._group + 1) % len(self.kind.groups)
            if text == self.filter_text:
                self.begin_anew()
        super().narrow_to(text)

    async def _fetch(self, after: str | None, limit: int) -> None:
        """A page begins where an earlier one ended, perhaps far above what is looked at: then there is a next.

        Where little matches there are many of them; what lies far below is asked for by whoever goes there.
        """
        place: str | None = after
        await super()._fetch(place, limit)
        for _ in range(PAGES_AT_ONCE):
            if (place := self._below(place)) is None:
                return
            await super()._fetch(place, limit)

    def _below(self, place: str | None) -> str | None:
        loaded = self._loaded
        return loaded.joint_below(place, self._fresh.stop) if isinstance(loaded, CursorList) else None

    @property
    def listing(self) -> AnyOperation:
        """What is decided is asked for by an operation of its own."""
        return APPROVALS_LIST if self._shows_pending else APPROVALS_HISTORY


def together_problem(marked: tuple[ApprovalListed, ...]) -> str | None:
    """Why these can't be decided together; None when they can."""
    if not all(map(waits, marked)):
        return NOT_PENDING
    pairs = {(approval.from_agent_id, approval.to_agent_id) for approval in marked}
    if len(pairs) > 1:
        return f"{MIXED} These are of {len(pairs)} pairs."
    return f"At most {MOST} can be decided together; {len(marked)} are marked." if len(marked) > MOST else None
