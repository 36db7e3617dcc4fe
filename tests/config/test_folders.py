"""The folders: where they are, that they are private, and that nothing that exists is changed."""

import os
import stat
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_console.config import Embedded, config_folder, data_folder, load, runtime_folder, state_folder
from agent_console.domain.errors import ConfigError

Folder = Callable[[], Path]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def ordinary_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)


@pytest.mark.parametrize(
    ("folder", "below_home"),
    [
        (data_folder, ".local/share/agent-console"),
        (state_folder, ".local/state/agent-console"),
        (config_folder, ".config/agent-console"),
    ],
)
@pytest.mark.usefixtures("ordinary_user")
def test_a_users_folders_are_in_the_home(folder: Folder, below_home: str, home: Path) -> None:
    assert folder() == home / below_home


@pytest.mark.parametrize(
    ("folder", "variable"),
    [
        (data_folder, "XDG_DATA_HOME"),
        (state_folder, "XDG_STATE_HOME"),
        (config_folder, "XDG_CONFIG_HOME"),
    ],
)
@pytest.mark.usefixtures("ordinary_user")
def test_the_xdg_variables_are_honoured(
    folder: Folder, variable: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(home / "xdg"))

    assert folder() == home / "xdg" / "agent-console"


@pytest.mark.usefixtures("root")
def test_as_root_the_data_is_never_below_a_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "xdg"))

    assert data_folder() == Path("/var/lib/agent-console")


@pytest.mark.parametrize("who", ["root", "ordinary_user"])
def test_the_data_folder_can_be_chosen(
    who: str, home: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    request.getfixturevalue(who)
    monkeypatch.setenv("AGENT_CONSOLE_DATA", "~/fleet")

    settings = load()

    assert data_folder() == home / "fleet"
    assert settings.profile.target == Embedded(home / "fleet")


def test_a_folder_is_made_private_with_all_that_is_missing_above(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_CONSOLE_DATA", str(home / "one" / "two"))

    made = data_folder(create=True)

    assert (mode(made), mode(made.parent)) == (0o700, 0o700)


def test_no_mode_of_an_existing_folder_changes(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    existing = home / "shared" / "data"
    existing.mkdir(parents=True)
    (home / "shared").chmod(0o751)
    existing.chmod(0o755)
    before = [mode(folder) for folder in (existing, *existing.parents)]
    monkeypatch.setenv("AGENT_CONSOLE_DATA", str(existing))

    data_folder(create=True)
    state_folder(create=True)
    config_folder(create=True)

    assert [mode(folder) for folder in (existing, *existing.parents)] == before


def test_asking_for_a_folder_does_not_make_it(home: Path) -> None:
    asked = [state_folder(), config_folder()]

    assert not any(folder.exists() for folder in asked)


def test_loading_makes_no_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_CONSOLE_DATA", str(home / "fleet"))

    load()

    assert list(home.iterdir()) == []


def test_a_file_in_the_way_is_explained(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "fleet").write_text("", encoding="utf-8")
    monkeypatch.setenv("AGENT_CONSOLE_DATA", str(home / "fleet"))

    with pytest.raises(ConfigError) as raised:
        data_folder(create=True)

    assert raised.value.message == f"The folder {home / 'fleet'} can't be made: something else has this name."


def test_an_unset_runtime_folder_warns_nobody() -> None:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")

        folder = runtime_folder()

    assert heard == []
    assert folder.name == "agent-console"


def test_the_runtime_folder_of_the_session_is_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = home / "run"
    session.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(session))

    made = runtime_folder(create=True)

    assert made == session / "agent-console"
    assert mode(made) == 0o700
