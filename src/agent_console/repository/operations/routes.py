"""A2A routes: which agent may ask which. People with the right to administer edit them; agents never do."""

from agent_console.domain.audit import audit_action
from agent_console.domain.permissions import Permission
from agent_console.domain.policy_plans import APPLY_SECONDS, PolicyApplication, PolicyPlan, PolicyText
from agent_console.domain.records import Nothing, Page
from agent_console.domain.route_replays import Replay, RouteExplanation, RouteQuestion, RouteReplay
from agent_console.domain.routes import (
    Matrix,
    MatrixQuery,
    Route,
    RouteAsked,
    RouteEdit,
    RouteHistoryQuery,
    RouteQuery,
    RouteRemoval,
    RouteVersion,
)
from agent_console.repository.operations.declared import AnyOperation, Operation, Verb

_PAIR = ("from_agent_id", "to_agent_id")
ROUTE_CREATED = audit_action("a2a.route.create", *_PAIR, "policy", "version", "apply_id")
ROUTE_UPDATED = audit_action("a2a.route.update", *_PAIR, "old_policy", "policy", "version", "apply_id")
ROUTE_DELETED = audit_action("a2a.route.delete", *_PAIR, "old_policy", "version", "apply_id")
POLICY_APPLIED = audit_action("a2a.route.apply", "created", "updated", "deleted", "unchanged", "old_digest")

ROUTES_LIST = Operation(
    name="routes.list",
    summary="Which agent may ask which, oldest first.",
    verb=Verb.GET,
    path="/v1/routes",
    request=RouteQuery,
    answer=Page[Route],
    permission=Permission.SEE_FLEET,
)
ROUTES_PUT = Operation(
    name="routes.put",
    summary="Set what happens when one agent asks another.",
    verb=Verb.PUT,
    path="/v1/routes",
    request=RouteEdit,
    answer=Route,
    permission=Permission.ADMINISTER,
    audit=ROUTE_UPDATED,
)
ROUTES_HISTORY = Operation(
    name="routes.history",
    summary="Every version of the route of a pair, newest first: who, when and why.",
    verb=Verb.GET,
    path="/v1/routes/history",
    request=RouteHistoryQuery,
    answer=Page[RouteVersion],
    permission=Permission.SEE_FLEET,
)
ROUTES_MATRIX = Operation(
    name="routes.matrix",
    summary="Agents by name, and the routes among them.",
    verb=Verb.GET,
    path="/v1/routes/matrix",
    request=MatrixQuery,
    answer=Matrix,
    permission=Permission.SEE_FLEET,
)
ROUTES_EXPLAIN = Operation(
    name="routes.explain",
    summary="What would happen if one agent asked another now, and why.",
    verb=Verb.GET,
    path="/v1/routes/explain",
    request=RouteQuestion,
    answer=RouteExplanation,
    permission=Permission.SEE_FLEET,
    tells=True,
)
ROUTES_REPLAY = Operation(
    name="routes.replay",
    summary="What a draft of the policy would have done to the requests of the last 90 days.",
    verb=Verb.POST,
    path="/v1/routes/replay",
    request=RouteReplay,
    answer=Replay,
    permission=Permission.ADMINISTER,
)
ROUTES_EXPORT = Operation(
    name="routes.export",
    summary="The whole policy as a YAML file.",
    verb=Verb.GET,
    path="/v1/routes/export",
    request=Nothing,
    answer=PolicyText,
    permission=Permission.SEE_FLEET,
)
ROUTES_APPLY = Operation(
    name="routes.apply",
    summary="Make the policy what a YAML file says, all of it or nothing.",
    verb=Verb.POST,
    path="/v1/routes/apply",
    request=PolicyApplication,
    answer=PolicyPlan,
    permission=Permission.ADMINISTER,
    audit=POLICY_APPLIED,
    danger=True,
    waits_seconds=APPLY_SECONDS,
)
ROUTES_GET = Operation(
    name="routes.get",
    summary="One route, whole.",
    verb=Verb.GET,
    path="/v1/routes/{route_id}",
    request=RouteAsked,
    answer=Route,
    permission=Permission.SEE_FLEET,
)
ROUTES_DELETE = Operation(
    name="routes.delete",
    summary="Remove a route: from then on the pair is blocked.",
    verb=Verb.DELETE,
    path="/v1/routes/{route_id}",
    request=RouteRemoval,
    answer=Route,
    permission=Permission.ADMINISTER,
    audit=ROUTE_DELETED,
    danger=True,
)

NOUNS: dict[str, str] = {"routes": "Which agent may ask which (A2A policy)."}

# What has a word after /v1/routes/ has to be asked before /v1/routes/{route_id}.
ROUTES: tuple[AnyOperation, ...] = (
    ROUTES_LIST,
    ROUTES_PUT,
    ROUTES_HISTORY,
    ROUTES_MATRIX,
    ROUTES_EXPLAIN,
    ROUTES_REPLAY,
    ROUTES_EXPORT,
    ROUTES_APPLY,
    ROUTES_GET,
    ROUTES_DELETE,
)
