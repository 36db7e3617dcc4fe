"""The only place where words become something a widget shows.

A widget that is given a `str` may read it as markup; one that is given `Content` shows it as it is.
Everything here goes through the gate, our own words too: a fact of ours often carries a name
that someone else chose.
"""

from textual.content import Content

from agent_console.domain.safe_text import SafeText, safe_block, safe_text, shortened


def agent_text(text: str, style: str = "", *, limit: int | None = None) -> Content:
    """One line of text from outside, cut to `limit` characters with a note of what is missing."""
    return _content(safe_text(text) if limit is None else shortened(text, limit), style)


def agent_block(text: str, style: str = "") -> Content:
    """Text from outside with the lines it has."""
    return _content(_joined(safe_block(text)), style)


def system_text(text: str, style: str = "") -> Content:
    """Our own words, in as many lines as they have."""
    return _content(_joined(safe_block(text)), style)


def _joined(lines: tuple[SafeText, ...]) -> str:
    return "\n".join(lines)


def _content(text: str, style: str) -> Content:
    return Content.styled(text, style, strip_control_codes=False)
