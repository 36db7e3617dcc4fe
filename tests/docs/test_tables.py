"""What pages tell in tables and examples of the configuration is what the code has."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_console.agent import environment
from agent_console.config import load
from agent_console.config.complaints import variable
from agent_console.config.sources import SECRET_VARIABLES
from agent_console.config.tables import ChosenTable, FileTable, Preferences, ProfileTable
from agent_console.domain.delegation import Rule
from agent_console.domain.permissions import GRANTS, Permission, Role
from agent_console.domain.team_settings import SETTINGS
from agent_console.repository.postgres.database import SESSION_SETTINGS
from agent_console.tui.keymap import every_key
from tests.docs.blocks import REPOSITORY, documents

OPERATING = REPOSITORY / "docs" / "operating.md"
# The others are made by programs.
PROSE = [page for page in documents() if page.name not in ("api.md", "proof.md", "rules.md")] + [
    REPOSITORY / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "examples/README.md", "packaging/README.md")
]
TOML = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WORD = re.compile(r"`([^`]+)`")
SETTING = re.compile(rf"`({'|'.join(SETTINGS)})`[^`\n]{{0,6}}\(([0-9,]+)\b")
VARIABLE = re.compile(r"\bAGENT_CONSOLE_[A-Z_]*[A-Z]\b")


def section(page: Path, heading: str) -> str:
    _, _, behind = page.read_text(encoding="utf-8").partition(f"\n## {heading}\n")
    assert behind, f"{page.name} has no section {heading}"
    return behind.partition("\n## ")[0]


def table(text: str) -> list[list[str]]:
    """The first table, without its rule."""
    lines = text[text.index("\n|") + 1 :].partition("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [rows[0], *rows[2:]]


def test_the_table_of_rights_is_the_one_that_is_asked() -> None:
    (_, *columns, _), *rows = table(section(OPERATING, "Roles"))

    rights = [row[0].strip("`") for row in rows]
    told = {Role(role): {row[0].strip("`") for row in rows if row[place]} for place, role in enumerate(columns, 1)}

    assert sorted(rights) == sorted(Permission)
    assert told == {role: set(granted) for role, granted in GRANTS.items()}


def test_every_key_of_the_configuration_is_told_once() -> None:
    _, *rows = table(section(OPERATING, "Profiles"))

    told = [key for row in rows for key in WORD.findall(row[0])]

    assert sorted(told) == sorted({*ProfileTable.model_fields, *FileTable.model_fields} - {"profiles"})


def test_which_keys_may_stand_above_all_profiles_is_told() -> None:
    told = re.search(r"\n\n([^|]*?)may stand at the\s+top of the file", section(OPERATING, "Profiles"))

    assert told is not None
    assert set(WORD.findall(told[1])) == set(Preferences.model_fields)


def test_the_rules_of_the_policy_are_told_in_the_order_in_which_they_are_asked() -> None:
    _, *rows = table(section(REPOSITORY / "docs" / "policies.md", "Why a request is refused"))

    told = [rule for row in rows for rule in WORD.findall(row[0])]

    assert told == [rule.value for rule in Rule]


@pytest.mark.parametrize("page", documents(), ids=lambda page: page.name)
def test_a_setting_is_told_with_its_default(page: Path) -> None:
    for name, value in SETTING.findall(page.read_text(encoding="utf-8")):
        assert int(value.replace(",", "")) == SETTINGS[name].default, name


def test_every_setting_is_on_a_page_with_its_default() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in documents())

    assert {name for name, _ in SETTING.findall(text)} == set(SETTINGS)


def test_behind_a_pooler_the_login_is_told_to_have_every_setting_that_a_session_brings() -> None:
    text = (REPOSITORY / "docs" / "scaling.md").read_text(encoding="utf-8")

    told = re.findall(r"^alter role console set (\w+) = '?(\w+)'?;$", text, re.MULTILINE)

    assert sorted(told) == sorted(re.findall(r"-c (\w+)=(\w+)", SESSION_SETTINGS))


@pytest.mark.parametrize("page", PROSE, ids=lambda page: page.name)
def test_no_line_of_prose_is_longer_than_120_characters(page: Path) -> None:
    without_code = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)

    too_long = [
        line for line in without_code.splitlines() if len(line) > 120 and not line.startswith(("|", "<!--"))
    ]

    assert too_long == []


# Cursor keys and the like go without saying, or by their names.
PLAIN = {"up", "down", "home", "end", "pageup", "pagedown", "enter", "escape", "space"}
SPELT = {"*": "asterisk", "/": "slash", ":": "colon", "?": "question_mark"}


def test_every_key_that_works_in_all_lists_is_told() -> None:
    _, *rows = table((REPOSITORY / "docs" / "keys.md").read_text(encoding="utf-8"))
    told = {SPELT.get(key, key) for row in rows for cell in row for key in WORD.findall(cell)}

    everywhere = [key for key in every_key() if key.place in ("app", "list", "pane", "table", "find")]
    first, last = rows[0][0].split(" to ")

    panes = {str(number) for number in range(int(first.strip("`")), int(last.strip("`")) + 1)}
    assert {key for one in everywhere for key in one.keys} - PLAIN <= told | panes


def profiles() -> Iterator[tuple[str, str]]:
    for page in documents():
        for number, block in enumerate(TOML.findall(page.read_text(encoding="utf-8"))):
            if "[profiles." in block:
                yield f"{page.stem}-{number}", block


@pytest.mark.parametrize("block", [block for _, block in profiles()], ids=[name for name, _ in profiles()])
def test_every_profile_that_a_page_shows_can_be_used(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config.toml"
    # Settings of `serve` and of looks are shown without the address that goes with them.
    leads_nowhere = not re.search(r"^(dsn|url|embedded) =", block, re.MULTILINE)
    path.write_text(f'{block}\ndsn = "postgresql:///x"\n' if leads_nowhere else block, encoding="utf-8")
    monkeypatch.setenv("AGENT_CONSOLE_CONFIG", str(path))

    [name] = re.findall(r"\[profiles\.(\w+)\]", block)

    assert load({"profile": name}).profile.name == name


def known_variables() -> set[str]:
    """Those that the program reads, and those that it gives to the programs of agents."""
    source = "\n".join(path.read_text(encoding="utf-8") for path in (REPOSITORY / "src").rglob("*.py"))
    given = re.findall(r'"([A-Z_]+)":', Path(environment.__file__).read_text(encoding="utf-8"))
    derived = map(variable, [*ChosenTable.model_fields, *SECRET_VARIABLES, *given])
    return {*VARIABLE.findall(source), *derived, "AGENT_CONSOLE_TEST_CITUS_DSN"}


@pytest.mark.parametrize("page", documents(), ids=lambda page: page.name)
def test_every_variable_that_a_page_names_is_read_by_somebody(page: Path) -> None:
    assert set(VARIABLE.findall(page.read_text(encoding="utf-8"))) <= known_variables()
