"""Applying a policy file: what it would change is seen first, and just that is applied, by a key of its own."""

import asyncio

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Input, Static

from agent_console.config.folders import full_path
from agent_console.domain.errors import Conflict, ConsoleError, Invalid
from agent_console.domain.policy_plans import PolicyApplication, PolicyPlan
from agent_console.repository.operations.routes import ROUTES_APPLY
from agent_console.tui.agent_text import system_text
from agent_console.tui.dialogs.operation_form import DoIt
from agent_console.tui.facts import FactSheet, Remark
from agent_console.tui.link import is_unsure
from agent_console.tui.panes.pane import is_waiting
from agent_console.tui.panes.routes.files import NAME_ANOTHER, read_policy_file
from agent_console.tui.panes.routes.form import NO_CONNECTION, NO_REASON, RouteForm
from agent_console.tui.panes.routes.plan import plan_sheet, refusal_sheet
from agent_console.tui.panes.surroundings import Surroundings
from agent_console.tui.panes.typed import request_of
from agent_console.tui.widgets.still_input import StillInput
from agent_console.tui.widgets.ticks import TickBox

ASKING = "asking"
HINT = "A policy file as E writes it. Nothing is changed before you have seen the plan and pressed y."
MISSING = "remove the routes that the file does not name"
NOT_KNOWN = "Whether it was applied is not known: look at the routes before you try again."


class ApplyScreen(RouteForm):
    """What was read when the plan was made is what is applied, on the policy that the plan was made on."""

    def __init__(self, around: Surroundings, path: str = "") -> None:
        super().__init__(around)
        self._planned: tuple[PolicyApplication, PolicyPlan] | None = None
        self._path = StillInput(value=path, id="path", compact=True)
        self._missing = TickBox(system_text(MISSING), value=True, compact=True, id="missing")
        self._reason = StillInput(id="reason", compact=True, max_length=500)
        self._see = DoIt("see what it would change; nothing is changed yet", danger=False)
        self._apply = DoIt("apply just this plan", danger=True)

    def body(self) -> ComposeResult:
        yield Static(system_text("Apply a policy file", "bold"), classes="about")
        for label, field in (("file *", self._path), ("missing", self._missing), ("reason *", self._reason)):
            with Horizontal(classes="field"):
                yield Static(system_text(label, "$foreground-muted"), classes="label")
                yield field
        yield self._panel
        yield self._told
        yield self._see
        yield self._apply

    def on_mount(self) -> None:
        self._panel.show(FactSheet((Remark(system_text(HINT, "$foreground-muted")),)))
        self._apply.display = False
        self._path.focus()

    @property
    def crumb(self) -> str:
        return "Apply a file"

    @property
    def is_touched(self) -> bool:
        return bool(self._path.value or self._reason.value)

    @property
    def has_answer(self) -> bool:
        return not is_waiting(self, ASKING)

    # Keys

    @on(Input.Changed, "#path")
    @on(TickBox.Changed)
    def _other_plan(self) -> None:
        """A plan is for one file, read one way."""
        self.stay()
        self._no_plan()
        self.say("")

    def _no_plan(self) -> None:
        self._planned = None
        if self._apply.has_focus:
            self._see.focus()
        self._apply.display = False

    @on(DoIt.Pressed)
    def _pressed(self) -> None:
        if is_waiting(self, ASKING):
            return
        if not self.around.up:
            self.tell(NO_CONNECTION)
        elif self._see.has_focus:
            self._plan(self._path.value, self._missing.value)
        elif self._planned is not None and not self._reason.value.strip():
            self.tell(NO_REASON)
            self._reason.focus()
        elif self._planned is not None:
            self._do(*self._planned, self._reason.value.strip())

    @work(group=ASKING)
    async def _plan(self, path: str, delete_missing: bool) -> None:
        self.say("Reading …")
        try:
            if not path.strip():
                raise Invalid("Which file?", hint=NAME_ANOTHER)
            text = await asyncio.to_thread(read_policy_file, full_path(path.strip(), key="file"))
            said = {"text": text, "dry_run": True, "delete_missing": delete_missing}
            request = request_of(PolicyApplication, said, NAME_ANOTHER)
            plan = await self.around.link.call(ROUTES_APPLY, request)
        except ConsoleError as error:
            self._refused(error)
        else:
            self.say("")
            self._panel.show(plan_sheet(plan))
            self._panel.scroll_home(animate=False)
            self._planned = (request, plan) if plan.steps else None
            self._apply.display = bool(plan.steps)
            if plan.steps and self._see.has_focus:
                # The line says "Press y", so that a y is heard without another key before it.
                self._apply.focus()

    def _refused(self, error: ConsoleError) -> None:
        self.say("")
        self._no_plan()
        self._panel.show(refusal_sheet(error))

    @work(group=ASKING)
    async def _do(self, request: PolicyApplication, plan: PolicyPlan, reason: str) -> None:
        self.say("Applying …")
        told = {"dry_run": False, "expect_digest": plan.digest, "reason": reason}
        try:
            application = request_of(PolicyApplication, request.model_dump() | told)
            done = await self.around.link.call(ROUTES_APPLY, application)
        except Conflict as error:
            self._refused(error)
        except ConsoleError as error:
            self.tell(f"{error} {NOT_KNOWN}" if is_unsure(error) else str(error))
        else:
            words = f"Applied: {done.created:,} added, {done.updated:,} changed, {done.deleted:,} removed."
            self.app.notify(system_text(words).plain, markup=False)
            self.leave()
