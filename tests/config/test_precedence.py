"""Who wins: command line, environment, profile, top level, default; and what displaces what."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_console.config import Direct, Embedded, Origin, Remote, SecretVariable, Settings, load

Write = Callable[[str], Path]

FILE = """
theme = "light"
mouse = false
team = "ops"
[profiles.prod]
url = "https://console.example.com"
theme = "ansi"
read_only = true
"""


def dsn_of(settings: Settings) -> str:
    assert isinstance(settings.profile.target, Direct)
    return settings.profile.target.dsn.get_secret_value()


@pytest.mark.rule("R004-78")
def test_without_any_configuration_the_embedded_profile_is_ready(home: Path) -> None:
    settings = load()

    assert settings.profile.name == "local"
    assert isinstance(settings.profile.target, Embedded)
    assert (settings.theme, settings.mouse, settings.slow) == ("dark", True, False)
    assert set(settings.origin.values()) == {Origin("default")}


@pytest.mark.parametrize(
    ("command_line", "environment", "file", "theme", "origin"),
    [
        ({"theme": "dark"}, {"AGENT_CONSOLE_THEME": "ansi"}, FILE, "dark", "command line --theme"),
        ({"theme": "dark"}, {"NO_COLOR": "1"}, FILE, "dark", "command line --theme"),
        ({}, {"NO_COLOR": "1", "AGENT_CONSOLE_THEME": "ansi"}, FILE, "mono", "environment NO_COLOR"),
        ({}, {"NO_COLOR": ""}, FILE, "ansi", "FILE [profiles.prod]"),
        ({"theme": None}, {"AGENT_CONSOLE_THEME": "dark"}, FILE, "dark", "environment AGENT_CONSOLE_THEME"),
        ({}, {"AGENT_CONSOLE_THEME": ""}, FILE, "ansi", "FILE [profiles.prod]"),
        ({}, {}, FILE, "ansi", "FILE [profiles.prod]"),
        ({}, {}, FILE.replace('theme = "ansi"', ""), "light", "FILE (top level)"),
        ({}, {}, "[profiles.prod]\nembedded = true", "dark", "default"),
    ],
)
def test_the_highest_source_gives_the_theme(
    *,
    command_line: dict[str, object],
    environment: dict[str, str],
    file: str,
    theme: str,
    origin: str,
    config_file: Write,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = config_file(file)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    settings = load({"profile": "prod", **command_line})

    assert (settings.theme, str(settings.origin["theme"]).replace(str(path), "FILE")) == (theme, origin)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("TEAM", "payments", "payments"),
        ("USER", "ana@example.com", "ana@example.com"),
        ("READ_ONLY", "false", False),
        ("PRODUCTION", "1", True),
        ("COLOUR", "cyan", "cyan"),
    ],
)
def test_a_variable_speaks_for_the_chosen_profile(
    key: str, text: str, value: object, config_file: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    config_file(FILE)
    monkeypatch.setenv(f"AGENT_CONSOLE_{key}", text)

    settings = load({"profile": "prod"})

    assert getattr(settings.profile, key.lower()) == value
    assert settings.origin[key.lower()] == Origin("environment", f"AGENT_CONSOLE_{key}")


@pytest.mark.parametrize(
    ("command_line", "variable", "file", "name", "origin"),
    [
        ("a", "b", 'default_profile = "c"', "a", "command line --profile"),
        (None, "b", 'default_profile = "c"', "b", "environment AGENT_CONSOLE_PROFILE"),
        (None, "", 'default_profile = "c"', "c", "FILE default_profile"),
        (None, "", "", "local", "default"),
    ],
)
def test_the_profile_is_chosen_by_the_highest_source(
    *,
    command_line: str | None,
    variable: str,
    file: str,
    name: str,
    origin: str,
    config_file: Write,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = config_file(file + "".join(f"\n[profiles.{letter}]\nembedded = true" for letter in "abc"))
    monkeypatch.setenv("AGENT_CONSOLE_PROFILE", variable)

    settings = load({"profile": command_line})

    assert settings.profile.name == name
    assert str(settings.origin["profile"]).replace(str(path), "FILE") == origin
    assert settings.profile_names == ("a", "b", "c", "local")


def test_a_dsn_in_the_environment_displaces_the_profiles_url(
    config_file: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = config_file('[profiles.prod]\nurl = "https://console.example.com"\ntoken_env = "PROD_TOKEN"')
    monkeypatch.setenv("AGENT_CONSOLE_DSN", "postgresql://ana@db.example.com/fleet")

    settings = load({"profile": "prod"})

    assert dsn_of(settings) == "postgresql://ana@db.example.com/fleet"
    in_profile = Origin("file", "[profiles.prod]", path)
    assert dict(settings.set_aside) == {"url": in_profile, "token_env": in_profile}


def test_a_displaced_profile_is_labelled_with_where_it_really_leads(
    config_file: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    config_file("[profiles.local]\nembedded = true")
    monkeypatch.setenv("AGENT_CONSOLE_DSN", "postgresql://ana:secret@db.example.com/fleet")

    profile = load().profile

    assert (profile.name, profile.label) == ("local", "db.example.com/fleet")


def test_displacing_the_built_in_profile_sets_nothing_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_CONSOLE_URL", "https://console.example.com")

    settings = load()

    assert settings.profile.target == Remote("https://console.example.com")
    assert dict(settings.set_aside) == {}


def test_a_token_is_never_sent_to_another_address_than_its_own(
    config_file: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    config_file('[profiles.prod]\nurl = "https://console.example.com"\ntoken_env = "PROD_TOKEN"')
    monkeypatch.setenv("PROD_TOKEN", "opt_key_1")

    profile = load({"profile": "prod", "url": "https://elsewhere.example.com"}).profile

    assert profile.target == Remote("https://elsewhere.example.com")
    assert profile.token() is None


def test_a_token_without_an_address_goes_to_the_one_that_was_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_CONSOLE_TOKEN", "opt_key_1")

    settings = load({"url": "https://console.example.com"})

    assert settings.profile.token_source == SecretVariable("AGENT_CONSOLE_TOKEN")
    assert dict(settings.set_aside) == {}


def test_a_token_beside_an_address_in_the_environment_does_not_go_to_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AGENT_CONSOLE_URL", "https://console.example.com")
    monkeypatch.setenv("AGENT_CONSOLE_TOKEN", "opt_key_1")

    settings = load({"url": "https://elsewhere.example.com"})

    assert settings.profile.token_source is None
    assert [*settings.set_aside] == ["url", "token_env"]


def test_a_token_in_the_environment_replaces_the_profiles_token(
    config_file: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    config_file('[profiles.prod]\nurl = "https://console.example.com"\ntoken_file = "absent.token"')
    monkeypatch.setenv("AGENT_CONSOLE_TOKEN", "opt_key_2")

    settings = load({"profile": "prod"})

    assert settings.profile.token_source == SecretVariable("AGENT_CONSOLE_TOKEN")
    assert settings.origin["token"] == Origin("environment", "AGENT_CONSOLE_TOKEN")


def test_a_listen_dsn_goes_aside_with_its_dsn(config_file: Write) -> None:
    config_file('[profiles.prod]\ndsn = "postgresql://pooler/fleet"\nlisten_dsn = "postgresql://db/fleet"')

    target = load({"profile": "prod", "dsn": "postgresql://other/fleet"}).profile.target

    assert isinstance(target, Direct)
    assert target.listen_dsn is None


@pytest.mark.parametrize(
    ("command_line", "environment", "dsn", "listen_dsn", "set_aside"),
    [
        ({"dsn": "postgresql://mine/fleet"}, {"LISTEN_DSN"}, "mine", "environment", ["dsn", "listen_dsn"]),
        ({}, {"LISTEN_DSN"}, "file", "environment", []),
        ({}, {"DSN", "LISTEN_DSN"}, "environment", "environment", ["dsn", "listen_dsn"]),
        ({}, {"DSN"}, "environment", None, ["dsn", "listen_dsn"]),
        # It was given for the address beside it.
        ({"dsn": "postgresql://mine/fleet"}, {"DSN", "LISTEN_DSN"}, "mine", None, ["dsn", "listen_dsn"]),
    ],
)
def test_a_listen_dsn_in_the_environment_is_for_whatever_dsn_is_used_unless_one_stands_beside_it(
    *,
    command_line: dict[str, object],
    environment: set[str],
    dsn: str,
    listen_dsn: str | None,
    set_aside: list[str],
    config_file: Write,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config_file('[profiles.prod]\ndsn = "postgresql://file/fleet"\nlisten_dsn = "postgresql://file/fleet"')
    for name in environment:
        monkeypatch.setenv(f"AGENT_CONSOLE_{name}", "postgresql://environment/fleet")

    settings = load({"profile": "prod", **command_line})

    target = settings.profile.target
    assert isinstance(target, Direct)
    assert dsn_of(settings) == f"postgresql://{dsn}/fleet"
    told = None if target.listen_dsn is None else target.listen_dsn.get_secret_value()
    assert told == (None if listen_dsn is None else f"postgresql://{listen_dsn}/fleet")
    assert [*settings.set_aside] == set_aside


def test_embedded_false_is_as_good_as_absent(config_file: Write) -> None:
    config_file('[profiles.prod]\nurl = "https://console.example.com/"\nembedded = false')

    target = load({"profile": "prod"}).profile.target

    assert target == Remote("https://console.example.com")


def test_keymaps_add_up_binding_by_binding(config_file: Write) -> None:
    path = config_file(
        """
        keymap = { "jobs.cancel" = "x", "jobs.retry" = "r" }
        [profiles.prod]
        embedded = true
        keymap = { "jobs.cancel" = ["c", "delete"] }
        """
    )

    settings = load({"profile": "prod"})

    assert dict(settings.keymap) == {"jobs.cancel": "c,delete", "jobs.retry": "r"}
    assert settings.origin["keymap.jobs.cancel"] == Origin("file", "[profiles.prod]", path)
    assert settings.origin["keymap.jobs.retry"] == Origin("file", "", path)


@pytest.mark.parametrize("by", ["variable", "option"])
def test_another_file_can_be_named(by: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = home / "other.toml"
    other.write_text('theme = "ansi"', encoding="utf-8")
    options: dict[str, object] = {}
    if by == "variable":
        monkeypatch.setenv("AGENT_CONSOLE_CONFIG", "~/other.toml")
    else:
        options["config"] = "~/other.toml"

    settings = load(options)

    assert (settings.config_file, settings.theme) == (other, "ansi")


def test_the_file_is_found_in_the_xdg_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "xdg" / "agent-console").mkdir(parents=True)
    (home / "xdg" / "agent-console" / "config.toml").write_text("slow = true", encoding="utf-8")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "xdg"))

    settings = load()

    assert settings.slow


def test_the_embedded_folder_of_a_profile_starts_at_its_file(config_file: Write) -> None:
    path = config_file('[profiles.lab]\nembedded = true\ndata = "lab"')

    target = load({"profile": "lab"}).profile.target

    assert target == Embedded(path.parent / "lab")


def test_settings_can_not_be_changed() -> None:
    settings = load()

    with pytest.raises(AttributeError):
        settings.__setattr__("theme", "light")
