"""--help and completion: whoever knows nothing but the program's name finds everything."""

import shlex
from pathlib import Path

import pytest
from typer.core import TyperOption

from agent_console import __version__
from agent_console.cli.examples import EXAMPLES
from tests.cli.program import agent_console
from tests.docs.command_line import accepted, command_line, commands, groups, helped, options, parameters
from tests.support.warm_start import PROGRAMS

pytestmark = pytest.mark.xdist_group(PROGRAMS)


def test_every_command_and_every_option_says_what_it_is_for() -> None:
    silent = [path for path, command in commands() if not command.help]
    unsaid = [
        f"{path} {one.name}"
        for path, options in [
            ("", parameters(command_line())),
            *((path, parameters(one)) for path, one in commands()),
        ]
        for one in options
        if not one.help and not (isinstance(one, TyperOption) and one.hidden)
    ]

    assert (silent, unsaid) == ([], [])


def test_no_list_of_commands_cuts_a_sentence() -> None:
    lists = [helped(command_line()), *(helped(one) for one in groups())]

    assert [
        line for text in lists for line in text.splitlines() if line.endswith("...") and "[ARGS]" not in line
    ] == []


def test_no_option_asks_for_a_type_of_python() -> None:
    named = [(path, one.name, one.metavar) for path, one in options()]

    assert [name for *name, metavar in named if metavar is None] == []


def test_a_number_is_told_with_its_bounds() -> None:
    known = dict(commands())

    assert "[default: 24; 1 to 168]" in " ".join(helped(known["registration-tokens mint"]).split())
    assert "[default: 0; 0 to 30]" in " ".join(helped(known["claims take"]).split())


def test_only_who_has_ids_offers_them() -> None:
    known = dict(commands())

    assert "table|json|ids" in helped(known["jobs list"])
    assert "--output table|json " in helped(known["queue stats"])


def test_who_has_to_write_json_is_shown_how() -> None:
    takes_json = {
        path for path, command in commands() if any(one.metavar == "JSON" for one in parameters(command))
    }

    assert takes_json <= EXAMPLES.keys()


def test_every_example_would_be_taken_and_stands_in_the_help_of_its_command() -> None:
    known = dict(commands())

    for path, lines in EXAMPLES.items():
        assert all(accepted(shlex.split(line.partition(" > ")[0])) for line in lines)
        assert all(line in (known[path].epilog or "") for line in lines)


@pytest.mark.parametrize(
    ("shell", "asked"),
    [
        ("bash", {"COMP_WORDS": "agent-console jobs ca", "COMP_CWORD": "2"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "agent-console jobs ca"}),
        ("fish", {"_TYPER_COMPLETE_ARGS": "agent-console jobs ca", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}),
    ],
)
def test_a_shell_completes_commands_and_no_console_opens(
    tmp_path: Path, shell: str, asked: dict[str, str]
) -> None:
    done = agent_console(home=tmp_path, _AGENT_CONSOLE_COMPLETE=f"complete_{shell}", **asked)

    assert (done.code, done.err) == (0, "")
    assert "cancel-many" in done.out
    assert "retry" not in done.out
    assert not list(tmp_path.iterdir())


def test_the_version_is_told_from_the_one_place_where_it_stands(tmp_path: Path) -> None:
    assert agent_console("--version", home=tmp_path).out == f"agent-console {__version__}\n"
