"""A route as somebody would have it: how it differs from the one that stands, and what it would have done."""

from dataclasses import dataclass
from datetime import datetime

from textual.content import Content

from agent_console.domain.delegation import Outcome
from agent_console.domain.errors import Invalid
from agent_console.domain.ids import AgentId
from agent_console.domain.kinds import RoutePolicy
from agent_console.domain.route_replays import DraftRoute, Replay, RouteReplay
from agent_console.domain.routes import Route, RouteEdit, RouteRemoval
from agent_console.domain.spans import ago
from agent_console.tui.agent_text import system_text
from agent_console.tui.facts import Fact, Heading, Listing, Remark, SheetPart
from agent_console.tui.panes.routes.lists import who_and_when
from agent_console.tui.panes.routes.looks import (
    ARROW,
    notes_change,
    notes_text,
    outcome_text,
    policy_change,
    policy_text,
)
from agent_console.tui.panes.typed import request_of
from agent_console.tui.widgets.virtual_table_columns import Column

EXAMPLES_SHOWN = 5
ASKS = RoutePolicy.REQUIRES_HUMAN_APPROVAL
SUPERSEDED = "Requests of this pair that wait for a person now are ended: superseded."
EXAMPLE_COLUMNS = (
    Column("when", "When", 10, align="right"),
    Column("change", "Change", None, min_width=20),
)


@dataclass(frozen=True)
class Draft:
    """Without a policy the route is removed; without notes they stay as they are."""

    policy: RoutePolicy | None
    notes: str | None = None
    reason: str = ""

    def changes(self, base: Route | None) -> bool:
        if base is None:
            return self.policy is not None
        notes = base.notes if self.notes is None else self.notes or None
        return (self.policy, notes) != (base.policy, base.notes)


def change_of(of: AgentId, to: AgentId, base: Route | None, draft: Draft) -> RouteEdit | RouteRemoval:
    """What is asked for names the version the draft was made from; what can't be asked raises a ConsoleError."""
    version = 0 if base is None else base.version
    if draft.policy is not None:
        names = {"from_agent": str(of), "to_agent": str(to), "policy": draft.policy, "notes": draft.notes}
        return request_of(RouteEdit, names | {"base_version": version, "reason": draft.reason})
    if base is None:
        raise Invalid("There is no route to remove.")
    return request_of(RouteRemoval, {"route_id": base.id, "base_version": version, "reason": draft.reason})


def replay_of(of: AgentId, to: AgentId, policy: RoutePolicy | None) -> RouteReplay:
    return RouteReplay(routes=(DraftRoute(from_agent=str(of), to_agent=str(to), policy=policy),))


def change_parts(base: Route | None, draft: Draft) -> tuple[SheetPart, ...]:
    """Before and after, also where nothing differs: nobody has to remember what it was."""
    was = None if base is None else base.policy
    if not draft.changes(base):
        return (Fact("change", system_text("none yet", "$foreground-muted")),)
    parts: list[SheetPart] = [Fact("policy", policy_change(was, draft.policy))]
    old_notes = None if base is None else base.notes
    if draft.policy is not None:
        parts.append(Fact("notes", notes_change(old_notes, old_notes if draft.notes is None else draft.notes)))
    if was is ASKS and draft.policy is not ASKS:
        parts.append(Remark(system_text(SUPERSEDED, "$text-warning")))
    return tuple(parts)


def meanwhile_parts(now: Route | None, clock: datetime) -> tuple[SheetPart, ...]:
    """How the route stands after somebody else changed it."""
    words = "It was changed meanwhile, so nothing is saved. It is now:"
    heading = Heading(system_text(words, "bold $text-warning"))
    if now is None:
        return heading, Fact("policy", policy_text(None)), Remark(system_text("The route was removed."))
    since = who_and_when(now.updated_by, now.updated_at, clock)
    return (
        heading,
        Fact("version", system_text(f"{now.version}, ") + since),
        Fact("policy", policy_text(now.policy)),
        Fact("notes", notes_text(now.notes)),
    )


def replay_parts(replay: Replay, now: datetime) -> tuple[SheetPart, ...]:
    """What the draft would have done to the requests that are recorded."""
    count = f"the last {replay.requests:,}" if replay.capped else f"{replay.requests:,}"
    since = f" since {ago(replay.since, now)} ago" if replay.since else ""
    if not replay.requests:
        words = "No requests are recorded that it could be tried on."
    elif not replay.concerned:
        words = f"Of {count} recorded requests{since} none was between these two."
    else:
        words = f"Of {count} recorded requests{since} this would change {replay.changed:,}."
    style = "bold $text-warning" if replay.changed else "bold"
    kinds = (Fact(f"{kind.count:,}", _turned(kind.before, kind.after)) for kind in replay.kinds)
    return (
        Heading(system_text(words, style)),
        *kinds,
        *_stopped(replay),
        *([Listing(EXAMPLE_COLUMNS, _examples(replay, now))] if replay.examples else []),
        *_more(replay),
    )


def _turned(before: Outcome, after: Outcome) -> Content:
    return outcome_text(before) + system_text(ARROW) + outcome_text(after)


def _stopped(replay: Replay) -> tuple[SheetPart, ...]:
    if not replay.stopped_before:
        return ()
    words = f"Another rule stops {replay.stopped_before:,} of the {replay.concerned:,} between these two anyway."
    return (Remark(system_text(words, "$foreground-muted")),)


def _examples(replay: Replay, now: datetime) -> tuple[tuple[Content, ...], ...]:
    return tuple(
        (
            system_text(f"{ago(example.at, now)} ago", "$foreground-muted"),
            _turned(example.before, example.after),
        )
        for example in replay.examples[:EXAMPLES_SHOWN]
    )


def _more(replay: Replay) -> tuple[SheetPart, ...]:
    left = replay.changed - min(len(replay.examples), EXAMPLES_SHOWN)
    return (Remark(system_text(f"and {left:,} more", "$foreground-muted")),) if left > 0 else ()
