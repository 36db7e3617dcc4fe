"""Editing a route: what changes, what it would have done, and a key of its own that saves it."""

from textual import on, work
from textual.app import ComposeResult
from textual.content import Content

from agent_console.domain.errors import Conflict, ConsoleError
from agent_console.domain.ids import AgentId
from agent_console.domain.kinds import RoutePolicy
from agent_console.domain.route_replays import Replay, RouteQuestion
from agent_console.domain.routes import Route, RouteQuery, RouteRemoval
from agent_console.repository.operations.routes import (
    ROUTES_DELETE,
    ROUTES_EXPLAIN,
    ROUTES_LIST,
    ROUTES_PUT,
    ROUTES_REPLAY,
)
from agent_console.repository.port import Change, Topic
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.dialogs.operation_form import DoIt
from agent_console.tui.facts import FactSheet, Heading, Remark, SheetPart
from agent_console.tui.link import UNSURE, is_unsure
from agent_console.tui.panes.pane import is_waiting
from agent_console.tui.panes.routes.choice import SaveIt
from agent_console.tui.panes.routes.draft import (
    Draft,
    change_of,
    change_parts,
    meanwhile_parts,
    replay_of,
    replay_parts,
)
from agent_console.tui.panes.routes.fields import RouteFields, policy_of
from agent_console.tui.panes.routes.form import NO_CONNECTION, NO_REASON, RouteForm
from agent_console.tui.panes.routes.lists import who_and_when
from agent_console.tui.panes.routes.looks import pair_text
from agent_console.tui.panes.routes.pair import RoutePair
from agent_console.tui.panes.stacked import StackedScreen
from agent_console.tui.panes.surroundings import Surroundings
from agent_console.tui.widgets.changing_line import ChangingLine

CURRENT = "current"
REPLAYING = "replaying"
SAVING = "saving"
NOT_KNOWN = "Whether it was saved is not known: look at the route before you try again."


class RouteEditor(RouteForm):
    """Holds a draft against the version it was made from. When that is no longer the current one, nothing is
    saved: the new state is shown beside the draft until somebody chooses to go on from it."""

    def __init__(
        self, around: Surroundings, of: str, to: str, draft: Draft | None, pair: RoutePair | None
    ) -> None:
        """`of` and `to` are names or ids; without a `draft` it begins as the route stands."""
        super().__init__(around)
        self._words = of, to
        self._pair = pair
        self._given = draft
        self._base: Route | None = None
        self._now: Route | None = None
        self._loaded = False
        self._dirty = True
        self._replay: Replay | None = None
        self._replayed: RoutePolicy | None = None
        self._replay_problem = ""
        self._fields = RouteFields()
        self._title = ChangingLine(classes="about")
        self._save = SaveIt()
        self._go_on = DoIt("go on from the new version; your draft stays", danger=False)

    def body(self) -> ComposeResult:
        yield self._title
        yield self._fields
        yield self._panel
        yield self._told
        yield self._save
        yield self._go_on

    def on_mount(self) -> None:
        self._go_on.display = False
        self._fields.ask_for_policy()

    # What it is about

    @property
    def crumb(self) -> str:
        return "Edit a route" if self._pair is None else f"Edit {self._pair.of_name} → {self._pair.to_name}"

    @property
    def has_answer(self) -> bool:
        return self._loaded and (not self._wants_replay or bool(self._replay_problem))

    @property
    def draft(self) -> Draft:
        return self._fields.draft

    @property
    def is_outdated(self) -> bool:
        return _version(self._base) != _version(self._now)

    @property
    def is_touched(self) -> bool:
        return self._loaded and self._fields.is_touched(self._base)

    # Freshness

    def heard(self, change: Change) -> None:
        self._dirty |= change.topic in (Topic.ROUTES, Topic.EVERYTHING)

    def step(self) -> None:
        if self._dirty and not is_waiting(self, CURRENT) and not is_waiting(self, SAVING):
            self._dirty = False
            self._fetch()
        if self._wants_replay and not self._replay_problem and not is_waiting(self, REPLAYING):
            self._try(self.draft.policy)

    @property
    def _wants_replay(self) -> bool:
        """Whether the policy in the draft is neither the one that stands nor the one that was tried."""
        if not self._loaded or self.draft.policy is policy_of(self._base):
            return False
        return self._replay is None or self.draft.policy is not self._replayed

    @work(group=CURRENT)
    async def _fetch(self) -> None:
        try:
            pair = self._pair or await self._named()
            query = RouteQuery(from_agent=str(pair.of), to_agent=str(pair.to), limit=1)
            page = await self.around.link.call(ROUTES_LIST, query)
        except ConsoleError as error:
            self._dirty = isinstance(error, UNSURE)
            self.tell(str(error))
            return
        self._pair = pair
        self.show_way()
        self._take(page.items[0] if page.items else None)

    async def _named(self) -> RoutePair:
        """Whoever gave us words is answered with the ids they mean."""
        question = RouteQuestion(from_agent=self._words[0], to_agent=self._words[1])
        answer = await self.around.link.call(ROUTES_EXPLAIN, question)
        return RoutePair(answer.from_agent_id, answer.from_agent, answer.to_agent_id, answer.to_agent)

    def _take(self, route: Route | None) -> None:
        self._now = route
        if not self._loaded:
            self._loaded = True
            self._base = route
            self._fields.begin(route, self._given)
        self.tick()

    @work(group=REPLAYING)
    async def _try(self, policy: RoutePolicy | None) -> None:
        pair = self._pair
        if pair is None:
            return
        self.tick()
        try:
            replay = await self.around.link.call(ROUTES_REPLAY, replay_of(pair.of, pair.to, policy))
        except ConsoleError as error:
            self._replay_problem = "" if isinstance(error, UNSURE) else str(error)
        else:
            self._replay, self._replayed = replay, policy
        self.tick()

    # What is seen

    def set_stale(self, stale: bool) -> None:
        self._panel.set_stale(stale)
        self._dirty = True
        if stale:
            for group in (CURRENT, REPLAYING):
                self.workers.cancel_group(self, group)

    def tick(self) -> None:
        self._title.show(self._heading())
        self._panel.show(FactSheet(self._parts()))
        outdated = self._loaded and self.is_outdated
        had_focus = self._save.has_focus or self._go_on.has_focus
        self._save.display = self._loaded and not outdated
        self._save.removes = self.draft.policy is None
        self._go_on.display = outdated
        if had_focus:
            (self._go_on if outdated else self._save).focus()

    def _heading(self) -> Content:
        of, to = self._words if self._pair is None else (self._pair.of_name, self._pair.to_name)
        named = pair_text(of, to)
        if not self._loaded:
            return named + system_text("   Loading …", "$foreground-muted")
        if self._base is None:
            return named + system_text("   a new route", "$foreground-muted")
        since = who_and_when(self._base.updated_by, self._base.updated_at, self.around.clock())
        return named + system_text(f"   version {self._base.version}, ", "$foreground-muted") + since

    def _parts(self) -> tuple[SheetPart, ...]:
        if not self._loaded:
            return ()
        changed = change_parts(self._base, self.draft)
        meanwhile = meanwhile_parts(self._now, self.around.clock()) if self.is_outdated else ()
        return (*meanwhile, Heading(system_text("what you change", "bold")), *changed, *self._tried())

    def _tried(self) -> tuple[SheetPart, ...]:
        if self.draft.policy is policy_of(self._base):
            return ()
        if self._replay_problem:
            return (
                Remark(agent_text(f"It could not be tried: {self._replay_problem}", "$text-error", limit=400)),
            )
        if self._replay is None or self._wants_replay:
            return (Heading(system_text("Trying it on what was asked before …", "$foreground-muted")),)
        return replay_parts(self._replay, self.around.clock())

    # Keys

    @on(RouteFields.Changed)
    def _drafted(self) -> None:
        self.stay()
        self._replay_problem = ""
        self.tell("")
        self.tick()

    @on(DoIt.Pressed)
    def _pressed(self) -> None:
        if is_waiting(self, SAVING) or not self._loaded:
            return
        if self.is_outdated:
            self._fields.go_on_from(self._now, self._base)
            self._base = self._now
            self.tell("")
            self.tick()
        elif not self.draft.changes(self._base):
            self.tell("There is nothing to save: the route stands as your draft has it.")
        elif not self.draft.reason:
            self.tell(NO_REASON)
            self._fields.ask_for_reason()
        elif not self.around.up:
            self.tell(NO_CONNECTION)
        else:
            self._store()

    @work(group=SAVING)
    async def _store(self) -> None:
        pair, draft, base = self._pair, self.draft, self._base
        if pair is None:
            return
        self.say("Saving …")
        try:
            request = change_of(pair.of, pair.to, base, draft)
            if isinstance(request, RouteRemoval):
                await self.around.link.call(ROUTES_DELETE, request)
                done = "The route is removed: the pair is blocked."
            else:
                saved = await self.around.link.call(ROUTES_PUT, request)
                done = f"Saved as version {saved.version}."
        except Conflict as error:
            self.tell(str(error.message))
            self._dirty = True
        except ConsoleError as error:
            self._dirty = True
            self.tell(f"{error} {NOT_KNOWN}" if is_unsure(error) else str(error))
        else:
            self.app.notify(system_text(done).plain, markup=False)
            self.leave()


def _version(route: Route | None) -> tuple[str, int] | None:
    return None if route is None else (str(route.id), route.version)


def route_editor(
    around: Surroundings, from_agent: AgentId | str, to_agent: AgentId | str, policy: RoutePolicy, notes: str = ""
) -> StackedScreen:
    """The editor with a draft in it, for whoever suggests a rule; agents by id or name. Nothing is written."""
    return RouteEditor(around, str(from_agent), str(to_agent), Draft(policy, notes or None), None)


def editor_of(around: Surroundings, pair: RoutePair, draft: Draft | None = None) -> StackedScreen:
    return RouteEditor(around, str(pair.of), str(pair.to), draft, pair)
