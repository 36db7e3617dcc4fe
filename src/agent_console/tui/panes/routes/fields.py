"""The fields in which a route is drafted. Nothing typed is ever taken away."""

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input, Static

from agent_console.domain.kinds import RoutePolicy
from agent_console.domain.routes import NOTES_LONGEST, Route
from agent_console.domain.safe_text import safe_text
from agent_console.tui.agent_text import system_text
from agent_console.tui.panes.routes.choice import PolicyChoice
from agent_console.tui.panes.routes.draft import Draft
from agent_console.tui.widgets.still_input import StillInput

REASON_LONGEST = 500


class RouteFields(Vertical):
    class Changed(Message):
        """The draft is another one now."""

    def __init__(self) -> None:
        super().__init__(classes="route-fields")
        self._first_notes = ""
        self._choice = PolicyChoice()
        self._notes = StillInput(id="notes", compact=True, max_length=NOTES_LONGEST)
        self._reason = StillInput(id="reason", compact=True, max_length=REASON_LONGEST)

    def compose(self) -> ComposeResult:
        for label, field in (("policy", self._choice), ("notes", self._notes), ("reason *", self._reason)):
            with Horizontal(classes="field"):
                yield Static(system_text(label, "$foreground-muted"), classes="label")
                yield field

    @property
    def draft(self) -> Draft:
        notes = None if self._notes.value == self._first_notes else self._notes.value
        return Draft(self._choice.policy, notes, self._reason.value.strip())

    def is_touched(self, base: Route | None) -> bool:
        return self.draft.changes(base) or bool(self._reason.value)

    def begin(self, route: Route | None, given: Draft | None) -> None:
        """As the route stands, or as somebody suggests it."""
        self._first_notes = self._notes.value = _typable_notes(route)
        self._choice.policy = policy_of(route)
        if given is not None:
            self._choice.policy = given.policy
        if given is not None and given.notes is not None:
            self._notes.value = safe_text(given.notes)[:NOTES_LONGEST]

    def go_on_from(self, route: Route | None, before: Route | None) -> None:
        """What was not touched follows the new version; what was stays as it was typed."""
        if self._choice.policy is policy_of(before):
            self._choice.policy = policy_of(route)
        untouched = self._notes.value == self._first_notes
        self._first_notes = _typable_notes(route)
        if untouched:
            self._notes.value = self._first_notes

    def ask_for_policy(self) -> None:
        self._choice.focus()

    def ask_for_reason(self) -> None:
        self._reason.focus()

    @on(PolicyChoice.Changed)
    @on(Input.Changed)
    def _changed(self) -> None:
        self.post_message(self.Changed())


def policy_of(route: Route | None) -> RoutePolicy | None:
    return None if route is None else route.policy


def _typable_notes(route: Route | None) -> str:
    """Only what can be shown as it is stands in a field; other notes stay until something is typed."""
    notes = "" if route is None else route.notes or ""
    return notes if safe_text(notes) == notes else ""
