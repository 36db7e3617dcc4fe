"""What `serve` speaks TLS with and how much it takes, and who vouches for a server: from any place, checked."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_console.cli.serving import run_server
from agent_console.config import Origin, Remote, load, show
from agent_console.domain.errors import ConfigError

Write = Callable[[str], Path]
DSN = '[profiles.prod]\ndsn = "postgresql://db/fleet"\n'
URL = '[profiles.prod]\nurl = "https://console.example.com"\n'


def test_without_a_word_there_is_no_tls_and_the_usual_limits_hold() -> None:
    settings = load()

    assert (settings.tls_cert, settings.tls_key) == (None, None)
    assert (settings.requests_per_minute, settings.address_requests_per_minute) == (6_000, 12_000)


def test_files_of_a_profile_lie_beside_the_configuration(config_file: Write) -> None:
    path = config_file(DSN + 'tls_cert = "server.pem"\ntls_key = "~/server.key"\n')

    settings = load({"profile": "prod"})

    assert settings.tls_cert == path.parent / "server.pem"
    assert settings.tls_key == Path.home() / "server.key"


def test_the_command_line_wins(config_file: Write) -> None:
    config_file(DSN + 'tls_cert = "server.pem"\n')

    settings = load({"profile": "prod", "tls_cert": "/etc/other.pem"})

    assert settings.tls_cert == Path("/etc/other.pem")
    assert settings.origin["tls_cert"] == Origin("command line", "--tls-cert")


@pytest.mark.parametrize(
    ("given", "said"),
    [("tls_cert", "TLS has a tls_cert but no tls_key."), ("tls_key", "TLS has a tls_key but no tls_cert.")],
)
def test_one_file_without_the_other_is_refused_before_anything_starts(given: str, said: str) -> None:
    settings = load({"dsn": "postgresql://db/fleet", given: "/etc/server.pem"})

    with pytest.raises(ConfigError) as refused:
        run_server(settings, host="127.0.0.1", port=0, plain_http=False, access_log=False)

    assert refused.value.message == said


def test_limits_come_from_the_profile_and_the_environment(
    config_file: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    config_file(DSN + "requests_per_minute = 100\naddress_requests_per_minute = 200\n")
    monkeypatch.setenv("AGENT_CONSOLE_ADDRESS_REQUESTS_PER_MINUTE", "0")

    settings = load({"profile": "prod"})
    shown = {value.name: value for value in show(settings)}

    assert (settings.requests_per_minute, settings.address_requests_per_minute) == (100, 0)
    assert shown["requests_per_minute"].value == "100"
    assert shown["address_requests_per_minute"].origin == Origin(
        "environment", "AGENT_CONSOLE_ADDRESS_REQUESTS_PER_MINUTE"
    )


@pytest.mark.parametrize("written", ["-1", "10000001", "1.5", '"many"', "true"])
def test_what_is_no_limit_is_one_sentence(config_file: Write, written: str) -> None:
    config_file(DSN + f"requests_per_minute = {written}\n")

    with pytest.raises(ConfigError) as refused:
        load({"profile": "prod"})

    assert '"requests_per_minute" in [profiles.prod] must be a' in refused.value.message


def test_a_profile_names_who_vouches_for_its_server(config_file: Write) -> None:
    path = config_file(URL + 'ca_file = "ca.pem"\n')

    settings = load({"profile": "prod"})

    assert settings.profile.target == Remote("https://console.example.com", path.parent / "ca.pem")
    assert {value.name: value.value for value in show(settings)}["ca_file"] == str(path.parent / "ca.pem")


def test_who_vouches_for_the_profiles_server_vouches_for_no_other(config_file: Write) -> None:
    config_file(URL + 'ca_file = "ca.pem"\n')

    settings = load({"profile": "prod", "url": "https://elsewhere.example.com"})

    assert settings.profile.target == Remote("https://elsewhere.example.com")


def test_the_environment_vouches_for_any_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_CONSOLE_CA_FILE", "/etc/ca.pem")

    settings = load({"url": "https://console.example.com"})

    assert settings.profile.target == Remote("https://console.example.com", Path("/etc/ca.pem"))
    assert settings.origin["ca_file"] == Origin("environment", "AGENT_CONSOLE_CA_FILE")


def test_a_ca_file_without_a_server_is_a_mistake(config_file: Write) -> None:
    config_file(DSN + 'ca_file = "ca.pem"\n')

    with pytest.raises(ConfigError) as refused:
        load({"profile": "prod"})

    assert refused.value.message.endswith("profile prod has ca_file but no url.")
