import io
import json
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from uuid import uuid4

import pytest
from pydantic import BaseModel

from agent_console.cli.output import OutputForm, TableColumn, emit, emit_one, narrate
from agent_console.cli.shown import print_answer
from agent_console.domain.ids import AgentId, ApprovalId, RunId, ThreadId
from agent_console.domain.runs import Trace


class Job(BaseModel):
    id: str
    name: str
    tries: int = 1
    load: float = 0.5


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        raise OSError("no real terminal behind it")


COLUMNS = [
    TableColumn[Job]("id", lambda job: job.id),
    TableColumn[Job]("name", lambda job: job.name),
    TableColumn[Job]("tries", lambda job: str(job.tries), align="right"),
]
JOBS = [Job(id="job_1", name="report"), Job(id="job_22", name="漢字", tries=12)]


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def printed(jobs: list[Job], form: OutputForm, out: io.StringIO | None = None) -> str:
    stream = out or io.StringIO()
    emit(jobs, COLUMNS, form, stdout=stream, stderr=io.StringIO())
    return stream.getvalue()


def test_a_table_lines_up_by_cells_not_by_characters() -> None:
    text = printed(JOBS, OutputForm.TABLE)

    assert text.splitlines() == [
        "ID      NAME    TRIES",
        "job_1   report      1",
        "job_22  漢字       12",
    ]


def test_a_pipe_gets_whole_cells_without_colour() -> None:
    long = Job(id="job_1", name="n" * 300)

    text = printed([long], OutputForm.TABLE)

    assert ("n" * 300 in text, "\x1b" in text) == (True, False)


def test_one_huge_cell_does_not_pad_the_other_rows() -> None:
    huge = Job(id="job_1", name="n" * 100_000)

    text = printed([huge, *JOBS], OutputForm.TABLE)

    assert len(text) < 101_000


def test_a_terminal_gets_lines_that_fit_and_show_where_they_were_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")

    text = printed([Job(id="job_1", name="n" * 300), *JOBS], OutputForm.TABLE, Terminal())

    lines = text.splitlines()
    assert max(map(len, lines)) <= 40
    assert lines[1] == f"job_1   {'n' * 24}…      1"


def test_wide_characters_are_cut_by_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")

    text = printed([Job(id="job_1", name="漢" * 50)], OutputForm.TABLE, Terminal())

    assert text.splitlines()[1] == f"job_1  {'漢' * 7}…       1"


def test_more_columns_than_the_terminal_holds_are_cut_visibly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "12")

    text = printed([Job(id="identifier", name="n" * 20)], OutputForm.TABLE, Terminal())

    assert text.splitlines()[1] == "ide…  nnn… …"


def test_a_tower_of_marks_cannot_hide_that_a_cell_was_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")

    text = printed([Job(id="job_1", name="e" + "\u0301" * 5_000 + "end")], OutputForm.TABLE, Terminal())

    assert "…" in text.partition("marks)")[2]


def test_a_terminal_of_unknown_width_counts_as_80_columns() -> None:
    text = printed([Job(id="job_1", name="n" * 300)], OutputForm.TABLE, Terminal())

    assert len(text.splitlines()[1]) == 80


def test_the_header_is_bold_for_a_person() -> None:
    text = printed(JOBS, OutputForm.TABLE, Terminal())

    assert text.startswith("\x1b[1mID ")


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_colour_means_no_escape(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)

    assert "\x1b" not in printed(JOBS, OutputForm.TABLE, Terminal())


def test_json_is_one_document_of_pure_ascii() -> None:
    hostile = Job(id="job_1", name="\x7f\x9b\u202e\U000e0041\ud800é")

    text = printed([hostile], OutputForm.JSON)

    assert text.isascii() and text.replace("\n", "").isprintable()
    assert json.loads(text) == [{"id": "job_1", "name": hostile.name, "tries": 1, "load": 0.5}]


def test_json_says_null_for_what_is_no_number() -> None:
    text = printed([Job(id="job_1", name="", load=float("nan"))], OutputForm.JSON)

    assert json.loads(text)[0]["load"] is None


def test_times_in_plain_rows_are_utc_with_milliseconds() -> None:
    out = io.StringIO()
    at = datetime(2026, 3, 1, 4, 0, 0, 123456, tzinfo=timezone(timedelta(hours=1)))

    emit([{"id": 1, "at": at}], [], OutputForm.JSON, stdout=out)

    assert json.loads(out.getvalue()) == [{"id": 1, "at": "2026-03-01T03:00:00.123Z"}]


def test_ids_come_one_to_a_line() -> None:
    assert printed(JOBS, OutputForm.IDS) == "job_1\njob_22\n"


def test_an_id_cannot_make_two_lines() -> None:
    assert printed([Job(id="job_1\njob_2", name="")], OutputForm.IDS) == "job_1⏎job_2\n"


@pytest.mark.parametrize("form", OutputForm)
def test_more_rows_are_told_on_stderr_only(form: OutputForm) -> None:
    out, told = io.StringIO(), io.StringIO()

    emit(JOBS, COLUMNS, form, next_page="cur\x1bsor", stdout=out, stderr=told)

    assert told.getvalue() == "There are more rows. Get them with: --after cur\\x1bsor\n"
    assert "--after" not in out.getvalue()


def test_an_empty_table_says_so_to_the_person() -> None:
    out, told = io.StringIO(), io.StringIO()

    emit([], COLUMNS, OutputForm.TABLE, stdout=out, stderr=told)

    assert (out.getvalue(), told.getvalue()) == ("ID  NAME  TRIES\n", "Nothing found.\n")


def test_one_thing_is_shown_field_by_field_with_its_lines() -> None:
    out = io.StringIO()

    emit_one(Job(id="job_1", name="two\nlines\x1b"), COLUMNS, OutputForm.TABLE, stdout=out)

    assert out.getvalue() == "id     job_1\nname   two\n       lines\\x1b\ntries  1\n"


@pytest.mark.parametrize(("form", "text"), [(OutputForm.JSON, '{\n  "id": "a"\n}\n'), (OutputForm.IDS, "a\n")])
def test_one_thing_is_one_object_or_one_id(form: OutputForm, text: str) -> None:
    out, row = io.StringIO(), {"id": "a"}
    fields: list[TableColumn[Mapping[str, object]]] = []

    emit_one(row, fields, form, stdout=out)

    assert out.getvalue() == text


def test_a_terminal_that_knows_no_unicode_gets_escapes_instead_of_a_crash() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")

    narrate("漢 …", out)

    assert raw.getvalue() == b"\\u6f22 \\u2026\n"


def test_printing_needs_neither_textual_nor_pydantic() -> None:
    heavy = "{'textual', 'pydantic', 'rich'}"
    code = f"import sys, agent_console.cli.output; print(sorted({heavy} & set(sys.modules)))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def test_a_trace_is_shown_as_the_tree_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    top, below = RunId.new(), RunId.new()
    row: dict[str, object] = {"thread_id": ThreadId.new(), "agent_id": AgentId.new(), "approval_id": None}
    row |= dict.fromkeys(("created_at", "started_at", "ended_at"), datetime(2026, 3, 1, 3, 0, tzinfo=UTC))
    asked = ApprovalId.new()
    rows = [
        row | {"kind": "run", "depth": 0, "run_id": top, "parent_run_id": None, "agent": "atlas", "seconds": 75},
        row | {"kind": "run", "depth": 1, "run_id": below, "parent_run_id": top}
        | {"agent": "beacon", "seconds": None},
        row | {"kind": "approval", "depth": 2, "run_id": None, "approval_id": asked, "parent_run_id": below}
        | {"agent": "cartographer", "seconds": 3700},
    ]  # fmt: skip
    states = ("running", "queued", "pending")
    given = [one | {"status": status} for one, status in zip(rows, states, strict=True)]

    print_answer(Trace.model_validate({"trace_id": uuid4(), "items": given, "truncated": False}), OutputForm.TABLE)

    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()[1:]]
    assert lines == [
        f"atlas             running              1m  {top}",
        f"└ beacon          queued                -  {below}",
        f"  └ cartographer  approval pending  1h 1m  {asked}",
    ]
