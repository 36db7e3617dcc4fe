"""How runs look, and what waits in their trees: always a glyph and a word, with a colour on top."""

from textual.content import Content

from agent_console.tui.agent_text import system_text

STATUS: dict[str, tuple[str, str]] = {
    "queued": ("○", ""),
    "running": ("●", "$text-success"),
    "cancelling": ("◌", "$text-warning"),
    "succeeded": ("✓", "$foreground-muted"),
    "failed": ("✗", "$text-error"),
    "timeout": ("▲", "$text-error bold"),
    "cancelled": ("-", "$foreground-muted"),
    "pending": ("◐", "$text-warning bold"),
}


def run_status(status: str) -> Content:
    """Also of a server that is newer than this console and knows more states."""
    glyph, style = STATUS.get(status, ("?", "$foreground-muted"))
    return system_text(f"{glyph} {status}", style)
