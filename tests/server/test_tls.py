"""TLS by certificate files: what is served with them, who may vouch for it, and what is wrong with a bad one."""

import ssl
from datetime import timedelta
from pathlib import Path

import pytest

from agent_console.domain.errors import CannotConnect, ConfigError
from agent_console.domain.records import Nothing
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.operations import ME
from agent_console.repository.postgres.repository import Backend
from agent_console.server.app import build_app
from agent_console.server.listening import entrance, listening_socket
from agent_console.server.tls import tls_context
from tests.server.certificates import DAY, TlsFiles, tls_files
from tests.server.stage import served
from tests.support.fleet import Fleet


@pytest.fixture
def files(tmp_path: Path) -> TlsFiles:
    return tls_files(tmp_path)


async def test_a_private_authority_is_trusted_when_it_is_named(
    fleet: Fleet, files: TlsFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = fleet.token("ana@example.com")
    async with served(build_app(Backend(fleet.working)), tls_context(files.certificate, files.key)) as url:
        async with HttpRepository(url, token, ca_file=files.authority) as named:
            by_file = await named.call(ME, Nothing())
        monkeypatch.setenv("AGENT_CONSOLE_CA_FILE", str(files.authority))
        async with HttpRepository(url, token) as told:
            by_variable = await told.call(ME, Nothing())

    assert url.startswith("https://127.0.0.1:")
    assert (by_file.team, by_variable.team) == ("example", "example")


async def test_whom_nobody_vouches_for_is_not_told_the_token(fleet: Fleet, files: TlsFiles) -> None:
    lines: list[str] = []
    app = build_app(Backend(fleet.working), access_log=lines.append)
    async with (
        served(app, tls_context(files.certificate, files.key)) as url,
        HttpRepository(url, fleet.token("ana@example.com")) as stranger,
    ):
        with pytest.raises(CannotConnect) as refused:
            await stranger.call(ME, Nothing())

    assert "certificate verify failed" in refused.value.message.lower()
    assert lines == []


def test_nothing_older_than_tls_1_2_is_spoken(files: TlsFiles) -> None:
    assert tls_context(files.certificate, files.key).minimum_version is ssl.TLSVersion.TLSv1_2


def test_with_tls_a_server_may_listen_beyond_this_machine(files: TlsFiles) -> None:
    taken = listening_socket("0.0.0.0", 0)
    port = taken.getsockname()[1]

    with pytest.raises(ConfigError) as refused:
        entrance("0.0.0.0", port, plain_http=False, tls=tls_context(files.certificate, files.key))
    taken.close()

    assert refused.value.message == f"Port {port} on 0.0.0.0 is taken."


def refusal(certificate: Path, key: Path) -> str:
    with pytest.raises(ConfigError) as refused:
        tls_context(certificate, key)
    assert refused.value.hint
    return refused.value.message


def test_a_file_that_is_not_there_is_named(files: TlsFiles, tmp_path: Path) -> None:
    absent = tmp_path / "absent.pem"

    assert (
        refusal(absent, files.key)
        == f"The TLS certificate can't be read from {absent}: No such file or directory."
    )
    assert (
        refusal(files.certificate, absent)
        == f"The TLS key can't be read from {absent}: No such file or directory."
    )


def test_what_is_no_certificate_and_no_key_is_said(files: TlsFiles) -> None:
    assert refusal(files.key, files.key) == f"The TLS file {files.key} holds no certificate in PEM."
    assert refusal(files.certificate, files.certificate).endswith("can be read or changed by everybody.")
    files.certificate.chmod(0o600)
    told = refusal(files.certificate, files.certificate)
    assert told == f"The TLS file {files.certificate} holds no private key in PEM."


@pytest.mark.parametrize(
    ("begins", "ends", "said"),
    [(-2 * DAY, -DAY, "holds a certificate that expired at "), (DAY, 2 * DAY, "that is valid only from ")],
)
def test_a_certificate_out_of_its_time_is_refused(
    tmp_path: Path, begins: timedelta, ends: timedelta, said: str
) -> None:
    files = tls_files(tmp_path, begins=begins, ends=ends)

    assert said in refusal(files.certificate, files.key)


def test_a_key_of_another_certificate_is_refused(files: TlsFiles, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = tls_files(tmp_path / "other")

    told = refusal(files.certificate, other.key)

    assert "can't be used together: KEY_VALUES_MISMATCH" in told


def test_a_key_with_a_passphrase_is_refused_instead_of_asked_for(tmp_path: Path) -> None:
    files = tls_files(tmp_path, passphrase=b"hunter2")

    assert refusal(files.certificate, files.key).endswith("holds a key that needs a passphrase.")


def test_a_key_that_everybody_can_read_is_refused(files: TlsFiles) -> None:
    files.key.chmod(0o644)

    assert refusal(files.certificate, files.key).endswith("can be read or changed by everybody.")


@pytest.mark.parametrize(("content", "reason"), [(None, "No such file"), ("nonsense", "it holds no certificate")])
def test_a_ca_file_that_vouches_for_nobody_is_one_sentence(
    tmp_path: Path, content: str | None, reason: str
) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)

    with pytest.raises(ConfigError) as refused:
        HttpRepository("https://127.0.0.1:1", None, ca_file=path)

    assert refused.value.message.startswith(f"The certificates in {path} can't be used: {reason}")
