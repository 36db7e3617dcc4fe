"""`config show` tells everything but the secrets."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_console.config import Settings, ShownValue, load, show

Write = Callable[[str], Path]
WriteSecret = Callable[[str, int], Path]


def by_name(settings: Settings) -> dict[str, ShownValue]:
    return {value.name: value for value in show(settings)}


def everything(settings: Settings) -> str:
    rows = "".join(f"{row.name} {row.value} {row.origin} {row!r}" for row in show(settings))
    return f"{rows} {settings!r} {settings}"


def test_no_secret_is_shown_in_a_direct_profile(config_file: Write) -> None:
    config_file(
        """
        [profiles.prod]
        dsn = "postgresql://ana:canary@pooler/fleet?sslpassword=canary"
        listen_dsn = "host=db password=canary"
        """
    )

    settings = load({"profile": "prod"})

    assert "canary" not in everything(settings)
    assert by_name(settings)["dsn"].value == "postgresql://ana:***@pooler/fleet?sslpassword=***"
    assert by_name(settings)["listen_dsn"].value == "host=db password=***"


def test_no_secret_is_shown_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_CONSOLE_URL", "https://console.example.com")
    monkeypatch.setenv("AGENT_CONSOLE_TOKEN", "opt_key_canary")
    monkeypatch.setenv("AGENT_CONSOLE_PASSWORD", "canary")

    settings = load()

    assert "canary" not in everything(settings)
    assert by_name(settings)["token"].value == "variable AGENT_CONSOLE_TOKEN (there)"
    assert str(by_name(settings)["token"].origin) == "environment AGENT_CONSOLE_TOKEN"


@pytest.mark.parametrize(
    ("mode", "state"),
    [
        (0o600, "(there)"),
        (0o644, "(not usable: The token is refused: others can read or change PATH (mode 0644).)"),
    ],
)
def test_a_secret_is_shown_as_its_place_and_state(
    mode: int, state: str, config_file: Write, secret_file: WriteSecret
) -> None:
    path = secret_file("opt_key_canary", mode)
    config_file(f'[profiles.prod]\nurl = "https://console.example.com"\ntoken_file = "{path}"')

    settings = load({"profile": "prod"})

    assert by_name(settings)["token"].value.replace(str(path), "PATH") == f"file PATH {state}"
    assert "canary" not in everything(settings)


def test_what_was_displaced_is_shown_as_set_aside(config_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = config_file('[profiles.prod]\nurl = "https://console.example.com"\ntoken_env = "PROD_TOKEN"')
    monkeypatch.setenv("AGENT_CONSOLE_URL", "https://staging.example.com")

    rows = show(load({"profile": "prod"}))

    aside = [(row.name, str(row.origin)) for row in rows if row.value.startswith("set aside")]
    assert aside == [("url", f"{path} [profiles.prod]"), ("token_env", f"{path} [profiles.prod]")]


def test_every_setting_is_shown_once_with_its_origin(config_file: Write) -> None:
    config_file('keymap = { "jobs.cancel" = "x" }')

    settings = load()
    rows = show(settings)

    assert sorted(row.name for row in rows) == sorted(settings.origin)
    assert [row.value for row in rows if row.name == "keymap.jobs.cancel"] == ["x"]


def test_showing_twice_works() -> None:
    settings = load()

    first, second = show(settings), show(settings)

    assert first == second
