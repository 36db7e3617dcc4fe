"""Who there is in the demo: people, agents, and which agent may ask which."""

from dataclasses import dataclass

from agent_console.domain.kinds import HumanRole, RoutePolicy


@dataclass(frozen=True)
class DemoAgent:
    name: str
    hostname: str
    version: str
    capabilities: tuple[str, ...]
    concurrency: int = 1


AGENTS = (
    DemoAgent("atlas", "nas-01", "1.2.3", ("local_filesystem", "tool:photostats:1.2.3", "tool:stock:1.0.2")),
    DemoAgent("beacon", "edge-berlin", "4.0.1", ("tool:crawler:4.0.1",)),
    DemoAgent("cartographer", "gpu-02", "2.1.0", ("tool:report:2.1.0", "tool:summary:2.1.0"), 3),
    DemoAgent("dispatch", "core-01", "0.9.0", ("tool:triage:0.9.0",), 2),
    DemoAgent("ember", "gpu-03", "5.4.0", ("tool:codex:5.4.0",), 2),
    DemoAgent("fathom", "archive-7", "1.2.3", ("local_filesystem", "tool:photo_pairing:1.2.3")),
    DemoAgent("gantry", "edge-oslo", "3.3.0", ("tool:deploy:3.3.0",)),
    DemoAgent("harbor", "edge-lyon", "4.0.1", ("tool:crawler:4.0.1",)),
    DemoAgent("iris", "laptop-ana", "2.0.0", ("tool:report:2.0.0", "tool:stock:1.0.2")),
    DemoAgent("juniper", "core-02", "0.9.0", ("tool:triage:0.9.0", "tool:translate:1.1.0")),
    DemoAgent("keystone", "vault-3", "7.0.0", ("tool:backup:7.0.0",)),
    DemoAgent("lantern", "edge-paris", "0.3.1", ("tool:reader:0.3.1",), 2),
)


@dataclass(frozen=True)
class DemoPerson:
    email: str
    full_name: str
    role: HumanRole


# Whoever sits at the console is the administrator of the team. It is somebody else who asks the agents for things:
# nobody may approve what came of a wish of one's own.
ASKS = DemoPerson("ole@example.com", "Ole Berg", HumanRole.OPERATOR)
PEOPLE = (ASKS, DemoPerson("vera@example.com", "Vera Lind", HumanRole.VIEWER))


@dataclass(frozen=True)
class DemoRoute:
    asks: str
    asked: str
    policy: RoutePolicy
    notes: str | None = None


ROUTES = (
    DemoRoute("dispatch", "ember", RoutePolicy.ALLOWED, "triage may ask for a patch"),
    DemoRoute("dispatch", "gantry", RoutePolicy.REQUIRES_HUMAN_APPROVAL, "nothing is deployed without a person"),
    DemoRoute("ember", "gantry", RoutePolicy.BLOCKED, "who writes code does not deploy it"),
    DemoRoute("cartographer", "atlas", RoutePolicy.ALLOWED),
    DemoRoute("cartographer", "beacon", RoutePolicy.REQUIRES_HUMAN_APPROVAL, "crawling costs money"),
    DemoRoute("cartographer", "lantern", RoutePolicy.ALLOWED, "reads pages that others wrote"),
    DemoRoute(
        "lantern", "gantry", RoutePolicy.REQUIRES_HUMAN_APPROVAL, "it reads what strangers write: look twice"
    ),
)
