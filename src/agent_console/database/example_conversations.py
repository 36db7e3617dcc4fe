"""What is said, asked and decided in the example fleet, and the policy it goes by."""

from collections.abc import Mapping
from dataclasses import dataclass, field

OPERATOR = "ole@example.com"
ALLOWED, BLOCKED, ASKS = "allowed", "blocked", "requires_human_approval"

ROUTES: tuple[tuple[str, str, str, str | None], ...] = (
    ("dispatch", "ember", ALLOWED, "triage may ask for a patch"),
    ("dispatch", "gantry", ASKS, "nothing is deployed without a person"),
    ("ember", "gantry", BLOCKED, "who writes code does not deploy it"),
    ("ember", "dispatch", ALLOWED, None),
    ("cartographer", "atlas", ALLOWED, None),
    ("cartographer", "beacon", ASKS, "crawling costs money"),
    ("beacon", "cartographer", ALLOWED, None),
    ("atlas", "fathom", ALLOWED, None),
    ("atlas", "gantry", ASKS, None),
)


@dataclass(frozen=True)
class Told:
    """One message; `who` is an e-mail address, the name of an agent, or nobody, which is the system."""

    who: str | None
    content: str
    age: float
    run: str | None = None
    to: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ran:
    """One run, asked for by the message before it in the story; `by` is whoever asked."""

    name: str
    by: str
    target: str
    age: float
    status: str = "succeeded"
    parent: str | None = None
    error: str | None = None
    summary: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Waits:
    """A delegation that a person decides or has decided; `left` is how long it may still wait."""

    name: str
    source: str
    target: str
    parent: str
    words: str
    age: float
    state: str = "pending"
    left: float = 0
    reason: str | None = None


@dataclass(frozen=True)
class Thread:
    title: str | None
    age: float
    shared: bool
    agents: tuple[str, ...]
    story: tuple[Told | Ran | Waits, ...]
    archived: bool = False


def _count(aisle: int) -> Told:
    words = f"Aisle {aisle:03}: {aisle * 37 % 211} boxes counted."
    return Told("iris" if aisle % 2 else "atlas", words, 85000 - aisle * 60)


DEPLOY = """Deploy build 4812 of the photo service to edge-oslo.
It carries the patch that keeps the index pairs_taken_at_idx, and nothing else.
Roll back to 4809 when more than 1 % of the requests fail within ten minutes."""

STORIES = (
    Thread(
        "Nightly build is red",
        2400,
        shared=False,
        agents=("dispatch", "ember", "gantry"),
        story=(
            Told(OPERATOR, "The nightly build is red since 02:10. Get it green.", 2390, to=("dispatch",)),
            Ran("triage", OPERATOR, "dispatch", 2390, status="running"),
            Told("dispatch", "Three jobs fail in the same step. I ask ember what changed.", 2310, run="triage"),
            Told("dispatch", "Which change broke the step photo_pairing?", 2300, run="triage", to=("ember",)),
            Ran("patch", "dispatch", "ember", 2300, parent="triage", summary={"changed_files": 2}),
            Told("ember", "Commit 41c9 drops the index pairs_taken_at_idx. Build 4812 keeps it.", 1930,
                 run="patch"),
            Told("dispatch", "Build 4812 is green. A person has to let it out.", 700, run="triage"),
            Waits("deploy", "dispatch", "gantry", "triage", DEPLOY, 690, left=2910),
        ),
    ),
    Thread(
        "Report of October",
        7200,
        shared=True,
        agents=("cartographer", "atlas", "beacon"),
        story=(
            Told(OPERATOR, "The report of October, please.", 7190, to=("cartographer",)),
            Ran("report", OPERATOR, "cartographer", 7190, status="running"),
            Told("cartographer", "How many photos came in, by week?", 7000, run="report", to=("atlas",)),
            Ran("count", "cartographer", "atlas", 7000, parent="report", summary={"weeks": 5}),
            Told("atlas", "W40 1,204   W41 1,377   W42 990   W43 1,512   W44 310", 6720, run="count"),
            Waits("prices", "cartographer", "beacon", "report", "Read the price lists of all twelve shops.", 6000,
                  "rejected", reason="Two shops asked us not to crawl them."),
            Waits("weather", "cartographer", "beacon", "report", "Read the weather of October for Lyon.", 5400,
                  "approved"),
            Ran("crawl", "cartographer", "beacon", 5300, "failed", parent="report",
                error="the site answered 503 three times"),
            Told("beacon", "I could not read the weather: the site answered 503 three times.", 5100, run="crawl"),
            Waits("holidays", "cartographer", "beacon", "report", "Read the public holidays of October.", 5000,
                  "expired"),
            Waits("stations", "cartographer", "beacon", "report",
                  "Read the weather of October for Lyon from the second source, at most 40 pages.", 180, left=420),
        ),
    ),
    Thread(
        "Stock count, aisle by aisle",
        86000,
        shared=True,
        agents=("atlas", "iris"),
        story=tuple(_count(aisle) for aisle in range(1, 121)),
    ),
    Thread(
        "Old key found in a log",
        80000,
        shared=False,
        agents=("juniper",),
        story=(
            Told(OPERATOR, "The key of juniper stands in a log on core-02. I revoke it.", 79000),
            Told(None, "juniper was revoked: key found in a log", 78990),
        ),
        archived=True,
    ),
)  # fmt: skip
