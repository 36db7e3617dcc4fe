"""A thread as it is read and written."""

from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal

from agent_console.domain.errors import ConsoleError, NotFound
from agent_console.domain.ids import RunId
from agent_console.domain.messages import Message
from agent_console.domain.records import Record
from agent_console.domain.threads import Participant, Thread, ThreadAsked
from agent_console.repository.operations.threads import THREADS_GET
from agent_console.repository.port import REFETCH, Change, Topic
from agent_console.tui.actions import row_actions
from agent_console.tui.facts import FactSheet
from agent_console.tui.link import GONE
from agent_console.tui.panes.conversation.heading import Status, heading_of, status_line, thread_title
from agent_console.tui.panes.conversation.held import Gap
from agent_console.tui.panes.conversation.messages import message_kind, run_behind
from agent_console.tui.panes.conversation.participants import every_participant, participant_sheet, participants_of
from agent_console.tui.panes.conversation.places import EXAMPLES, Place, place_of
from agent_console.tui.panes.conversation.talk import GOING, Talk
from agent_console.tui.panes.conversation.writing import Writing
from agent_console.tui.panes.list_kind import ListKind
from agent_console.tui.panes.list_pane import SIDE_BY_SIDE
from agent_console.tui.panes.pane import is_waiting
from agent_console.tui.panes.runs.lists import runs_in
from agent_console.tui.panes.runs.trace_screen import TraceScreen
from agent_console.tui.panes.stacked import StackedScreen
from agent_console.tui.panes.surroundings import Surroundings
from agent_console.tui.subject import Subject
from agent_console.tui.wanted import ActionWanted, ListWanted, RecordWanted, Refused, ScreenWanted, ThingWanted
from agent_console.tui.widgets.changing_line import ChangingLine
from agent_console.tui.widgets.detail import DetailPanel
from agent_console.tui.widgets.prompt_line import PromptLine
from agent_console.tui.widgets.tall_list import TallList

ITSELF, TREE = "itself", "tree"
READING_KEYS = frozenset({"write", "search", "go", "tree", "act", "participants", "runs", "send", "jump"})
NOBODY_ACTED = "Nobody was asked to act in this thread."
IT_ASKED_NOBODY = "This message asked nobody to act; v lists the runs of the thread."
GONE_FOR_GOOD = "There is no such thread that you may read. This is the last that was known of it."


class ConversationScreen(StackedScreen):
    """Opens at the newest message, or at the first one of a run."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back", id="conversation.back"),
        Binding("q", "close", "Leave the thread", id="conversation.close", show=False),
        Binding("c", "write", "Write", id="conversation.write"),
        Binding("slash", "search", "Search", key_display="/", id="conversation.search"),
        Binding("number_sign", "go", "Go to", key_display="#", id="conversation.go"),
        Binding("t", "tree", "Tree", id="conversation.tree"),
        Binding("a", "act", "Actions", id="conversation.act"),
        Binding("p", "participants", "Who takes part", id="conversation.participants", show=False),
        Binding("v", "runs", "Its runs", id="conversation.runs", show=False),
        Binding("S", "send", "Send the draft", id="conversation.send", show=False),
        Binding("A", "jump('agents')", "Its agent", id="conversation.to_agents", show=False),
        Binding("U", "jump('runs')", "Its run", id="conversation.to_runs", show=False),
    ]

    def __init__(
        self, kind: ListKind, record: Record, around: Surroundings, *, run_id: RunId | None = None
    ) -> None:
        super().__init__(around)
        if not isinstance(record, Thread):
            raise TypeError(f"{type(record).__name__} is no thread")
        self._kind = kind
        self.thread = record
        self._participants: tuple[Participant, ...] | None = None
        self._is_gone = False
        self._dirty = True
        self._heading = ChangingLine(classes="heading")
        self.talk = Talk(around, record.id, None if run_id is None else Place(run_id=run_id))
        self._side = DetailPanel(classes="side")
        self._status = ChangingLine(classes="status")
        self._keys_for: tuple[object, ...] = ()
        self._prompt = PromptLine()
        self.writing = Writing(around, record.id)

    def body(self) -> ComposeResult:
        yield self._heading
        with Horizontal():
            yield self.talk
            yield self._side
        yield self._status
        yield self._prompt
        yield self.writing

    def on_mount(self) -> None:
        self.talk.focus()
        self._show_heading()

    @property
    def crumb(self) -> str:
        return thread_title(self.thread)

    @property
    def about(self) -> str:
        return f"threads {self.thread.id}"

    @property
    def has_answer(self) -> bool:
        if is_waiting(self, TREE) or is_waiting(self.talk, GOING):
            return False
        return (self.talk.has_read and self._participants is not None) or self._is_gone

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What can't be done here is not on the menu; a draft can be written while there is no connection."""
        may_write = self.thread.can_write and self.thread.archived_at is None and not self.around.read_only
        if action in READING_KEYS and (self.writing.is_open or self._prompt.is_open):
            # They type something now.
            return False
        match action:
            case "write":
                return may_write and not self._is_gone
            case "send":
                return may_write and self.writing.draft.says_something
            case "jump":
                return self._leads_to(str(parameters[0])) is not None
            case "act":
                role = self.around.acting_as
                return role is not None and bool(row_actions(self._kind.list_operation, role))
        return True

    # Freshness

    def heard(self, change: Change) -> None:
        of_this = change.id in (None, str(self.thread.id))
        everything = change.topic is Topic.EVERYTHING
        if everything or (change.topic is Topic.MESSAGES and of_this):
            self.talk.hear()
        self._dirty |= everything or (change.topic is Topic.THREADS and of_this)

    def step(self) -> None:
        if self._is_gone:
            return
        self.talk.step()
        if self._dirty and not is_waiting(self, ITSELF):
            self._dirty = False
            self._fetch()

    def tick(self) -> None:
        self.talk.show_items()
        self._show_side()

    def on_resize(self) -> None:
        self.set_class(self.app.size.width >= SIDE_BY_SIDE, "wide")
        self._show_side()

    def set_stale(self, stale: bool) -> None:
        self.talk.set_stale(stale or self._is_gone)
        self._side.set_stale(stale or self._is_gone)
        self._dirty = True
        if stale:
            self.workers.cancel_node(self)
        self._show_status()

    @work(group=ITSELF)
    async def _fetch(self) -> None:
        link, thread_id = self.around.link, self.thread.id
        try:
            self.thread = await link.call(THREADS_GET, ThreadAsked(thread_id=thread_id))
            self._participants = await every_participant(link, thread_id)
        except NotFound:
            self._lose()
            return
        except GONE:
            self._dirty = True
            return
        except ConsoleError as error:
            self.post_message(Refused(error))
            return
        names = {one.agent_id: one.name for one in self._participants if one.agent_id is not None}
        self.talk.know(names)
        self.writing.know(names)
        self._show_heading()
        self._show_side()
        self.refresh_bindings()

    @on(Talk.Unreadable)
    def _lose(self) -> None:
        self._is_gone = True
        self.talk.set_stale(True)
        self.talk.tell(GONE_FOR_GOOD)
        self.refresh_bindings()

    # What is shown

    def _show_side(self) -> None:
        if self.has_class("wide"):
            facts = self._kind.facts(self.thread, self.around.clock()).parts
            self._side.show(FactSheet((*facts, *participant_sheet(self._participants or ()))))

    def _show_heading(self) -> None:
        self._heading.show(heading_of(self.thread, self._participants))

    @on(Talk.Changed)
    @on(Writing.Changed)
    def _show_status(self) -> None:
        talk, writing = self.talk, self.writing
        has_draft = writing.draft.says_something and not writing.is_open
        remark = talk.remark or ("" if writing.is_open else writing.problem)
        live = self.around.up and not self._is_gone and self.thread.archived_at is None
        status = Status(talk.reading.held, talk.is_at_end, live, talk.seen, talk.hits, has_draft, remark)
        self._status.show(status_line(status))
        keys = (self._leads_to("agents"), self._leads_to("runs"), has_draft, writing.is_open, talk.hits is None)
        if keys != self._keys_for:
            self._keys_for = keys
            self.refresh_bindings()

    # Keys

    @on(TallList.Chosen)
    def _chosen(self, chosen: TallList.Chosen) -> None:
        match self.talk.item(chosen.key):
            case Message() as message:
                self.post_message(RecordWanted(message_kind(self.thread), message))
            case Gap() as gap:
                self.talk.read_into(gap)

    def action_go(self) -> None:
        self._prompt.open("place", f"Go to ({EXAMPLES}):")

    def action_search(self) -> None:
        self._prompt.open("words", "Search the whole thread for:")

    @on(PromptLine.Given)
    def _given(self, message: PromptLine.Given) -> None:
        try:
            if message.asked == "words":
                self.talk.look_for(self.talk.reading.search_for(message.text.strip()))
            else:
                self.talk.go_to_place(place_of(message.text, self.around.clock()))
        except ConsoleError as error:
            self.talk.tell(str(error))

    @on(PromptLine.Left)
    def _left(self) -> None:
        self.talk.focus()

    def action_back(self) -> None:
        """One thing after the other: what is being written, what was looked for, the thread."""
        if self.writing.is_open:
            self.writing.leave()
            self.talk.focus()
        elif self.talk.hits is not None:
            self.talk.look_for(None)
        else:
            self.action_close()

    def action_write(self) -> None:
        self.talk.tell("")
        self.writing.begin()

    def action_send(self) -> None:
        self.writing.send_draft()

    @on(Writing.Said)
    def _said(self) -> None:
        """Whoever said something wants to see it, and what is said to it."""
        self.writing.leave()
        self.talk.focus()
        self.talk.action_newest()
        self.talk.hear()
        self.step()

    # Ways on

    def _leads_to(self, noun: str) -> str | None:
        message = self.talk.message
        if message is None:
            return None
        found = {"agents": message.author_agent_id, "runs": message.run_id}[noun]
        return None if found is None else str(found)

    def action_jump(self, noun: str) -> None:
        if (thing_id := self._leads_to(noun)) is not None:
            self.post_message(ThingWanted(noun, thing_id))

    def action_runs(self) -> None:
        self.post_message(ListWanted(runs_in(self.thread)))

    def action_participants(self) -> None:
        self.post_message(ListWanted(participants_of(self.thread)))

    def action_tree(self) -> None:
        if not is_waiting(self, TREE):
            self._open_tree(self.talk.message)

    @work(group=TREE)
    async def _open_tree(self, message: Message | None) -> None:
        try:
            run = await run_behind(self.around.link, self.thread, message)
        except ConsoleError as error:
            self.talk.tell(str(error))
            return
        if run is None:
            self.talk.tell(NOBODY_ACTED if message is None else IT_ASKED_NOBODY)
        else:
            self.post_message(ScreenWanted(TraceScreen(run, self.around)))

    def action_act(self) -> None:
        query = self._kind.query(self._kind.groups[0].key, 1, None)
        self.post_message(ActionWanted(Subject(self._kind, query, self.thread), self._acted))

    def _acted(self, done: bool) -> None:
        self.heard(REFETCH)
        if self.around.up:
            self.step()
