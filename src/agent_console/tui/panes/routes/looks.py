"""How policies and outcomes look, and how two versions of a route differ, in words."""

from collections.abc import Mapping

from textual.content import Content

from agent_console.domain.delegation import Outcome
from agent_console.domain.kinds import RoutePolicy
from agent_console.tui.agent_text import agent_text, system_text

NOTES_SHOWN = 1_000
ARROW = " → "

# Nothing here is blue: with 16 colours that is the background of the cursor's line.
LOOKS: Mapping[RoutePolicy | None, tuple[str, str, str]] = {
    RoutePolicy.ALLOWED: ("✓", "allowed", "$text-success"),
    RoutePolicy.BLOCKED: ("✗", "blocked", "$text-error"),
    RoutePolicy.REQUIRES_HUMAN_APPROVAL: ("?", "asks", "$text-warning"),
    None: ("·", "no route", "$foreground-muted"),
}
WORDS: Mapping[RoutePolicy | None, str] = {
    RoutePolicy.ALLOWED: "allowed",
    RoutePolicy.BLOCKED: "blocked",
    RoutePolicy.REQUIRES_HUMAN_APPROVAL: "asks a person",
    None: "no route: blocked",
}
OUTCOMES: Mapping[Outcome, tuple[str, str, str]] = {
    Outcome.ALLOWED: ("✓", "allowed", "$text-success"),
    Outcome.WAITING: ("?", "waits for a person", "$text-warning"),
    Outcome.BLOCKED: ("✗", "blocked", "$text-error"),
    Outcome.RATE_LIMITED: ("▲", "too many at once", "$text-error"),
    Outcome.REPEATED: ("=", "answered as before", "$foreground-muted"),
}


def blank(cells: int) -> Content:
    """The gate takes a line of nothing but blanks for an empty one."""
    return system_text("").pad_right(cells)


ITSELF = system_text("–", "$foreground-muted")
UNKNOWN = system_text("")
GLYPHS: Mapping[RoutePolicy | None, Content] = {
    policy: system_text(glyph, style) for policy, (glyph, _, style) in LOOKS.items()
}
CELLS: Mapping[RoutePolicy | None, Content] = {
    policy: system_text(glyph if policy is None else f"{glyph} {word}", style)
    for policy, (glyph, word, style) in LOOKS.items()
}
# On 60 columns all of it has to be seen.
LEGEND = blank(2).join(
    GLYPHS[policy] + system_text(f" {words}".replace(":", ","), "$foreground-muted")
    for policy, words in WORDS.items()
)


def policy_text(policy: RoutePolicy | None) -> Content:
    glyph, _, style = LOOKS[policy]
    return system_text(f"{glyph} {WORDS[policy]}", style)


def outcome_text(outcome: Outcome) -> Content:
    glyph, words, style = OUTCOMES[outcome]
    return system_text(f"{glyph} {words}", style)


def pair_text(of: str, to: str, style: str = "bold") -> Content:
    return agent_text(of, style, limit=100) + system_text(ARROW) + agent_text(to, style, limit=100)


def policy_change(before: RoutePolicy | None, after: RoutePolicy | None) -> Content:
    if before is after:
        return policy_text(after) + system_text("  as before", "$foreground-muted")
    return policy_text(before) + system_text(ARROW) + policy_text(after)


def notes_text(notes: str | None) -> Content:
    if not notes:
        return system_text("none", "$foreground-muted")
    return agent_text(notes, limit=NOTES_SHOWN)


def notes_change(before: str | None, after: str | None) -> Content:
    if (before or None) == (after or None):
        return notes_text(after) + system_text("  as before", "$foreground-muted")
    return notes_text(before) + system_text(ARROW) + notes_text(after)
