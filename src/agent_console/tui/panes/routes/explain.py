"""What would happen if one agent asked another now: what each rule says, in the order in which they are asked."""

from textual.content import Content

from agent_console.domain.delegation import Rule
from agent_console.domain.ids import AgentId
from agent_console.domain.route_replays import RouteExplanation, RouteQuestion
from agent_console.domain.routes import MatrixQuery
from agent_console.repository.operations.routes import ROUTES_EXPLAIN, ROUTES_MATRIX
from agent_console.repository.port import Topic
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.facts import Fact, Heading, SheetPart
from agent_console.tui.panes.routes.looks import ARROW, outcome_text, policy_text
from agent_console.tui.panes.routes.pair import RoutePair
from agent_console.tui.panes.routes.sheet import RouteSheet
from agent_console.tui.panes.surroundings import Surroundings

# In the order of CHECKS; what no route and a route say is one and the same check.
RULES: dict[Rule, str] = {
    Rule.ACCESS: "may it write to the thread",
    Rule.TARGET: "can the other be asked",
    Rule.PARENT: "is the parent its own run",
    Rule.PATH: "nobody is asked twice",
    Rule.HOPS: "passed on too often",
    Rule.DUPLICATE: "asked a moment ago",
    Rule.RUNS_PER_THREAD: "too many runs at once",
    Rule.WAITING_PER_AGENT: "too many wait for a person",
    Rule.ROUTE: "the route between the two",
}
LABELS = {Rule.RUNS_PER_THREAD: "open runs", Rule.WAITING_PER_AGENT: "waiting"}


class ExplainScreen(RouteSheet):
    TOPICS = frozenset({Topic.ROUTES, Topic.AGENTS, Topic.RUNS})

    def __init__(self, around: Surroundings, pair: RoutePair) -> None:
        super().__init__(around, pair)
        self._answer: RouteExplanation | None = None
        self._names: dict[AgentId, str] = {pair.of: pair.of_name, pair.to: pair.to_name}

    @property
    def crumb(self) -> str:
        return f"Explain {self.pair.of_name} → {self.pair.to_name}"

    async def ask(self) -> None:
        question = RouteQuestion(from_agent=str(self.pair.of), to_agent=str(self.pair.to))
        answer = await self.around.link.call(ROUTES_EXPLAIN, question)
        if unnamed := tuple(agent for agent in answer.path if agent not in self._names):
            matrix = await self.around.link.call(ROUTES_MATRIX, MatrixQuery(agents=unnamed))
            self._names |= {agent.id: agent.name for agent in matrix.agents}
        self._answer = answer

    def parts(self) -> tuple[SheetPart, ...]:
        answer = self._answer
        if answer is None:
            return ()
        version = "" if answer.version is None else f", version {answer.version}"
        return (
            Fact("asked now", outcome_text(answer.outcome)),
            Fact("because", system_text(answer.why)),
            Fact("route", policy_text(answer.policy) + system_text(version, "$foreground-muted")),
            Fact("path", self._path(answer)),
            Heading(system_text("rule by rule; the first refusal wins", "bold")),
            *(self._check(place, rule, answer) for place, rule in enumerate(RULES, 1)),
        )

    def _path(self, answer: RouteExplanation) -> Content:
        steps = [agent_text(self._names.get(agent, str(agent)), limit=60) for agent in answer.path]
        asked = agent_text(answer.to_agent, "bold", limit=60)
        return system_text(ARROW, "$foreground-muted").join([*steps, asked])

    def _check(self, place: int, rule: Rule, answer: RouteExplanation) -> Fact:
        return Fact(f"{place}. {LABELS.get(rule, rule.value)}", self._said(rule, answer))

    def _said(self, rule: Rule, answer: RouteExplanation) -> Content:
        question = system_text(f"{RULES[rule]}: ", "$foreground-muted")
        deciding = Rule.ROUTE if answer.rule is Rule.NO_ROUTE else answer.rule
        rules = list(RULES)
        # An error while deciding is no check: then none of them was heard to the end.
        decided_at = rules.index(deciding) if deciding in RULES else 0
        if rule is deciding:
            return question + outcome_text(answer.outcome) + system_text("  decides", "bold")
        if rules.index(rule) > decided_at:
            return question + system_text("not asked any more", "$foreground-muted")
        if rule in answer.not_asked:
            return question + system_text("depends on the request; left out", "$foreground-muted")
        return question + system_text("✓ no objection", "$text-success")
