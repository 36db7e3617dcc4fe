"""The whole console on a hostile fleet, in a real terminal: nothing that anybody wrote acts on the terminal."""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from agent_console.tui.panes.every import MORE
from tests.attacks.hostile_strings import BEL, ESC
from tests.attacks.pty_console import PtyConsole, console_in_a_pty
from tests.attacks.terminal_bytes import strange
from tests.support.fleet import Fleet
from tests.support.warm_start import PROGRAMS

pytestmark = pytest.mark.xdist_group(PROGRAMS)

ENTER, TAB, DOWN, RIGHT, PAGE_DOWN, PAGE_UP = "\r", "\t", f"{ESC}[B", f"{ESC}[C", f"{ESC}[6~", f"{ESC}[5~"
MENU = "╭"


def pasted(text: str) -> str:
    return f"{ESC}[200~{text}{ESC}[201~"


def list_of(noun: str, *words: str) -> tuple[tuple[str, ...], ...]:
    """One of those without a key of their own, chosen from the menu."""
    return ("7", "More lists"), (DOWN * list(MORE).index(noun) + ENTER, *words, "-More lists")


PASTED = pasted(f"{ESC}]52;c;cm0gLXJmIH4K{BEL}\x9b2J\u202e[@click=app.quit]x[/]")

# What is pressed, and what is to be seen then; with a `-` before it, what is to be gone. Whatever follows an
# escape is pressed when the escape has done its work: a terminal sends alt+x as an escape and an x.
TOUR: tuple[tuple[str, ...], ...] = (
    ("0", "Needs attention 5", "⏎ Open", "tab Other list"),
    (TAB + DOWN + "1", "Approvals 2 waiting", "a Decide"),
    (DOWN + ENTER, "r rejects with a reason", "w Who looks"),
    (PAGE_DOWN + "Gr", MENU),
    (ESC, f"-{MENU}"),
    (ESC, "a Decide", "-w Who looks"),
    ("f", "3 decided"),
    (DOWN + "2", "Agents 10", "/ Filter"),
    (PAGE_DOWN + f"g{DOWN}{DOWN}{DOWN}{ENTER}", "s Its sessions", "-/ Filter"),
    ("Ga", MENU),
    (ESC, f"-{MENU}"),
    ("w", "Jobs of", "-Its sessions"),
    (ESC, "s Its sessions", "-Jobs of"),
    (ESC, "Agents 10", "-s Its sessions"),
    ("3", "Jobs 30 all jobs", "/ Filter"),
    (PAGE_DOWN + f"g{DOWN}{DOWN}{ENTER}", "f Level", "-/ Filter"),
    ("Ga", MENU),
    (ESC, f"-{MENU}"),
    ("4", "3 you may read", "n New"),
    (DOWN + ENTER, "# Go to", "-n New"),
    (PAGE_UP + "ot", "Who asked whom", "-# Go to"),
    (ESC, "# Go to", "-Who asked whom"),
    ("p", "Who takes part in", "-# Go to"),
    (ESC, "# Go to", "-Who takes part in"),
    (ESC, "3 you may read", "-# Go to"),
    ("v", "Runs of", "3 all runs", "⏎ Open"),
    (ENTER, "m What it said", "-n New"),
    (ESC, "Runs of", "-m What it said"),
    (ESC, "3 you may read", "-Runs of"),
    ("5", "10 agents, by name"),
    (DOWN + RIGHT + RIGHT + "m", "9 all routes", "f Group"),
    (DOWN + "x", "asked now", "-f Group"),
    (ESC, "9 all routes", "f Group"),
    ("h", "version 1 ", "-f Group"),
    (ESC, "9 all routes", "f Group"),
    ("e", "Next field", "-f Group"),
    (ESC, "9 all routes", "f Group"),
    ("6", "Audit 6 acts", "⏎ Open", "V Verify"),
    (DOWN + DOWN + ENTER, "  chain", "-V Verify"),
    (ESC, "V Verify"),
    ("V", MENU, "Damaged"),
    (ESC, f"-{MENU}"),
    ("3", "Jobs 30 all jobs", "/ Filter"),
    ("/", "tab Complete"),
    (PASTED, "[@click"),
    (ESC, "q Quit", "-tab Complete"),
    *list_of("runs", "Runs 5", "-Jobs 30"),
    *list_of("users", "Users 13", "n New"),
    (DOWN + ENTER, "esc Back", "-n New"),
    (ESC, "Users 13", "n New"),
    *list_of("connectors", "Connectors 1"),
    *list_of("collections", "Collections 1"),
    *list_of("worker_tokens", "Worker tokens 1"),
    *list_of("operator_tokens", "Operator tokens 1"),
    *list_of("registration_tokens", "Registration tokens 1"),
)
HELLO = (
    *("[?1049h", "[2J", "[?1000h", "[?1003h", "[?1015h", "[?1006h", "[?1004h", "[>25u", "[?2026$p", "[?2048$p"),
    *("[?2004h", "[?7l", "[?1000h", "[?1003h", "[?1015h", "[?1006h"),
)
GOODBYE = (
    *("[2J", "[?2004l", "[?7h", "[?1000l", "[?1003l", "[?1015l", "[?1006l", "[<u", "[?1049l", "[?1004l"),
    *("[?1000l", "[?1003l", "[?1015l", "[?1006l"),
)
# The shape of the mouse's pointer, which Textual sets anew for every screen.
POINTER = f"]22;default{BEL}"
HOSTILE_WORDS = re.compile(
    r"\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\\U000|\[@click|\[link=|\[bold red|marks\)|SYSTEM|pre-approved|read only: {"
)


def has_come(words: Sequence[str], screen: str) -> bool:
    """The place, with somebody's words in it: the header, which has some everywhere, does not count."""
    _, _, body = screen.partition("\n")
    as_told = all((word.removeprefix("-") in body) is not word.startswith("-") for word in words)
    return as_told and HOSTILE_WORDS.search(body) is not None


def look_round(console: PtyConsole) -> None:
    for keys, *words in TOUR:
        console.press(keys)
        console.until(partial(has_come, words), f"{words} after {keys!r}")


def test_the_terminal_is_sent_only_what_the_console_itself_makes(hostile: Fleet, tmp_path: Path) -> None:
    with console_in_a_pty(hostile.working, tmp_path) as console:
        console.until(lambda screen: "✓ connected" in screen, "the console")

        look_round(console)
        console.press("q")
        code = console.end()

    found = [each.what.removeprefix(ESC) for each in strange(console.received.decode())]
    assert ([each for each in found if each != POINTER], code) == ([*HELLO, *GOODBYE], 0)
