"""The command line as a person and as a script use it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from agent_console import __version__
from agent_console.cli.derived import add_nouns
from agent_console.cli.main import load
from agent_console.repository.operations import OPERATIONS, AnyOperation
from tests.cli.program import agent_console, environment
from tests.support.clusters import Cluster
from tests.support.fleet import Fleet
from tests.support.warm_start import PROGRAMS

pytestmark = pytest.mark.xdist_group(PROGRAMS)

# A policy is a file, and what it does not name is deleted unless somebody says otherwise.
SAID_OTHERWISE = {("routes.apply", "text"): "FILE", ("routes.apply", "delete_missing"): "--keep-missing"}


def test_version_and_help_need_nothing(tmp_path: Path) -> None:
    version = agent_console("--version", home=tmp_path)
    help_text = agent_console("--help", home=tmp_path)

    assert (version.code, version.out) == (0, f"agent-console {__version__}\n")
    assert help_text.code == 0
    for word in ("demo", "serve", "status", "db", "config", "agents", "jobs"):
        assert word in help_text.out


@pytest.fixture(scope="module")
def verbs() -> typer.Typer:
    """The derived commands, in this process: that the program has them the tests below show."""
    verbs = typer.Typer(rich_markup_mode=None)
    add_nouns(verbs, load)
    return verbs


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_every_operation_is_a_verb_that_explains_itself(verbs: typer.Typer, operation: AnyOperation) -> None:
    words = [word.replace("_", "-") for word in (operation.noun, operation.action)]
    shown = CliRunner().invoke(verbs, [*words, "--help"])

    assert shown.exit_code == 0
    assert operation.summary.rstrip(".") in " ".join(shown.stdout.split())
    for name in operation.request.model_fields:
        if name not in operation.path_fields:
            option = f"--{name.removesuffix('_id').replace('_', '-')}"
            assert SAID_OTHERWISE.get((operation.name, name), option) in shown.stdout


def test_lists_come_as_table_json_and_ids(tmp_path: Path, fleet: Fleet) -> None:
    table = agent_console("agents", "list", home=tmp_path, AGENT_CONSOLE_DSN=fleet.working)
    as_json = agent_console("agents", "list", "-o", "json", home=tmp_path, AGENT_CONSOLE_DSN=fleet.working)
    ids = agent_console("agents", "list", "-o", "ids", home=tmp_path, AGENT_CONSOLE_DSN=fleet.working)

    assert (table.code, as_json.code, ids.code) == (0, 0, 0), table.err
    assert table.out.splitlines()[0].split()[:3] == ["ID", "NAME", "STATUS"]
    assert "cartographer" in table.out
    found = json.loads(as_json.out)
    assert [agent["name"] for agent in found][:2] == ["atlas", "beacon"]
    assert ids.out.splitlines() == [agent["id"] for agent in found]


def test_data_goes_to_stdout_and_narration_to_stderr(tmp_path: Path, fleet: Fleet) -> None:
    page = agent_console(
        *("jobs", "list", "--limit", "2", "--status", "queued", "-o", "ids"),
        home=tmp_path,
        AGENT_CONSOLE_DSN=fleet.working,
    )

    first, second = page.out.splitlines()
    assert first > second
    assert f"--after {second}" in page.err
    following = agent_console(
        *("jobs", "list", "--limit", "2", "--status", "queued", "-o", "ids", "--after", second),
        home=tmp_path,
        AGENT_CONSOLE_DSN=fleet.working,
    )
    assert following.out.splitlines()[0] < second


def test_a_job_is_created_from_options_a_file_and_standard_input(tmp_path: Path, fleet: Fleet) -> None:
    payload = tmp_path / "payload.json"
    payload.write_text('{"from": "file"}')
    given = {"--payload": ('{"from": "option"}', ""), "": (f"@{payload}", ""), "-": ("-", '{"from": "stdin"}')}

    for text, stdin in given.values():
        made = agent_console(
            *("jobs", "create", "--type", "report", "--payload", text, "-o", "json"),
            *("--required-capabilities", "a", "--required-capabilities", "b", "--priority", "7"),
            home=tmp_path,
            stdin=stdin,
            AGENT_CONSOLE_DSN=fleet.working,
        )
        assert made.code == 0, made.err
        job = json.loads(made.out)
        assert (job["status"], job["priority"], job["required_capabilities"]) == ("queued", 7, ["a", "b"])

    kept = fleet.execute(
        "select payload ->> 'from' from jobs where type = 'report' and payload ? 'from' order by id"
    )
    assert [row[0] for row in kept] == ["option", "file", "stdin"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["agents", "get", "job_01h455vb4pex5vsknk084sn02q"], 2, "an agent id starts with agt_"),
        (["agents", "get", "agt_01h455vb4pex5vsknk084sn02q"], 1, "There is no agent"),
        (["jobs", "create", "--type", "x", "--payload", "{"], 2, "--payload"),
        (
            ["jobs", "create", "--type", "x", "--payload", "@/nowhere/x.json"],
            2,
            "x.json can't be read: No such file",
        ),
        (
            ["jobs", "complete", "job_01h455vb4pex5vsknk084sn02q", "--attempt", "1", "--claim-next", "{"],
            2,
            "--claim-next must",
        ),
        (["jobs", "create", "--type", "x", "--payload", "{}", "--priority", "many"], 2, "--priority"),
        (["jobs", "create"], 2, "--type"),
        (["jobs", "list", "--limit", "1000"], 2, "--limit"),
        (["jobs", "list", "--status", "sleeping"], 2, "--status"),
        (["jobs", "create", "--type", "x", "--payload", "[1]"], 2, "--payload: has to be a JSON object"),
        (["jobs", "create-many", "--jobs", '[{"type": "x"}]'], 2, "--jobs 0.payload: has to be given"),
        (["claims", "take", "--worker", ""], 2, "--worker: must not be blank"),
        (["settings", "set", "", "--value", "3"], 2, "NAME: has to have at least 1 character"),
        (["claims", "take", "--count", "0"], 2, "See: agent-console claims take --help"),
        (
            ["audit", "list", "--since", "2026-11-02T00:00:00Z", "--until", "2026-11-01T00:00:00Z"],
            2,
            "together: `since` must not lie after `until`",
        ),
        (["heartbeat", "send", "--status", "error"], 2, "together: error_message belongs to status error"),
        (["jobs", "explode"], 2, "explode"),
        (["jobs", "list", "-o", "xml"], 2, "xml"),
        (["--profile", "nowhere", "status"], 2, "nowhere"),
        (["--team", "nowhere", "status"], 2, "nowhere"),
    ],
)
def test_mistakes_end_with_a_sentence_and_the_right_code(
    tmp_path: Path, fleet: Fleet, arguments: list[str], code: int, words: str
) -> None:
    variables = {} if "--profile" in arguments else {"AGENT_CONSOLE_DSN": fleet.working}

    ended = agent_console(*arguments, home=tmp_path, **variables)

    assert ended.code == code, ended.err
    assert words in ended.err
    assert "Traceback" not in ended.err
    assert ended.out == ""


@pytest.mark.parametrize(
    ("variables", "code", "words"),
    [
        ({"AGENT_CONSOLE_DSN": "postgresql://127.0.0.1:1/x"}, 3, "Connection refused"),
        ({"AGENT_CONSOLE_URL": "http://127.0.0.1:1", "AGENT_CONSOLE_TOKEN": "opt_key_x"}, 3, "No server answers"),
        ({"AGENT_CONSOLE_URL": "http://127.0.0.1:1"}, 2, "has no token"),
    ],
)
def test_nobody_there_is_exit_code_three(tmp_path: Path, variables: dict[str, str], code: int, words: str) -> None:
    ended = agent_console("status", home=tmp_path, **variables)

    assert (ended.code, ended.out) == (code, "")
    assert words in ended.err
    assert "Traceback" not in ended.err


def test_an_unreadable_configuration_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "broken.toml"
    file.write_text("default_profile = \n")

    ended = agent_console("--config", str(file), "status", home=tmp_path)

    assert ended.code == 2
    assert "broken.toml" in ended.err
    assert "Traceback" not in ended.err


def test_status_is_plain_text(tmp_path: Path, fleet: Fleet) -> None:
    ended = agent_console("status", home=tmp_path, AGENT_CONSOLE_DSN=fleet.working)

    assert ended.code == 0, ended.err
    assert "team example, as Ana Costa (admin)" in ended.out
    assert "6 jobs running, 2 idle of 6 online" in ended.out
    assert "dead_letter" in ended.out
    assert "\x1b" not in ended.out


def test_status_warns_that_nobody_does_the_duties(tmp_path: Path, fleet: Fleet) -> None:
    ended = agent_console("status", home=tmp_path, AGENT_CONSOLE_DSN=fleet.working)

    (warning,) = [line for line in ended.out.splitlines() if line.startswith("WARNING")]
    assert "nobody has done the duties so far" in warning
    assert "agent-console serve" in warning


def test_duties_are_listed_with_who_did_them_last(tmp_path: Path, fleet: Fleet) -> None:
    fleet.execute(
        "insert into duty_rounds (duty, done_at, done_by, seconds, rows) values ('seals', now(), 'db1:7', 0.1, 42)"
    )

    ended = agent_console("duties", "list", home=tmp_path, AGENT_CONSOLE_DSN=fleet.working)

    assert ended.code == 0, ended.err
    header, *lines = ended.out.splitlines()
    assert header.split() == ["NAME", "LATE", "DONE", "AT", "DONE", "BY", "ROWS", "FAILURES", "ERROR"]
    (seals,) = [line.split() for line in lines if line.startswith("seals")]
    assert (seals[1], seals[3:]) == ("no", ["db1:7", "42", "0", "-"])
    assert len(lines) == 10


def test_without_a_terminal_the_console_is_the_status(tmp_path: Path, fleet: Fleet) -> None:
    ended = agent_console(home=tmp_path, AGENT_CONSOLE_DSN=fleet.working)

    assert ended.code == 0, ended.err
    assert "6 jobs running" in ended.out
    assert "needs a terminal" in ended.err
    assert "\x1b" not in ended.out + ended.err


def test_read_only_changes_nothing(tmp_path: Path, fleet: Fleet) -> None:
    ended = agent_console(
        *("--read-only", "jobs", "create", "--type", "x", "--payload", "{}"),
        home=tmp_path,
        AGENT_CONSOLE_DSN=fleet.working,
    )

    assert ended.code != 0
    assert "it is read-only, says command line --read-only." in ended.err
    assert fleet.one("select count(*) from jobs where type = 'x'") == 0


@pytest.mark.rule("R004-59")
def test_migrate_and_status_of_the_schema(tmp_path: Path, postgres: Cluster, fleet: Fleet) -> None:
    fleet.execute("create database fresh_for_cli")
    dsn = postgres.dsn("fresh_for_cli")

    before = agent_console("db", "status", home=tmp_path, AGENT_CONSOLE_DSN=dsn)
    first = agent_console("db", "migrate", home=tmp_path, AGENT_CONSOLE_DSN=dsn)
    again = agent_console("db", "migrate", home=tmp_path, AGENT_CONSOLE_DSN=dsn)
    after = agent_console("db", "status", "-o", "json", home=tmp_path, AGENT_CONSOLE_DSN=dsn)
    fleet.execute("drop database fresh_for_cli with (force)")

    assert (before.code, first.code, again.code, after.code) == (1, 0, 0, 0), first.err
    assert "empty" in before.out
    assert "Ran" in first.err
    assert "already current" in again.err
    assert json.loads(after.out)["state"] == "current"


def test_a_newer_schema_is_told_with_what_it_means_for_this_program(tmp_path: Path, fleet: Fleet) -> None:
    fleet.execute("update alembic_version set version_num = '9999'")
    served = agent_console("db", "migrate", home=tmp_path, AGENT_CONSOLE_DSN=fleet.administration)

    fleet.execute("delete from schema_fits")
    refused = agent_console("db", "status", home=tmp_path, AGENT_CONSOLE_DSN=fleet.administration)

    assert (served.code, refused.code) == (0, 1), served.err
    assert "serves it: nothing to do" in served.err
    assert "no longer serves it: upgrade agent-console" in refused.err


def test_config_show_tells_where_each_value_came_from_and_no_secret(tmp_path: Path) -> None:
    shown = agent_console(
        *("config", "show"),
        home=tmp_path,
        AGENT_CONSOLE_DSN="postgresql://me:hunter2@db.example/x",
        AGENT_CONSOLE_TEAM="payments",
    )

    assert shown.code == 0, shown.err
    assert "hunter2" not in shown.out + shown.err
    line = next(line for line in shown.out.splitlines() if line.startswith("team"))
    assert "payments" in line
    assert "AGENT_CONSOLE_TEAM" in line


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path, fleet: Fleet) -> None:
    fleet.add_jobs(200)
    command = f"{sys.executable} -m agent_console jobs list --limit 200 -o json | head -c 10"

    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        env=environment(tmp_path, AGENT_CONSOLE_DSN=fleet.working),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert "Traceback" not in done.stderr
    assert "Broken" not in done.stderr


@pytest.mark.parametrize("words", ["audit verify", "doctor", "routes export", "queue stats"])
def test_an_answer_without_ids_is_not_asked_for_where_only_ids_are_wanted(tmp_path: Path, words: str) -> None:
    refused = agent_console(
        *words.split(), "-o", "ids", home=tmp_path, AGENT_CONSOLE_DSN="postgresql://127.0.0.1:1/none"
    )

    assert (refused.code, refused.out) == (2, "")
    assert refused.err == "Error: There are no ids in this answer.\nUse -o json.\n"
