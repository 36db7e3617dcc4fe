"""Every mistake is one sentence that names the place, and what to do about it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_console.config import load
from agent_console.domain.errors import ConfigError

Write = Callable[[str], Path]


def refusal(**command_line: object) -> ConfigError:
    with pytest.raises(ConfigError) as raised:
        load(command_line)
    return raised.value


@pytest.mark.parametrize(
    ("file", "message", "hint"),
    [
        ("thme = 1", 'FILE: "thme" is not a known key.', 'Did you mean "theme"?'),
        (
            '[profiles.prod]\ntokn_file = "x"',
            'FILE: "tokn_file" in [profiles.prod] is not a known key.',
            'Did you mean "token_file"?',
        ),
        (
            '[profiles.prod]\ntoken = "canary"',
            'FILE: "token" in [profiles.prod] is not a known key.',
            "A secret is not written here; say where it is: token_file, token_env or token_keyring.",
        ),
        (
            'url = "https://console.example.com"',
            'FILE: "url" is not a known key.',
            "It belongs to a profile: put it under [profiles.NAME].",
        ),
        (
            "zzzzzz = 1",
            'FILE: "zzzzzz" is not a known key.',
            "Known here: theme, mouse, bell, slow, keymap, team, user, read_only, default_profile, profiles.",
        ),
        ('mouse = "yes"', 'FILE: "mouse" must be true or false, not "yes".', "Correct it in FILE."),
        ("mouse = 1", 'FILE: "mouse" must be true or false, not 1.', "Correct it in FILE."),
        (
            "theme = true",
            'FILE: "theme" must be one of dark, light, ansi or mono, not true.',
            "Correct it in FILE.",
        ),
        (
            'theme = "drak"',
            'FILE: "theme" must be one of dark, light, ansi or mono, not "drak".',
            'Did you mean "dark"?',
        ),
        ("profiles = 3", 'FILE: "profiles" must be a table, not 3.', "Correct it in FILE."),
        ("[profiles]\nprod = 3", 'FILE: "prod" in [profiles] must be a table, not 3.', "Correct it in FILE."),
        ("user = 3", 'FILE: "user" must be text in quotes, not 3.', "Correct it in FILE."),
        (
            'team = "The Team"',
            'FILE: "team" must be a team\'s short name: small letters, digits and hyphens, 63 at most, '
            'not "The Team".',
            "Correct it in FILE.",
        ),
        (
            "keymap = { jobs.cancel = 'x' }",
            'FILE: "jobs" in [keymap] must be a key such as "x" or a list of keys, under a binding id '
            'in quotes: "jobs.cancel" = "x".',
            "Correct it in FILE.",
        ),
        (
            "[profiles.'a b']\nembedded = true",
            'FILE: "a b" in [profiles] must be a profile name of letters, digits, dots, hyphens and '
            'underscores, 63 at most, not "a b".',
            "Correct it in FILE.",
        ),
        (
            "theme = \n",
            "The configuration file FILE can't be read: it is not valid TOML: "
            "Invalid value (at line 1, column 9).",
            "Correct that, or name another file with AGENT_CONSOLE_CONFIG.",
        ),
        (
            '[profiles.p]\ndsn = "postgresql://h/d"\nurl = "https://h"',
            "FILE: profile p has dsn and url, which exclude each other.",
            "Keep exactly one of them.",
        ),
        (
            '[profiles.p]\nurl = "https://h"\nembedded = true',
            "FILE: profile p has url and embedded, which exclude each other.",
            "Keep exactly one of them.",
        ),
        (
            '[profiles.p]\nurl = "https://h"\ntoken_env = "A"\ntoken_file = "b"',
            "FILE: profile p has token_file and token_env, which exclude each other.",
            "Keep exactly one of them.",
        ),
        (
            '[profiles.p]\ndsn = "postgresql://u:canary@h/d"\npassword_env = "A"',
            "FILE: profile p has a password in dsn and password_env, which exclude each other.",
            "Keep exactly one of them.",
        ),
        (
            '[profiles.p]\ndsn = "postgresql://h/d"\npassword_env = "A"\npassword_file = "b"',
            "FILE: profile p has password_file and password_env, which exclude each other.",
            "Keep exactly one of them.",
        ),
        (
            '[profiles.p]\nurl = "https://h"\npassword_env = "A"',
            "FILE: profile p has password_env but no dsn.",
            "It is used with dsn only: add the dsn, or remove it.",
        ),
        (
            '[profiles.p]\nurl = "https://h"\nlisten_dsn = "postgresql://h/d"',
            "FILE: profile p has listen_dsn but no dsn.",
            "It is used with dsn only: add the dsn, or remove it.",
        ),
        (
            '[profiles.p]\nurl = "https://h"\ndata = "d"',
            "FILE: profile p has data but is not embedded.",
            "The data folder is for the embedded database only: remove it, or set embedded = true.",
        ),
        (
            'default_profile = "p"\n[profiles.p]\nteam = "ops"',
            "Profile p does not say where to connect.",
            "Give it exactly one of dsn, url and embedded = true.",
        ),
        (
            'default_profile = "prdo"\n[profiles.prod]\nembedded = true',
            "There is no profile 'prdo'; FILE has prod, local.",
            'Did you mean "prod"?',
        ),
        (
            'default_profile = "xyz"',
            "There is no profile 'xyz'; FILE has local.",
            "Choose one of these, or add [profiles.xyz] to the file.",
        ),
        (
            '[profiles.p]\ndsn = "postgresql://u:can@ary@h/d"',
            'FILE: "dsn" in [profiles.p] must be a PostgreSQL address such as '
            "postgresql://user@host/database or host=… dbname=…, "
            "with special characters written as %40 and the like.",
            "Correct it in FILE.",
        ),
        (
            '[profiles.p]\nurl = "ftp://h"',
            'FILE: "url" in [profiles.p] must be a web address such as https://console.example.com.',
            "Correct it in FILE.",
        ),
        (
            '[profiles.p]\nurl = "https://ana:canary@h"',
            'FILE: "url" in [profiles.p] must be a web address without user, password or query; '
            "a token has its own keys (token_file, …).",
            "Correct it in FILE.",
        ),
        (
            '[profiles.p]\nurl = "https://h"\ntoken_file = "opt_key_canary"',
            'FILE: "token_file" in [profiles.p] must be the place where the secret is kept, '
            "not the secret itself.",
            "Correct it in FILE.",
        ),
        (
            '[profiles.p]\nurl = "https://h"\ntoken_keyring = "console"',
            'FILE: "token_keyring" in [profiles.p] must be a keyring entry written as "service/name".',
            "Correct it in FILE.",
        ),
    ],
)
def test_a_mistake_in_the_file_is_named(file: str, message: str, hint: str, config_file: Write) -> None:
    path = config_file(file)

    error = refusal()

    assert error.message.replace(str(path), "FILE") == message
    assert error.hint.replace(str(path), "FILE") == hint
    assert "canary" not in f"{error!r} {error} {error.body()}"


@pytest.mark.parametrize(
    ("environment", "message", "hint"),
    [
        (
            {"AGENT_CONSOLE_SLOW": "maybe"},
            'AGENT_CONSOLE_SLOW must be true or false, not "maybe".',
            "Correct the variable, or unset it.",
        ),
        (
            {"AGENT_CONSOLE_READ_ONYL": "true"},
            "The variable AGENT_CONSOLE_READ_ONYL is not known.",
            "Did you mean AGENT_CONSOLE_READ_ONLY? Unset it otherwise.",
        ),
        (
            {"agent_console_dsn": "postgresql://h/d"},
            "The variable agent_console_dsn is not known.",
            "Did you mean AGENT_CONSOLE_DSN? Unset it otherwise.",
        ),
        (
            {"AGENT_CONSOLE_DSN": "postgresql://h/d", "AGENT_CONSOLE_URL": "https://h"},
            "The environment has AGENT_CONSOLE_DSN and AGENT_CONSOLE_URL, which exclude each other.",
            "Keep exactly one of them.",
        ),
        (
            {"AGENT_CONSOLE_TOKEN": "canary", "AGENT_CONSOLE_TOKEN_FILE": "x"},
            "The environment has AGENT_CONSOLE_TOKEN_FILE and AGENT_CONSOLE_TOKEN, which exclude each other.",
            "Keep exactly one of them.",
        ),
        (
            {"AGENT_CONSOLE_DSN": "postgresql://u:canary@h/d", "AGENT_CONSOLE_PASSWORD": "canary"},
            "The environment has a password in AGENT_CONSOLE_DSN and AGENT_CONSOLE_PASSWORD, "
            "which exclude each other.",
            "Keep exactly one of them.",
        ),
        (
            {"AGENT_CONSOLE_KEYMAP": "[" * 100_000},
            "AGENT_CONSOLE_KEYMAP can't be read: too many brackets within brackets.",
            "Correct the variable, or unset it.",
        ),
        (
            {"AGENT_CONSOLE_KEYMAP": "jobs"},
            'AGENT_CONSOLE_KEYMAP must be a JSON object such as {"jobs.cancel": "x"}, not "jobs".',
            "Correct the variable, or unset it.",
        ),
        (
            {"AGENT_CONSOLE_CONFIG": "/nowhere/config.toml"},
            "The configuration file /nowhere/config.toml can't be read: it does not exist.",
            "Correct that, or name another file with AGENT_CONSOLE_CONFIG.",
        ),
        (
            {"AGENT_CONSOLE_CONFIG": "~nobody-here/config.toml"},
            "The home folder that AGENT_CONSOLE_CONFIG = '~nobody-here/config.toml' begins with is not known.",
            "Write the whole path.",
        ),
    ],
)
def test_a_mistake_in_the_environment_is_named(
    environment: dict[str, str], message: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    error = refusal()

    assert (error.message, error.hint) == (message, hint)
    assert "canary" not in f"{error!r} {error} {error.body()}"


def test_variables_of_other_programs_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_CONSOLE_DEMO_FLEET_SIZE", "12")

    settings = load()

    assert settings.profile.name == "local"


@pytest.mark.parametrize(
    ("command_line", "message", "hint"),
    [
        ({"themes": "dark"}, "--themes is not a known key.", 'Did you mean "theme"?'),
        ({"read_only": "perhaps"}, '--read-only must be true or false, not "perhaps".', None),
        ({"dsn": "postgresql://h/d", "embedded": True}, "The command line has --dsn and --embedded", None),
        ({"token": "canary"}, "--token is not a known key.", None),
    ],
)
def test_a_mistake_on_the_command_line_is_named(
    command_line: dict[str, object], message: str, hint: str | None
) -> None:
    error = refusal(**command_line)

    assert error.message.startswith(message)
    assert hint is None or error.hint == hint
    assert "canary" not in f"{error!r} {error} {error.body()}"


def test_a_file_that_is_a_folder_is_refused(home: Path) -> None:
    (home / ".config" / "agent-console" / "config.toml").mkdir(parents=True)

    error = refusal()

    assert error.message.endswith("config.toml can't be read: Is a directory.")


def test_a_file_that_is_not_text_is_refused(config_file: Write) -> None:
    config_file("").write_bytes(b'team = "\xff"')

    error = refusal()

    assert error.message.endswith("can't be read: it is not UTF-8 text (byte 8).")


def test_a_link_that_leads_nowhere_is_not_an_absent_file(config_file: Write, home: Path) -> None:
    path = config_file("")
    path.unlink()
    path.symlink_to(home / "gone.toml")

    error = refusal()

    assert error.message.endswith("can't be read: it does not exist.")


def test_a_relative_path_needs_a_folder_to_begin_in(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "gone").mkdir()
    monkeypatch.chdir(home / "gone")
    (home / "gone").rmdir()

    error = refusal(config="config.toml")

    assert error.message == "The current folder that --config = 'config.toml' begins with is not known."


@pytest.mark.parametrize(
    "file", ['[profiles.p]\ndsn = "postgresql://u:canary@x@h/d"', 'dsn = "canary', "theme = " + "[" * 5000]
)
def test_no_trace_of_the_refused_value_hangs_on_the_error(file: str, config_file: Write) -> None:
    config_file(file)

    error = refusal()

    assert (error.__cause__, error.__context__) == (None, None)
    assert error.code == "config"
