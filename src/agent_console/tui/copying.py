"""Sending text to the clipboard of whoever sits at the terminal, through OSC 52.

Nobody answers it: whether the terminal took the text is not known, so it is only said to have been sent. tmux and
screen pass such a sequence on when it is wrapped for them.
"""

import json
import os
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from textual.app import App

from agent_console.domain.records import Record
from agent_console.domain.safe_text import safe_text
from agent_console.tui.agent_text import agent_text
from agent_console.tui.panes.derived import title_of
from agent_console.tui.panes.list_kind import ListKind

MOST_BASE64 = 74_994
"""What every terminal that knows the sequence is said to take."""
SCREEN_CHUNK = 76
ESC, BEL, ST = "\x1b", "\a", "\x1b\\"


class Copied(StrEnum):
    ID = "id"
    NAME = "name"
    LINE = "line"
    JSON = "JSON"


@dataclass(frozen=True)
class Sent:
    """The sequence, or nothing of it when it is too long, and what to tell."""

    sequence: str
    words: str


def sent_to_terminal(text: str, what: str, environment: Mapping[str, str]) -> Sent:
    """All of the text or nothing: half of an id is worse than none."""
    encoded = b64encode(text.encode()).decode()
    if len(encoded) > MOST_BASE64:
        most = MOST_BASE64 // 4 * 3
        return Sent("", f"Too long for a terminal's clipboard: {len(text.encode()):,} bytes, at most {most:,}.")
    return Sent(_wrapped(f"{ESC}]52;c;{encoded}{BEL}", environment), f"The {what} was sent to your terminal.")


def copy(app: App[Any], text: str, what: str) -> Sent:
    sent = sent_to_terminal(text, what, os.environ)
    if app._driver is not None and sent.sequence:
        app._driver.write(sent.sequence)
        app._driver.flush()
    return sent


def copy_and_tell(app: App[Any], text: str, what: str) -> None:
    sent = copy(app, text, what)
    words = agent_text(sent.words).plain
    app.notify(words, severity="information" if sent.sequence else "warning", markup=False)


def _wrapped(sequence: str, environment: Mapping[str, str]) -> str:
    terminal = environment.get("TERM", "")
    if environment.get("TMUX"):
        return f"{ESC}Ptmux;{sequence.replace(ESC, ESC * 2)}{ST}"
    if environment.get("STY") or terminal.startswith("screen"):
        # It takes only so much at once.
        parts = (sequence[start : start + SCREEN_CHUNK] for start in range(0, len(sequence), SCREEN_CHUNK))
        return "".join(f"{ESC}P{part}{ST}" for part in parts)
    return sequence


def choices_of(kind: ListKind, record: Record, line: str) -> dict[Copied, str]:
    """What can be sent of one thing. Words of others pass the gate, or are escaped as JSON."""
    found = {Copied.ID: safe_text(str(getattr(record, kind.key)))}
    if (name := title_of(record)) != found[Copied.ID]:
        found[Copied.NAME] = safe_text(name)
    whole = json.dumps(record.model_dump(mode="json"), indent=2, ensure_ascii=True)
    return {**found, Copied.LINE: safe_text(line), Copied.JSON: whole}
