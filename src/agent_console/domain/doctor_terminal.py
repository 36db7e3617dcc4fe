"""What a doctor says of a terminal."""

from collections.abc import Iterator

from agent_console.domain.doctor_facts import TerminalFacts
from agent_console.domain.findings import Finding, judged, not_known

PART = "terminal"
LEAST = (60, 20)
USUAL = (80, 24)
CANNOT_SHOW = frozenset({"", "dumb", "unknown"})


def terminal_findings(terminal: TerminalFacts) -> Iterator[Finding]:
    if not terminal.is_terminal:
        yield not_known(PART, "terminal", "none: this runs in a pipe", "Run doctor in the terminal you work in.")
        return
    yield _kind(terminal)
    yield _colours(terminal)
    yield _size(terminal)
    yield _letters(terminal)
    yield judged(PART, "mouse", "on" if terminal.mouse else "off (mouse = false)")
    yield not_known(PART, "clipboard", "a terminal doesn't say whether it takes OSC 52", _clipboard(terminal))
    if terminal.within:
        yield judged(PART, "inside", terminal.within)
    if terminal.within == "tmux":
        advice = "For a bell as soon as you look elsewhere, not a minute later: set -g focus-events on"
        yield not_known(PART, "focus", "tmux tells nobody where you look unless it is asked to", advice)
    if terminal.over_ssh:
        yield _line(terminal)


def _kind(terminal: TerminalFacts) -> Finding:
    if terminal.term in CANNOT_SHOW:
        advice = "The console needs a real terminal type: export TERM=xterm-256color"
        return judged(PART, "TERM", terminal.term or "not set", wrong=advice)
    return judged(PART, "TERM", terminal.term)


def _colours(terminal: TerminalFacts) -> Finding:
    if terminal.theme == "mono":
        return judged(PART, "colours", "none (theme mono)")
    if terminal.colours >= 1 << 24:
        return judged(PART, "colours", "all")
    advice = "" if terminal.colours >= 256 or terminal.theme == "ansi" else "Choose the 16 colours: --theme ansi"
    return judged(PART, "colours", f"{terminal.colours:,}" if terminal.colours else "none", warning=advice)


def _size(terminal: TerminalFacts) -> Finding:
    size = (terminal.width, terminal.height)
    shown = f"{size[0]}x{size[1]}"
    if size[0] < LEAST[0] or size[1] < LEAST[1]:
        return judged(PART, "size", shown, wrong="Too small to work in: make it 80x24, at least 60x20.")
    small = size[0] < USUAL[0] or size[1] < USUAL[1]
    return judged(PART, "size", shown, warning="80x24 shows every pane whole." if small else "")


def _letters(terminal: TerminalFacts) -> Finding:
    is_utf8 = terminal.encoding.lower().replace("-", "") in {"utf8", "utf8mb4"}
    advice = "" if is_utf8 else "Glyphs will be wrong: export LANG=C.UTF-8"
    return judged(PART, "letters", terminal.encoding or "not known", warning=advice)


def _clipboard(terminal: TerminalFacts) -> str:
    if terminal.within == "tmux":
        return "tmux passes it on only with: set -g allow-passthrough on"
    return "If y copies nothing, allow it in the terminal's settings."


def _line(terminal: TerminalFacts) -> Finding:
    if terminal.slow:
        return judged(PART, "line", "SSH, --slow")
    advice = "Start it with ssh -C: the first screen takes a tenth of the bytes. On a bad line add --slow."
    return judged(PART, "line", "SSH; whether it is compressed can't be seen from here", warning=advice)
