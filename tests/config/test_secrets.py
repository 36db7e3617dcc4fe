"""Secrets are read when asked for, from where the profile says; refused when others can read them."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from agent_console.config import Profile, SecretFile, load
from agent_console.config.secrets import read_secret
from agent_console.domain.errors import ConfigError

Write = Callable[[str], Path]
WriteSecret = Callable[[str, int], Path]


def profile_with(config_file: Write, *lines: str) -> Profile:
    config_file("\n".join(["[profiles.prod]", 'url = "https://console.example.com"', *lines]))
    return load({"profile": "prod"}).profile


def refused_token(profile: Profile) -> ConfigError:
    with pytest.raises(ConfigError) as raised:
        profile.token()
    assert "canary" not in f"{raised.value} {raised.value.body()}"
    return raised.value


class Keyring(ModuleType):
    """Stands in for the optional package, which is not installed everywhere."""

    def __init__(self, entries: dict[tuple[str, str], str]) -> None:
        super().__init__("keyring")
        self.entries = entries

    def get_password(self, service: str, name: str) -> str | None:
        if service == "locked":
            raise RuntimeError("canary")
        return self.entries.get((service, name))


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> Keyring:
    keyring = Keyring({})
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    return keyring


def test_a_token_is_read_from_a_private_file(config_file: Write, secret_file: WriteSecret) -> None:
    path = secret_file("opt_key_canary\n", 0o600)
    profile = profile_with(config_file, f'token_file = "~/{path.name}"')

    token = profile.token()

    assert token is not None
    assert token.get_secret_value() == "opt_key_canary"
    assert "canary" not in f"{token!r} {token} {profile!r}"


def test_a_token_file_is_looked_for_beside_the_configuration(config_file: Write) -> None:
    profile = profile_with(config_file, 'token_file = "prod.token"')

    beside = config_file("").parent / "prod.token"

    assert str(beside) in refused_token(profile).message


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_token_file_open_to_others_is_refused(mode: int, config_file: Write, secret_file: WriteSecret) -> None:
    path = secret_file("canary", mode)
    profile = profile_with(config_file, f'token_file = "{path}"')

    error = refused_token(profile)

    assert error.message == (
        f"The token of profile prod is refused: others can read or change {path} (mode {mode:04o})."
    )
    assert error.hint == f"Run: chmod 600 {path}"


@pytest.fixture
def credentials(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that a service manager hands its credentials over in."""
    folder = home / "credentials"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(folder))
    return folder


def kept_in(folder: Path, mode: int) -> SecretFile:
    path = folder / "key"
    path.write_text("canary\n", encoding="utf-8")
    path.chmod(mode)
    return SecretFile(path)


@pytest.mark.parametrize("mode", [0o400, 0o440])
def test_a_credential_of_the_service_is_read_though_its_mode_shows_a_group(credentials: Path, mode: int) -> None:
    kept = kept_in(credentials, mode)

    assert read_secret(kept, "The key").get_secret_value() == "canary"


@pytest.mark.parametrize("mode", [0o460, 0o450, 0o444])
def test_a_credential_of_the_service_that_is_open_any_wider_is_refused(credentials: Path, mode: int) -> None:
    kept = kept_in(credentials, mode)

    with pytest.raises(ConfigError, match=f"mode {mode:04o}"):
        read_secret(kept, "The key")


def test_a_group_may_read_nothing_below_the_folder_of_credentials(credentials: Path) -> None:
    below = credentials / "below"
    below.mkdir()
    kept = kept_in(below, 0o440)

    with pytest.raises(ConfigError, match="mode 0440"):
        read_secret(kept, "The key")


@pytest.mark.parametrize("said", [None, ""])
def test_without_a_folder_of_credentials_no_group_may_read_a_key(
    said: str | None, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    if said is not None:
        monkeypatch.setenv("CREDENTIALS_DIRECTORY", said)
    kept = kept_in(home, 0o440)

    with pytest.raises(ConfigError, match="mode 0440"):
        read_secret(kept, "The key")


def test_a_link_out_of_the_folder_of_credentials_leads_to_no_credential(credentials: Path, home: Path) -> None:
    elsewhere = kept_in(home, 0o440)
    (credentials / "key").symlink_to(elsewhere.path)

    with pytest.raises(ConfigError, match="mode 0440"):
        read_secret(SecretFile(credentials / "key"), "The key")


@pytest.mark.parametrize(
    ("text", "problem"), [("\n", "is empty in the file"), ("canary\ncanary\n", "is not one line of text")]
)
def test_a_file_that_holds_no_secret_is_refused(
    text: str, problem: str, config_file: Write, secret_file: WriteSecret
) -> None:
    path = secret_file(text, 0o600)
    profile = profile_with(config_file, f'token_file = "{path}"')

    error = refused_token(profile)

    assert problem in error.message


def test_a_pipe_does_not_hang_the_console(config_file: Write, home: Path) -> None:
    os.mkfifo(home / "pipe", 0o600)
    profile = profile_with(config_file, 'token_file = "~/pipe"')

    error = refused_token(profile)

    assert error.message.endswith("it is not a file.")


def test_loading_reads_no_secret(config_file: Write) -> None:
    profile = profile_with(config_file, 'token_env = "PROD_TOKEN"')

    error = refused_token(profile)

    assert error.message == "The token of profile prod should come from the variable PROD_TOKEN, which is not set."
    assert error.hint == "Set PROD_TOKEN, or name another place for it in the profile."


def test_a_token_is_read_from_its_variable(config_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    profile = profile_with(config_file, 'token_env = "PROD_TOKEN"')
    monkeypatch.setenv("PROD_TOKEN", "opt_key_1")

    token = profile.token()

    assert token is not None
    assert token.get_secret_value() == "opt_key_1"


def test_a_token_is_read_from_the_keyring(config_file: Write, keyring: Keyring) -> None:
    keyring.entries["https://console.example.com", "ana"] = "opt_key_2"
    profile = profile_with(config_file, 'token_keyring = "https://console.example.com/ana"')

    token = profile.token()

    assert token is not None
    assert token.get_secret_value() == "opt_key_2"


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("console/bob", "keyring console/bob: there is no such entry"),
        ("locked/ana", "keyring locked/ana: RuntimeError"),
    ],
)
def test_a_keyring_without_an_answer_says_so(
    entry: str, problem: str, config_file: Write, keyring: Keyring
) -> None:
    profile = profile_with(config_file, f'token_keyring = "{entry}"')

    error = refused_token(profile)

    assert problem in error.message
    assert error.hint == f"Store it with: keyring set {entry.replace('/', ' ')}"


def test_an_absent_keyring_package_is_explained(config_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    profile = profile_with(config_file, 'token_keyring = "console/ana"')

    error = refused_token(profile)

    assert "the keyring package is not installed" in error.message
    assert "pip install 'agent-console[keyring]'" in error.hint


def test_a_profile_without_a_token_place_has_no_token(config_file: Write) -> None:
    profile = profile_with(config_file)

    token = profile.token()

    assert token is None


def test_a_password_from_elsewhere_is_put_into_both_dsns(
    config_file: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    config_file(
        """
        [profiles.prod]
        dsn = "postgresql://ana@pooler/fleet"
        listen_dsn = "host=db user=ana"
        password_env = "DB_PASSWORD"
        """
    )
    monkeypatch.setenv("DB_PASSWORD", "p@ss w'rd")

    connection = load({"profile": "prod"}).profile.connection()

    assert connection is not None
    assert connection.listen_dsn is not None
    assert connection.dsn.get_secret_value() == "postgresql://ana:p%40ss%20w%27rd@pooler/fleet"
    assert connection.listen_dsn.get_secret_value() == r"host=db user=ana password='p@ss w\'rd'"


def test_only_a_direct_profile_has_a_connection(config_file: Write) -> None:
    profile = profile_with(config_file)

    connection = profile.connection()

    assert connection is None
