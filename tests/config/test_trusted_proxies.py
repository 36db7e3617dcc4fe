"""Which proxies a server trusts: addresses and networks, from any place, and never everybody."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_console.config import Origin, load, show
from agent_console.domain.errors import ConfigError

Write = Callable[[str], Path]
PROFILE = '[profiles.prod]\ndsn = "postgresql://db/fleet"\ntrusted_proxies = {value}\n'


def test_nobody_is_trusted_unless_somebody_says_so() -> None:
    assert load().trusted_proxies == ()


@pytest.mark.parametrize(
    ("written", "trusted"),
    [
        ("'127.0.0.1'", ("127.0.0.1/32",)),
        ("['10.0.0.0/8', '::1']", ("10.0.0.0/8", "::1/128")),
        ("'10.0.0.0/8, ::1'", ("10.0.0.0/8", "::1/128")),
        ("[]", ()),
    ],
)
def test_a_profile_names_addresses_and_networks(
    config_file: Write, written: str, trusted: tuple[str, ...]
) -> None:
    config_file(PROFILE.format(value=written))

    assert load({"profile": "prod"}).trusted_proxies == trusted


def test_the_environment_wins_and_is_named(config_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    config_file(PROFILE.format(value="'10.0.0.0/8'"))
    monkeypatch.setenv("AGENT_CONSOLE_TRUSTED_PROXIES", "127.0.0.1,fd00::/8")

    settings = load({"profile": "prod"})
    shown = {value.name: value for value in show(settings)}["trusted_proxies"]

    assert settings.trusted_proxies == ("127.0.0.1/32", "fd00::/8")
    assert shown.value == "127.0.0.1/32, fd00::/8"
    assert shown.origin == Origin("environment", "AGENT_CONSOLE_TRUSTED_PROXIES")


@pytest.mark.parametrize(
    "written", ["'proxy.example.com'", "''", "'10.0.0.1/8'", "7", "[7]", "true", "'0.0.0.0/0'", "['::/0']"]
)
def test_what_is_no_proxy_is_one_sentence(config_file: Write, written: str) -> None:
    config_file(PROFILE.format(value=written))

    with pytest.raises(ConfigError) as refused:
        load({"profile": "prod"})

    assert '"trusted_proxies" in [profiles.prod] must be addresses or networks' in refused.value.message
