"""The tree of one request: who asked whom, where it waits and for how long."""

from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content

from agent_console.domain.errors import ConsoleError
from agent_console.domain.ids import RunId
from agent_console.domain.records import PAGE_LIMIT_MAX
from agent_console.domain.runs import TRACE_ROWS, Run, ThreadRunQuery, Trace, TraceAsked, TraceRow
from agent_console.repository.operations.runs import RUNS_IN_THREAD, RUNS_TRACE
from agent_console.repository.port import REFETCH, Change, Topic
from agent_console.tui.actions import row_actions
from agent_console.tui.agent_text import system_text
from agent_console.tui.link import GONE
from agent_console.tui.panes.pane import is_waiting
from agent_console.tui.panes.runs.trace_rows import COLUMNS, row_id, trace_rows
from agent_console.tui.panes.stacked import StackedScreen
from agent_console.tui.panes.surroundings import Surroundings
from agent_console.tui.subject import Subject
from agent_console.tui.wanted import ActionWanted, Refused, ThingWanted
from agent_console.tui.widgets.changing_line import ChangingLine
from agent_console.tui.widgets.rows import ListSource
from agent_console.tui.widgets.virtual_table import VirtualTable
from agent_console.tui.widgets.virtual_table_messages import CursorMoved, RowChosen

TREE = "tree"
TOPICS = frozenset({Topic.RUNS, Topic.APPROVALS, Topic.EVERYTHING})


class TraceScreen(StackedScreen):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "act", "Actions", id="trace.act"),
        Binding("A", "jump('agents')", "Its agent", id="trace.to_agents"),
        Binding("T", "jump('threads')", "Its thread", id="trace.to_threads"),
        Binding("P", "jump('approvals')", "Its approval", id="trace.to_approvals"),
    ]

    def __init__(self, run: Run, around: Surroundings) -> None:
        """Of any run of the tree."""
        super().__init__(around)
        self._of = run
        self._trace: Trace | None = None
        self._runs: dict[RunId, Run] = {}
        self._dirty = True
        self._table = VirtualTable(COLUMNS, ListSource(), empty=system_text("Loading …"), id="trace")
        self._heading = ChangingLine(classes="heading")

    def body(self) -> ComposeResult:
        yield self._heading
        yield self._table

    def on_mount(self) -> None:
        self._table.focus()

    @property
    def crumb(self) -> str:
        return "Who asked whom"

    @property
    def about(self) -> str:
        return f"trace {self._of.trace_id or self._of.id}"

    @property
    def has_answer(self) -> bool:
        return self._trace is not None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        match action:
            case "act":
                return self._run_at_cursor() is not None and self._offers()
            case "jump":
                return self._leads_to(str(parameters[0])) is not None
        return True

    def _offers(self) -> bool:
        from agent_console.tui.panes.runs.lists import RUNS

        role = self.around.acting_as
        return role is not None and bool(row_actions(RUNS.list_operation, role))

    # Freshness

    def heard(self, change: Change) -> None:
        self._dirty = self._dirty or change.topic in TOPICS

    def step(self) -> None:
        if self._dirty and not is_waiting(self, TREE):
            self._dirty = False
            self._fetch()

    def set_stale(self, stale: bool) -> None:
        self._table.stale = stale
        self._dirty = True
        if stale:
            self.workers.cancel_node(self)

    @work(group=TREE)
    async def _fetch(self) -> None:
        """The tree, and the newest runs of its thread: they tell what went wrong, which the tree does not."""
        link = self.around.link
        try:
            trace = await link.call(RUNS_TRACE, TraceAsked(run_id=self._of.id))
            told = await link.call(
                RUNS_IN_THREAD, ThreadRunQuery(thread_id=self._of.thread_id, limit=PAGE_LIMIT_MAX)
            )
        except GONE:
            self._dirty = True
            return
        except ConsoleError as error:
            self.post_message(Refused(error))
            return
        self._runs = {run.id: run for run in (self._of, *told.items)}
        self._trace = trace
        self.tick()
        self.refresh_bindings()

    def tick(self) -> None:
        if self._trace is not None:
            first = self._table.cursor_id is None
            self._table.show(ListSource(trace_rows(self._trace.items, self._runs, self.around.clock())))
            if first:
                self._table.move_to(str(self._of.id))
            self._heading.show(heading_of(self._trace))

    # Keys

    def _row(self, wanted: str | None) -> TraceRow | None:
        rows = self._trace.items if self._trace is not None else ()
        return next((row for row in rows if row_id(row) == wanted), None)

    def _row_at_cursor(self) -> TraceRow | None:
        return self._row(self._table.cursor_id)

    def _run_at_cursor(self) -> Run | None:
        row = self._row_at_cursor()
        return None if row is None or row.run_id is None else self._runs.get(row.run_id)

    def _leads_to(self, noun: str) -> str | None:
        row = self._row_at_cursor()
        if row is None:
            return None
        found = {"agents": row.agent_id, "threads": row.thread_id, "approvals": row.approval_id}[noun]
        return None if found is None else str(found)

    def action_jump(self, noun: str) -> None:
        if (thing_id := self._leads_to(noun)) is not None:
            self.post_message(ThingWanted(noun, thing_id))

    def action_act(self) -> None:
        from agent_console.tui.panes.runs.lists import RUNS

        if (run := self._run_at_cursor()) is not None:
            subject = Subject(RUNS, RUNS.query(RUNS.groups[0].key, 1, None), run)
            self.post_message(ActionWanted(subject, self._acted))

    def _acted(self, done: bool) -> None:
        self.heard(REFETCH)
        if self.around.up:
            self.step()

    @on(RowChosen)
    def _chosen(self, message: RowChosen) -> None:
        """What the key was pressed on, wherever the cursor is by now."""
        if (row := self._row(message.row_id)) is not None:
            self.post_message(ThingWanted("approvals" if row.run_id is None else "runs", message.row_id))

    @on(CursorMoved)
    def _moved(self) -> None:
        self.refresh_bindings()


def heading_of(trace: Trace) -> Content:
    waits = sum(row.approval_id is not None for row in trace.items)
    still = sum(row.run_id is not None and row.ended_at is None for row in trace.items)
    runs = len(trace.items) - waits
    shown = system_text(f"{runs:,} run{'' if runs == 1 else 's'}, {still:,} not ended", "$foreground-muted")
    if waits:
        shown += system_text(f"   ◐ {waits:,} wait{'s' if waits == 1 else ''} for a person", "$text-warning bold")
    if trace.truncated:
        shown += system_text(f"   only the first {TRACE_ROWS:,} are shown", "$text-warning")
    return shown
