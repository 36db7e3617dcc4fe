"""Work on many things, watched: what would be done, how far it is, what was refused and why."""

from collections.abc import Iterator
from enum import Enum, auto
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from agent_console.domain.batches import Batch
from agent_console.domain.errors import ConsoleError
from agent_console.repository.operations.fields import shown_value
from agent_console.tui.actions import Action
from agent_console.tui.agent_text import agent_block, agent_text, system_text
from agent_console.tui.batches import Looked, done_in_batches, examples_of
from agent_console.tui.dialogs.dialog import Dialog
from agent_console.tui.dialogs.operation_form import DoIt
from agent_console.tui.link import Link, NotSent, is_unsure
from agent_console.tui.looks import progress_bar

NOT_KNOWN = "Whether the batch under way was done is not known: see the list."
NOT_SENT = "The next batch was not sent: what is left was not touched."


class Phase(Enum):
    ASKING = auto()
    DOING = auto()
    STOPPING = auto()
    STOPPED = auto()
    DONE = auto()


HINTS = {
    Phase.ASKING: "↑ ↓ read on   Esc leave without doing it",
    Phase.DOING: "Esc stop after this batch",
    Phase.STOPPING: "Stopping after this batch …",
    Phase.STOPPED: "↑ ↓ read on   Esc close",
    Phase.DONE: "↑ ↓ read on   Esc close",
}


class BatchDialog(Dialog[bool]):
    """True when all of it was done; False when it was not begun, or not brought to its end."""

    LINES_AROUND = 15
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Stop or leave", id="batch.close"),
        Binding("down", "read(1)", "Down", show=False, id="batch.down"),
        Binding("up", "read(-1)", "Up", show=False, id="batch.up"),
    ]

    def __init__(self, action: Action, about: Content, looked: Looked, link: Link) -> None:
        super().__init__()
        self._action = action
        self._about: Content = about
        self._looked = looked
        self._link = link
        self._so_far = Batch(done=0, left=looked.found.left, left_capped=looked.found.left_capped)
        self._problem = ""
        self.phase = Phase.ASKING
        self._do_it = DoIt(self._doing_words(), danger=action.danger)
        self._counts = Static(system_text(""))
        self._lines = Static(system_text(""))
        self._scrolled = VerticalScroll(self._lines, classes="scrolls lines", can_focus=False)
        self._hint = Static(system_text(""), classes="hint")

    def _doing_words(self) -> str:
        verb = self._action.operation.action.removesuffix("_many").replace("_", " ")
        return f"{verb} {counted(self._looked.found)}"

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(self._about, classes="about")
            yield self._counts
            yield self._scrolled
            yield self._do_it
            yield self._hint

    def on_mount(self) -> None:
        self._do_it.display = bool(self._looked.found.left)
        self._do_it.focus()
        self._show()

    # What is seen

    def _show(self) -> None:
        self._counts.update(self._counts_now())
        self._lines.update(self._lines_now())
        self._hint.update(system_text(HINTS[self.phase], "$foreground-muted"))

    def _counts_now(self) -> Content:
        if self.phase is Phase.ASKING:
            return self._found_words()
        told = system_text(f"{self._bar()}{tally(self._so_far)}", "bold")
        if self.phase is Phase.STOPPED:
            words = self._problem or "Stopped: what is left was not touched."
            told += system_text("\n") + agent_block(words, "$text-warning")
        if self.phase is Phase.DONE:
            told = system_text("✓ Done: ", "bold $text-success") + told
        return told

    def _found_words(self) -> Content:
        found = self._looked.found
        if not found.left:
            return system_text("Nothing would be changed.", "bold $text-warning") + self._refused_words(found)
        return system_text(f"{counted(found)} would be changed.", "bold") + self._refused_words(found)

    def _refused_words(self, found: Batch) -> Content:
        unchanged = f" {found.unchanged:,} are so already." if found.unchanged else ""
        refused = f" {found.refused_count:,} would be refused." if found.refused_count else ""
        return system_text(f"{unchanged}{refused}", "$text-warning")

    def _bar(self) -> str:
        """How far it is, where that is known."""
        seen = self._so_far.done + self._so_far.unchanged + self._so_far.refused_count
        whole = seen + self._so_far.left
        if self.phase is Phase.DONE or self._so_far.left_capped or not whole:
            return ""
        return f"{progress_bar(100 * seen / whole)}  "

    def _lines_now(self) -> Content:
        return system_text("\n").join(list(self._examples_and_refusals()))

    def _examples_and_refusals(self) -> Iterator[Content]:
        batch = self._looked.found if self.phase is Phase.ASKING else self._so_far
        if self.phase is Phase.ASKING and (examples := examples_of(batch)):
            yield system_text("The first of them:", "$foreground-muted")
            for example in examples:
                words = "  ".join(shown_value(value) for name, value in example if name != "created_at")
                yield agent_text(f"  {words}", limit=200)
        if batch.refused:
            yield system_text("Refused:", "$text-warning")
            for refusal in batch.refused:
                named = "" if refusal.id in refusal.why else f"{refusal.id}  "
                yield agent_text(f"  {named}{refusal.why}", limit=300)
        if batch.refused_count > len(batch.refused):
            yield system_text(f"  and {batch.refused_count - len(batch.refused):,} more", "$foreground-muted")

    # What is done

    @on(DoIt.Pressed)
    def _begin(self) -> None:
        if self.phase is Phase.ASKING and self._looked.found.left:
            self._go(Phase.DOING)
            self._work()

    @work
    async def _work(self) -> None:
        more = True
        try:
            async for so_far in done_in_batches(self._link, self._action.operation, self._looked.requests):
                self._so_far, more = so_far.batch, so_far.more
                if self.phase is Phase.STOPPING:
                    break
                self._show()
        except ConsoleError as error:
            self._problem = "\n".join([str(error), *_what_became_of_it(error)])
        self._go(Phase.STOPPED if more or self._problem else Phase.DONE)

    def _go(self, phase: Phase) -> None:
        self.phase = phase
        self._do_it.display = False
        self._show()

    def action_read(self, direction: int) -> None:
        self._scrolled.scroll_relative(y=direction, animate=False)

    def action_leave(self) -> None:
        """Never in the middle of a batch: what is told to be done is what was done."""
        match self.phase:
            case Phase.DOING:
                self.phase = Phase.STOPPING
                self._show()
            case Phase.ASKING | Phase.STOPPED | Phase.DONE:
                self.dismiss(self.phase is Phase.DONE)


def _what_became_of_it(error: ConsoleError) -> tuple[str, ...]:
    if isinstance(error, NotSent):
        return (NOT_SENT,)
    return (NOT_KNOWN,) if is_unsure(error) else ()


def counted(batch: Batch) -> str:
    return f"{batch.left:,} or more" if batch.left_capped else f"{batch.left:,}"


def tally(batch: Batch) -> str:
    unchanged = f", {batch.unchanged:,} unchanged" if batch.unchanged else ""
    return f"{batch.done:,} done{unchanged}, {batch.refused_count:,} refused, {counted(batch)} left"
