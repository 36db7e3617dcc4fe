"""A form for one operation: its fields, its refusals, and the key that does it."""

from collections.abc import Mapping
from typing import ClassVar
from uuid import uuid4

from pydantic import BaseModel
from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static

from agent_console.domain.errors import ConsoleError
from agent_console.domain.records import Request
from agent_console.tui.actions import Action
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.dialogs.dialog import Dialog
from agent_console.tui.dialogs.form_fields import FormField, request_from
from agent_console.tui.link import Link, is_unsure
from agent_console.tui.widgets.still_input import StillInput

ONCE = "idempotency_key"
ASKING = "Asking …"
STAY = "Asking … It was sent and may be done already: Esc leaves when the answer is here."
NOT_KNOWN = "Whether it was done is not known."
DONE_ONCE = "Pressed again here it is still done only once."


class DoIt(Widget, can_focus=True):
    """Where an operation is done. What is dangerous needs a key that nobody presses by habit."""

    class Pressed(Message):
        pass

    def __init__(self, words: str, *, danger: bool) -> None:
        super().__init__()
        self._key = "y" if danger else "enter"
        self._words = f"Press y to {words}" if danger else f"Enter: {words}"

    @property
    def words(self) -> str:
        return self._words

    def render(self) -> Content:
        """A key that works only here says so while the cursor is elsewhere."""
        if self.has_focus:
            return system_text(f" {self.words} ", "bold reverse")
        way = " (Tab to here first)" if self._key == "y" else ""
        return system_text(f" {self.words}{way} ", "$foreground-muted")

    def on_key(self, event: events.Key) -> None:
        if event.key == self._key:
            event.stop()
            self.post_message(self.Pressed())


class Fields(VerticalScroll, can_focus=False, inherit_bindings=False):
    """Has no keys of its own: in a form up and down go from field to field."""


class OperationForm(Dialog[BaseModel | None]):
    """Asks for what the operation needs and does it. Nothing typed is lost when it is refused."""

    LINES_AROUND = 14
    ONLY_LOOKS: ClassVar[bool] = False
    """Whether nothing is changed by what it asks, so that one may leave without the answer."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back", id="form.close"),
        Binding("down", "app.focus_next", "Next", show=False, id="form.next"),
        Binding("up", "app.focus_previous", "Previous", show=False, id="form.previous"),
    ]

    def __init__(
        self,
        action: Action,
        about: Content,
        subject: Mapping[str, str | tuple[str, ...]],
        link: Link,
        fields: tuple[FormField, ...],
    ) -> None:
        """`subject` is what the operation addresses; `fields` is what else it has to be told."""
        super().__init__()
        self._action = action
        self._about: Content = about
        self._subject = subject
        self._link = link
        self._fields = fields
        self._asking = False
        # When an answer is lost nobody knows whether it was done. With the same key again it is done once.
        self._own_key = uuid4().hex

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(self._about, classes="about")
            yield Static(system_text(self._action.summary, "$foreground-muted"))
            with Fields(classes="fields scrolls"):
                for field in self._fields:
                    with Vertical(classes="field"):
                        yield Static(_label(field), classes="label")
                        yield StillInput(value=field.default, id=f"field-{field.name}", compact=True)
                        yield Static(system_text(""), id=f"problem-{field.name}", classes="problem")
            yield self._do_it_here()
            yield Static(system_text(""), id="refusal", classes="problem")
            yield Static(system_text("↑ ↓ move   Esc leave without doing it", "$foreground-muted"), classes="hint")

    def _do_it_here(self) -> DoIt:
        return DoIt(self._action.title.lower(), danger=self._action.danger)

    async def _answer(self, request: Request) -> BaseModel:
        answer: BaseModel = await self._link.call(self._action.operation, request)
        return answer

    def on_mount(self) -> None:
        (self.query(Input).first() if self._fields else self.query_one(DoIt)).focus()

    def set_focus(self, widget: Widget | None, scroll_visible: bool = True, from_app_focus: bool = False) -> None:
        """A field comes into sight with its label above and its problem below."""
        super().set_focus(widget, scroll_visible=False, from_app_focus=from_app_focus)
        if isinstance(widget, Input) and isinstance(widget.parent, Widget):
            self.call_after_refresh(widget.parent.scroll_visible, animate=False)

    @on(Input.Changed)
    def _mended(self, message: Input.Changed) -> None:
        """What was wrong with a field is no longer said of what is typed into it now."""
        name = (message.input.id or "").removeprefix("field-")
        self.query_one(f"#problem-{name}", Static).update(system_text(""))

    @on(Input.Submitted)
    def _next_field(self) -> None:
        self.focus_next()

    @on(DoIt.Pressed)
    def _pressed(self) -> None:
        if self._asking:
            return
        typed = {field.name: self.query_one(f"#field-{field.name}", Input).value for field in self._fields}
        if typed.get(ONCE) == "":
            typed[ONCE] = self._own_key
        request, problems = request_from(self._action.operation, self._subject, typed)
        for field in self._fields:
            problem = self.query_one(f"#problem-{field.name}", Static)
            problem.update(agent_text(problems.get(field.name, ""), "$text-error", limit=300))
        self._refuse(problems.get("", ""))
        if request is None:
            first = next((field.name for field in self._fields if field.name in problems), None)
            if first is not None:
                self.query_one(f"#field-{first}", Input).focus()
            return
        self._asking = True
        self._refuse(ASKING)
        self._ask(request)

    @work
    async def _ask(self, request: Request) -> None:
        try:
            answer = await self._answer(request)
        except ConsoleError as error:
            self._asking = False
            self._refuse(" ".join((str(error), *self._what_became_of_it(error))))
            return
        self.dismiss(answer)

    def _what_became_of_it(self, error: ConsoleError) -> tuple[str, ...]:
        if self.ONLY_LOOKS or not is_unsure(error):
            return ()
        return (NOT_KNOWN, DONE_ONCE) if any(field.name == ONCE for field in self._fields) else (NOT_KNOWN,)

    def action_leave(self) -> None:
        """Never while it may be done: what came of it would be lost, and a secret that was made with it."""
        if self._asking and not self.ONLY_LOOKS:
            self._refuse(STAY)
        else:
            super().action_leave()

    def _refuse(self, words: str) -> None:
        self.query_one("#refusal", Static).update(agent_text(words, "$text-error", limit=600))


def _label(field: FormField) -> Content:
    mark = system_text(" *", "$text-warning") if field.required else system_text("")
    return system_text(field.label, "bold") + mark + system_text(f"  {field.help}", "$foreground-muted")
