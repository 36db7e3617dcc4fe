"""The glance: looks before the configuration is read, and never a complaint."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_console.config import load
from agent_console.config.glance import Glance, glance

CONFIG = """
default_profile = "prod"
theme = "light"
slow = true
[profiles.prod]
dsn = "postgresql://db/x"
theme = "ansi"
mouse = false
[profiles.plain]
dsn = "postgresql://db/x"
"""
LOCAL = """
slow = false
[profiles.local]
embedded = true
theme = "mono"
slow = true
mouse = false
bell = false
"""


def test_nothing_configured_is_the_default() -> None:
    assert glance({}) == Glance("dark", slow=False, mouse=True)


@pytest.mark.parametrize("options", [{}, {"profile": "plain"}, {"theme": "dark"}, {"slow": True}])
@pytest.mark.parametrize(
    "variables", [{}, {"AGENT_CONSOLE_THEME": "dark"}, {"AGENT_CONSOLE_SLOW": "0"}, {"NO_COLOR": "1"}]
)
def test_it_sees_what_the_real_reading_will_see(
    config_file: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, object],
    variables: dict[str, str],
) -> None:
    config_file(CONFIG)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    real = load(options)

    assert glance(options) == Glance(real.theme, real.slow, real.mouse)


@pytest.mark.parametrize("options", [{}, {"profile": "local"}])
def test_it_sees_the_profile_that_is_chosen_when_nobody_names_one(
    config_file: Callable[[str], Path], options: dict[str, object]
) -> None:
    config_file(LOCAL)

    real = load(options)

    assert glance(options) == Glance(real.theme, real.slow, real.mouse, real.bell)
    assert glance(options) == Glance("mono", slow=True, mouse=False, bell=False)


@pytest.mark.parametrize("named", ["[]", "{}", "7", '["local"]'])
def test_a_default_profile_that_is_no_name_is_left_to_the_real_reading(
    config_file: Callable[[str], Path], named: str
) -> None:
    config_file(f"default_profile = {named}\n{LOCAL}")

    assert isinstance(glance({}), Glance)


@pytest.mark.parametrize("text", ["theme = ", "theme = 7", "profiles = 3", "\x00", "[profiles.prod"])
def test_what_it_cannot_read_it_leaves_to_the_real_reading(config_file: Callable[[str], Path], text: str) -> None:
    config_file(text)

    assert glance({"profile": "prod"}).mouse is True


def test_a_file_that_is_not_there_is_no_concern_of_it(tmp_path: Path) -> None:
    assert glance({"config": str(tmp_path / "nowhere.toml")}) == Glance()
