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
from agent_console.domain.permissions import GRANTS, Permission, Role
from tests.docs.blocks import REPOSITORY, documents

OPERATING = REPOSITORY / "docs" / "operating.md"
TOML = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WORD = re.compile(r"`([^`]+)`")
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
