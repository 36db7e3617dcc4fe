"""Textual calls the handler of every class of a widget by itself: who calls the one above runs it twice."""

import re
from pathlib import Path

from agent_console import tui

UPWARDS = re.compile(r"super\(\)\.(_?on_\w+)")
NO_HANDLERS = {"on_event"}
"""Where all events come in; it is called once, as any other method."""


def test_no_handler_calls_the_one_above_it() -> None:
    sources = Path(str(tui.__file__)).parent.rglob("*.py")
    calls = ((path.name, name) for path in sources for name in UPWARDS.findall(path.read_text("utf-8")))

    assert [(path, name) for path, name in calls if name not in NO_HANDLERS] == []
