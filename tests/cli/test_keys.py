"""The keys of the console from the command line, and from a file of their own."""

import json
from pathlib import Path

import pytest

from agent_console.cli.keys_file import read_keys_file
from agent_console.domain.errors import ConfigError
from tests.cli.program import agent_console
from tests.support.warm_start import PROGRAMS

pytestmark = pytest.mark.xdist_group(PROGRAMS)


def test_every_key_is_listed_by_its_id(tmp_path: Path) -> None:
    ended = agent_console("keys", "-o", "json", home=tmp_path)

    rows = {row["id"]: row for row in json.loads(ended.out)}
    assert (ended.code, ended.err) == (0, "")
    assert rows["list.filter"] == {
        "id": "list.filter",
        "keys": "slash",
        "where": "list",
        "does": "Filter",
        "changed": False,
    }


def test_a_keymap_with_a_mistake_is_told_and_shown(tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "agent-console"
    folder.mkdir(parents=True)
    (folder / "keys.toml").write_text('list.refresh = "a"\n"app.hepl" = "f1"\n')

    ended = agent_console("keys", home=tmp_path)

    assert ended.code == 1
    assert "a is the key of list.refresh and of list.act" in ended.err
    assert "Did you mean app.help?" in ended.err
    assert "list.refresh" in ended.out


def test_a_file_may_say_an_id_with_or_without_quotes(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_text('"list.refresh" = "x"\napp.quit = ["q", "f10"]\n')

    assert read_keys_file(path) == {"list.refresh": "x", "app.quit": "q,f10"}
    assert read_keys_file(tmp_path / "none.toml") == {}


@pytest.mark.parametrize("text", ["list.refresh = 5", "list.refresh = []", "= x", 'list.refresh = ""'])
def test_a_file_that_says_no_key_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(text)

    with pytest.raises(ConfigError):
        read_keys_file(path)
