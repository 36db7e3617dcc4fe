"""`serve` as an operator starts it: TLS by files, the address that it says, a log that can be read by machines."""

import json
import signal
from pathlib import Path

import pytest

from agent_console.domain.records import Nothing
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.operations import ME
from agent_console.server.listening import listening_socket
from tests.cli.program import environment, started
from tests.server.certificates import tls_files
from tests.support.fleet import Fleet
from tests.support.warm_start import PROGRAMS

pytestmark = pytest.mark.xdist_group(PROGRAMS)


async def called(url: str, token: str, authority: Path) -> str:
    async with HttpRepository(url, token, ca_file=authority) as repository:
        return (await repository.call(ME, Nothing())).team


async def test_it_speaks_tls_and_logs_each_request(fleet: Fleet, tmp_path: Path) -> None:
    files, token = tls_files(tmp_path), fleet.token("ana@example.com")
    variables = environment(tmp_path, AGENT_CONSOLE_DSN=fleet.working)
    words = ("serve", "--port", "0", "--tls-cert", str(files.certificate), "--tls-key", str(files.key))

    with started(*words, variables=variables) as program:
        assert program.stdout is not None
        url = program.stdout.readline().strip()
        team = await called(url, token, files.authority)
        program.send_signal(signal.SIGTERM)
        _, told = program.communicate()

    lines = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    assert (url.partition("//")[0], team) == ("https:", "example")
    assert [(line["path"], line["status"], line["address"]) for line in lines] == [("/v1/me", 200, "127.0.0.1")]
    assert token not in told


async def test_it_is_quiet_when_asked(fleet: Fleet, tmp_path: Path) -> None:
    variables = environment(tmp_path, AGENT_CONSOLE_DSN=fleet.working)

    with started("serve", "--port", "0", "--no-access-log", variables=variables) as program:
        assert program.stdout is not None
        url = program.stdout.readline().strip()
        async with HttpRepository(url, fleet.token("ana@example.com")) as repository:
            await repository.call(ME, Nothing())
        program.send_signal(signal.SIGTERM)
        _, told = program.communicate()

    assert url.startswith("http://")
    assert "{" not in told


def test_a_bad_certificate_is_one_sentence_and_the_database_is_not_touched(tmp_path: Path) -> None:
    variables = environment(tmp_path, AGENT_CONSOLE_DSN="postgresql://127.0.0.1:1/none")
    absent = str(tmp_path / "absent.pem")

    with started("serve", "--tls-cert", absent, "--tls-key", absent, variables=variables) as program:
        _, told = program.communicate()

    assert program.wait() == 2
    assert f"The TLS certificate can't be read from {absent}: No such file or directory." in told
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("host", "said"), [("127.0.0.1", "is taken."), ("0.0.0.0", "Refusing to send credentials in the clear")]
)
def test_who_may_not_listen_leaves_no_database_behind(tmp_path: Path, host: str, said: str) -> None:
    data = tmp_path / "data"
    with listening_socket("127.0.0.1", 0) as taken:
        words = ("serve", "--host", host, "--port", str(taken.getsockname()[1]))
        with started(*words, variables=environment(tmp_path, AGENT_CONSOLE_DATA=str(data))) as program:
            _, told = program.communicate()

    assert program.wait() == 2
    assert said in told
    assert "Traceback" not in told
    assert not data.exists()
