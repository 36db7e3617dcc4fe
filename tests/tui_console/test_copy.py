"""Sending to the clipboard of the terminal: one sequence, whole or not at all, and nobody says it arrived."""

import re
from base64 import b64decode, b64encode
from pathlib import Path

import pytest
from textual.app import App

from agent_console.domain.agents import Agent, AgentQuery
from agent_console.repository.operations import AGENTS_LIST
from agent_console.repository.postgres.repository import open_direct
from agent_console.tui.copying import MOST_BASE64, Copied, choices_of, sent_to_terminal
from agent_console.tui.dialogs.secret_screen import SecretScreen
from agent_console.tui.panes.agents.lists import AGENTS
from tests.support.fleet import Fleet
from tests.tui_console.stage import ADMIN
from tests.tui_terminal.real_terminal import RealTerminal

PLAIN = "\x1b]52;c;aGVsbG8=\a"


def test_the_sequence_is_wrapped_for_whoever_stands_between() -> None:
    assert sent_to_terminal("hello", "id", {"TERM": "xterm-256color"}).sequence == PLAIN
    in_tmux = sent_to_terminal("hello", "id", {"TERM": "screen-256color", "TMUX": "/tmp/tmux-0/default,1,0"})
    assert in_tmux.sequence == "\x1bPtmux;\x1b\x1b]52;c;aGVsbG8=\a\x1b\\"
    in_screen = sent_to_terminal("hello" * 40, "id", {"TERM": "screen"}).sequence
    parts = re.findall(r"\x1bP(.*?)\x1b\\", in_screen, re.DOTALL)
    assert all(len(part) <= 76 for part in parts)
    assert "".join(parts) == f"\x1b]52;c;{b64encode(b'hello' * 40).decode()}\a"


def test_what_is_too_long_is_not_sent_in_part() -> None:
    most = MOST_BASE64 // 4 * 3
    fits, too_long = (sent_to_terminal("x" * length, "JSON", {}) for length in (most, most + 1))

    assert len(fits.sequence) > MOST_BASE64 - 4
    assert fits.words == "The JSON was sent to your terminal."
    assert too_long.sequence == ""
    assert f"at most {most:,}" in too_long.words


async def test_only_harmless_text_is_sent_of_a_hostile_thing(fleet: Fleet) -> None:
    async with open_direct(fleet.working, team="example", user=ADMIN) as repository:
        first = (await repository.call(AGENTS_LIST, AgentQuery(limit=1))).items[0]
    agent: Agent = first.model_copy(update={"name": "\x1b]52;c;ZXZpbA==\aevil\u202e"})

    choices = choices_of(AGENTS, agent, "a line with \x1b[31m")

    assert choices[Copied.ID] == str(agent.id)
    assert all("\x1b" not in text and "\u202e" not in text for text in choices.values())
    assert r"\x1b]52" in choices[Copied.NAME]
    assert r"\u001b]52" in choices[Copied.JSON]


async def test_a_secret_is_sent_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMUX", "/tmp/tmux-1000/default,1,0")
    app, written = App[None](), list[str]()
    async with app.run_test() as pilot:
        await app.push_screen(SecretScreen("the secret", "hello"))
        monkeypatch.setattr(app._driver, "write", written.append)
        await pilot.press("c")

    assert written == ["\x1bPtmux;\x1b\x1b]52;c;aGVsbG8=\a\x1b\\"]


@pytest.mark.parametrize("multiplexer", ["", "/tmp/tmux-1000/default,1,0"], ids=["plain", "tmux"])
def test_y_sends_exactly_one_sequence_and_the_mouse_can_be_let_go(
    fleet: Fleet, tmp_path: Path, multiplexer: str
) -> None:
    arguments = ["-m", "agent_console", "--dsn", fleet.working, "--team", "example", "--user", ADMIN]
    terminal = RealTerminal(arguments, HOME=str(tmp_path), XDG_STATE_HOME=str(tmp_path), TMUX=multiplexer)
    try:
        terminal.read_until("Overview")
        terminal.press("2")
        terminal.read_until("atlas")
        terminal.press("y")
        terminal.read_until("clipboard")
        terminal.press("\r")
        received = terminal.read_until("sent to your")
        terminal.press(":mouse off\r")
        silenced = terminal.read_until("The mouse is off")[len(received) :]
    finally:
        terminal.close()

    sent = re.findall(r"\x1b\]52;c;([A-Za-z0-9+/=]*)\a", received)
    assert [b64decode(text).decode() for text in sent] == [str(fleet.agent_id("atlas"))]
    assert "\x1b[?1000l" in silenced
    assert ("\x1bPtmux;\x1b\x1b]52" in received) is bool(multiplexer)
