"""One request on paper: what the system knows of it first, then exactly what is asked, behind a bar."""

import json

from textual.content import Content

from agent_console.domain.approvals import Approval
from agent_console.domain.records import shown_time
from agent_console.tui.agent_text import agent_block, agent_text, system_text
from agent_console.tui.facts import Fact, FactSheet, Heading, Quote, SheetPart
from agent_console.tui.panes.approvals.looks import NAME_SHOWN, hop_text, state_text, waits

TITLE_SHOWN = 200
DIGEST_SHOWN = 16
INPUT = "input"
# What the server itself has written around the words of the agent; everything else is shown as it was sent.
KNOWN = frozenset(
    {
        *("form", "approval_id", "from", "to", "thread_id", "parent_run_id", "trace_id", "delegation_path"),
        *("route", INPUT),
    }
)


def approval_sheet(approval: Approval) -> FactSheet:
    return FactSheet((*_facts(approval), *_ending(approval), *request_parts(approval)))


def _facts(approval: Approval) -> tuple[SheetPart, ...]:
    return (
        Fact("from", _named(approval.from_agent, approval.from_agent_id)),
        Fact("to", _named(approval.to_agent, approval.to_agent_id)),
        Fact("route", system_text(f"asks for a person, policy version {approval.route_version}")),
        *_way(approval),
        Fact("trace", system_text(str(approval.trace_id))),
        Fact("asked", system_text(f"{shown_time(approval.created_at)[:19]}Z   ") + _digest(approval)),
    )


def facts_of_one(approval: Approval) -> tuple[SheetPart, ...]:
    """In what requests of one agent to one other still differ, besides what they ask."""
    expires = system_text(f"{shown_time(approval.expires_at)[:19]}Z")
    return (*_way(approval), Fact("expires", expires))


def _way(approval: Approval) -> tuple[SheetPart, ...]:
    return (
        Fact("hop", hop_text(approval, " of ") + path_text(approval).pad_left(3)),
        Fact("thread", agent_text(approval.thread or str(approval.thread_id), limit=TITLE_SHOWN)),
        Fact("begun by", _begun_by(approval)),
    )


def _named(name: str | None, thing_id: object) -> Content:
    known = agent_text(name or "deleted", "bold", limit=NAME_SHOWN)
    return known + system_text(f"  {thing_id}", "$foreground-muted")


def path_text(approval: Approval) -> Content:
    """Every agent the request has passed, and the one it would go to."""
    names = [*approval.path, approval.to_agent or str(approval.to_agent_id)]
    return system_text(" → ", "$foreground-muted").join(agent_text(name, limit=NAME_SHOWN) for name in names)


def _begun_by(approval: Approval) -> Content:
    if approval.begun_by is None:
        return system_text("no person: an agent began it")
    return agent_text(approval.begun_by, limit=NAME_SHOWN)


def _digest(approval: Approval) -> Content:
    return system_text(f"digest {approval.digest[:DIGEST_SHOWN]}…", "$foreground-muted")


def _ending(approval: Approval) -> tuple[SheetPart, ...]:
    if waits(approval) or approval.decided_at is None:
        return ()
    by = agent_text(f" by {approval.decided_by}", limit=NAME_SHOWN) if approval.decided_by else system_text("")
    at = system_text(f", {shown_time(approval.decided_at)[:19]}Z")
    facts: list[SheetPart] = [Fact("ended", state_text(approval) + by + at)]
    if approval.decision_reason:
        facts.append(Fact("why", agent_text(approval.decision_reason)))
    if approval.run_id is not None:
        facts.append(Fact("run made", system_text(str(approval.run_id))))
    return tuple(facts)


def request_parts(approval: Approval) -> tuple[SheetPart, ...]:
    """Never shortened and never made prettier: what is decided is what can be read here."""
    who = agent_text(approval.from_agent or "the agent", "bold", limit=NAME_SHOWN)
    said = approval.envelope.get(INPUT)
    words = said if isinstance(said, str) else _as_sent(said)
    told: list[SheetPart] = [
        # Our words first: at the left edge a name could pass for one of our labels.
        Heading(system_text("In the words of ", "bold") + who + system_text(", not ours:", "bold")),
        Quote(agent_block(words)),
    ]
    if more := {name: value for name, value in approval.envelope.items() if name not in KNOWN}:
        told.append(Heading(system_text("more in the request, as it was sent:", "bold")))
        told.append(Quote(agent_block(_as_sent(more))))
    return tuple(told)


def _as_sent(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
