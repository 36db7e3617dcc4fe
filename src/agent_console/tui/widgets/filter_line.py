"""The line at the foot of a list to type a filter or a word into, with what may follow offered above it."""

from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from agent_console.domain.filters import FILTER_LENGTH, Filterable, FilterMistake, Known, Offer, quoted
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.widgets.completing import Completing, TypedBefore
from agent_console.tui.widgets.pasted_line import PastedLine

OFFERED_AT_MOST = 12
GAP = 2


@dataclass(frozen=True)
class KnownValues:
    """What there is to filter by; not `complete` when there was more than anybody would look through."""

    values: tuple[str, ...]
    complete: bool = True


NOTHING_KNOWN = KnownValues(())


class FilterLine(Vertical):
    """Hidden until it is opened. Enter gives what was typed, Esc leaves everything as it was.

    With something to filter by it reads what is typed and does not give what can't be read; without, any word
    will do.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", id="filter.leave"),
        Binding("tab", "complete", "Complete", id="filter.complete"),
        Binding("up", "earlier(1)", "Earlier", show=False, id="filter.earlier"),
        Binding("down", "earlier(-1)", "Later", show=False, id="filter.later"),
    ]
    DEFAULT_CSS = """
    FilterLine { height: 2; display: none; background: $panel; }
    FilterLine.open { display: block; }
    FilterLine > .offered { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    FilterLine > .typing { layout: horizontal; height: 1; padding: 0 1; }
    FilterLine > .typing > .question { width: auto; padding: 0 1 0 0; }
    FilterLine > .typing > Input { width: 1fr; background: $panel; }
    """

    class Given(Message):
        """What was typed; empty for nothing at all."""

        def __init__(self, text: str, *, is_filter: bool) -> None:
            super().__init__()
            self.text = text
            self.is_filter = is_filter

    class Left(Message):
        """The keys go back to where they were."""

    class Asked(Message):
        """Somebody types where only the other side knows what there is."""

        def __init__(self, known: Known) -> None:
            super().__init__()
            self.known = known

    def __init__(self) -> None:
        super().__init__()
        self._filterable: Filterable | None = None
        # Filters and words to go to are not each other's history.
        self._typed_before = {True: TypedBefore(), False: TypedBefore()}
        self._known: dict[Known, KnownValues] = {}
        self._offer: Offer | None = None
        self._completing: Completing | None = None
        self._offered = Static(system_text(""), classes="offered")
        self._question = Static(system_text(""), classes="question")
        self._pasted: PastedLine.Told | None = None
        self._input = PastedLine(compact=True, max_length=FILTER_LENGTH)

    def compose(self) -> ComposeResult:
        yield self._offered
        with Container(classes="typing"):
            yield self._question
            yield self._input

    @property
    def is_open(self) -> bool:
        return self.has_class("open")

    def open(self, question: str, text: str, filterable: Filterable | None) -> None:
        self._filterable = filterable
        self._pasted = None
        # What there was the last time may be gone, and what came since is wanted too.
        self._known.clear()
        self._completing = None
        # In a filter blanks part what has to match; a word to go to is what was copied, so far as it is a line.
        self._input.joins = filterable is not None
        self._before.back = 0
        self._question.update(system_text(question, "bold"))
        self._set(text)
        self.add_class("open")
        # At once: the next key may be waiting already, and it is text.
        self.screen.set_focus(self._input)
        self._show_offer()

    def know(self, known: Known, values: KnownValues) -> None:
        """What there is, as the other side told it."""
        self._known[known] = values
        self._show_offer()

    def forget(self, known: Known) -> None:
        """Nobody told it; it is asked for again with the next letter."""
        self._known.pop(known, None)

    @property
    def offered(self) -> tuple[str, ...]:
        """What may follow, with what was typed so far."""
        if self._filterable is None or self._offer is None:
            return ()
        offer = self._offer
        values = offer.values
        if offer.of is not None and not values:
            values = tuple(map(quoted, self._known.get(offer.of.known, NOTHING_KNOWN).values))
        begun = offer.typed.lower().lstrip('"')
        fitting = (value for value in values if value.lower().lstrip('"').startswith(begun))
        return tuple(value for value in fitting if value != offer.typed)[:OFFERED_AT_MOST]

    @property
    def _before(self) -> TypedBefore:
        return self._typed_before[self._filterable is not None]

    def _set(self, text: str, cursor: int | None = None) -> None:
        with self._input.prevent(Input.Changed):
            self._input.value = text
        self._input.cursor_position = len(text) if cursor is None else cursor

    @on(Input.Changed)
    def _typed(self, message: Input.Changed) -> None:
        message.stop()
        self._completing = None
        self._before.back = 0
        self._show_offer()

    @on(PastedLine.Told)
    def _was_pasted(self, message: PastedLine.Told) -> None:
        message.stop()
        self._pasted = message
        self._show_offer()

    @property
    def _remark(self) -> Content | None:
        """What became of a paste, until something else is typed."""
        pasted = self._pasted
        if pasted is None or pasted.value != self._input.value:
            return None
        return system_text(pasted.words, "$text-warning")

    def _show_offer(self) -> None:
        if self._filterable is None:
            words = system_text("Enter goes to the next row with it; n and N go on", "$foreground-muted")
            self._offered.update(self._remark or words)
            return
        self._offer = self._filterable.offer(self._input.value, self._input.cursor_position)
        asked = self._offer.of
        if asked is not None and asked.known not in (Known.NOWHERE, Known.LISTED, *self._known):
            self._known[asked.known] = NOTHING_KNOWN
            self.post_message(self.Asked(asked.known))
        self._offered.update(self._remark or self._offer_words())

    def _offer_words(self) -> Content:
        offered = self.offered
        if not offered:
            qualifier = None if self._offer is None else self._offer.of
            words = "Enter filters, Esc leaves" if qualifier is None else qualifier.words
            return agent_text(words, "$foreground-muted") + self._only_so_many()
        first = agent_text(offered[0], "bold", limit=60).pad_right(GAP)
        others = (agent_text(value, "$foreground-muted", limit=60).pad_right(GAP) for value in offered[1:])
        shown = system_text("").join([first, *others]) + self._only_so_many()
        return system_text("Tab", "$foreground-muted").pad_right(1) + shown

    def _only_so_many(self) -> Content:
        qualifier = None if self._offer is None else self._offer.of
        known = NOTHING_KNOWN if qualifier is None else self._known.get(qualifier.known, NOTHING_KNOWN)
        words = "" if known.complete else f"  Only the first {len(known.values):,} are offered."
        return system_text(words, "$foreground-muted")

    def action_complete(self) -> None:
        """The first that fits, and with every further Tab the next of them."""
        if self._completing is not None:
            self._completing = self._completing.next()
        elif self._offer is not None:
            offer = self._offer
            self._completing = Completing.between(self._input.value, offer.start, offer.end, self.offered)
        if (completing := self._completing) is None:
            return
        self._set(completing.text, completing.cursor)
        if completing.is_only_one:
            self._completing = None
            self._show_offer()

    def action_earlier(self, steps: int) -> None:
        """What was typed before, the latest first; below it is what was being typed."""
        self._completing = None
        self._set(self._before.go(steps, self._input.value))
        self._show_offer()

    @on(Input.Submitted)
    def _submitted(self, message: Input.Submitted) -> None:
        message.stop()
        text = message.value.strip()
        if self._filterable is not None and (mistake := _mistake(self._filterable, text)) is not None:
            self._input.cursor_position = mistake.at + len(message.value) - len(message.value.lstrip())
            self._offered.update(agent_text(f"✗ {mistake}", "$text-error", limit=200))
            return
        self._before.add(text)
        self._close()
        self.post_message(self.Given(text, is_filter=self._filterable is not None))

    def action_leave(self) -> None:
        self._close()

    def _close(self) -> None:
        self.remove_class("open")
        self.post_message(self.Left())


def _mistake(filterable: Filterable, text: str) -> FilterMistake | None:
    try:
        filterable.read(text)
    except FilterMistake as mistake:
        return mistake
    return None
