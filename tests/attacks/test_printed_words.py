"""What the command line prints of a hostile fleet: every answer, in every form, to a pipe and to a person."""

import csv
import io
import json
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import BaseModel

from agent_console.cli.derived import has_ids
from agent_console.cli.ending import ended
from agent_console.cli.output import OutputForm
from agent_console.cli.shown import print_answer
from agent_console.domain.errors import NotFound
from agent_console.domain.ids import AgentId
from agent_console.domain.permissions import Permission
from agent_console.domain.records import Request
from agent_console.domain.secrets import Secret
from agent_console.repository.operations import OPERATIONS, AnyOperation, Verb
from agent_console.repository.postgres.identify import by_token
from agent_console.repository.postgres.repository import PostgresRepository, open_direct
from tests.attacks.hostile_strings import HOSTILE, dangers
from tests.attacks.request_fields import Values, id_fields
from tests.attacks.two_teams import Ids, ids_of
from tests.cli.program import Ended, agent_console
from tests.repository.test_permission_table import made_up
from tests.support.asking import ANA
from tests.support.fleet import Fleet
from tests.support.warm_start import PROGRAMS

pytestmark = pytest.mark.xdist_group(PROGRAMS)

# An agent asks for an outcome.
READING = [
    operation for operation in OPERATIONS if operation.verb is Verb.GET and operation.name != "runs.outcome"
]
CONTROLS = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


class Watched(io.StringIO):
    """As if a person sat before it."""

    def isatty(self) -> bool:
        return True


def asked(operation: AnyOperation, ours: Ids) -> Request:
    values: Values = made_up(operation).model_dump(mode="json", exclude_unset=True)
    for field in id_fields():
        if field.operation is operation and field.path[0] in values:
            values = field.filled(values, ours[field.kind.prefix])
    if operation.name == "runs.trace":
        values = {"run_id": str(ours["run"])}
    named = {name: str(ours["agt"]) for name in ("from_agent", "to_agent") if name in values}
    request: Request = operation.request.model_validate({**values, **named})
    return request


def key_of_who_works(fleet: Fleet) -> Secret:
    """Of an agent that holds a job just now."""
    agent_id = AgentId(str(fleet.one("select agent_id from jobs where status = 'running' limit 1")))
    secret = Secret.mint(fleet.team_id(), agent_id)
    fleet.execute("update agents set api_key_hash = %s where id = %s", secret.hash, agent_id)
    return secret


def printed(answer: BaseModel, form: OutputForm, out: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> str:
    with monkeypatch.context() as instead:
        instead.setattr(sys, "stdout", out)
        print_answer(answer, form)
    return out.getvalue()


def harmful(text: str) -> list[str]:
    """The heading of a table is bold where somebody looks; nothing else is our own."""
    bare = text.replace("\x1b[1m", "", 1).replace("\x1b[0m", "", 1)
    return [danger for line in bare.split("\n") for danger in dangers(line)]


async def test_every_answer_is_printed_as_harmless_text(hostile: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, harm, empty = ids_of(hostile, hostile.team_id()), set(), []
    async with open_direct(hostile.working, team="example", user=ANA) as ana:
        at_work = PostgresRepository(ana.backend, by_token(key_of_who_works(hostile)))
        for operation in READING:
            caller = at_work if operation.permission is Permission.ACT_AS_AGENT else ana
            answer = await caller.call(operation, asked(operation, ours))
            forms = [form for form in OutputForm if form is not OutputForm.IDS or has_ids(operation.answer)]
            for form in forms:
                piped = printed(answer, form, io.StringIO(), monkeypatch)
                watched = printed(answer, form, Watched(), monkeypatch)
                harm |= {f"{operation.name} as {form}: {danger}" for danger in harmful(piped) + harmful(watched)}
                empty += [] if piped and watched else [operation.name]
                if form is OutputForm.JSON:
                    assert json.loads(piped) is not None
                    assert piped.isascii()

    assert harm == set()
    assert len(empty) < len(READING) / 4, f"nothing was printed by {empty}"


def test_what_is_written_by_hand_is_harmless_too(hostile: Fleet, tmp_path: Path) -> None:
    def said(*words: str) -> Ended:
        return agent_console("--user", ANA, *words, home=tmp_path, AGENT_CONSOLE_DSN=hostile.working)

    status, policy, lines, table = (
        said("status"),
        said("routes", "export"),
        said("audit", "export"),
        said("audit", "export", "--format", "csv"),
    )

    assert [each.code for each in (status, policy, lines, table)] == [0, 0, 0, 0]
    assert [harmful(each.out + each.err) for each in (status, policy, lines)] == [[], [], []]
    assert len([json.loads(line) for line in lines.out.splitlines()]) > 0
    # A file for spreadsheets keeps every letter, a tower of marks too, but nothing that acts.
    cells = [cell for row in csv.reader(io.StringIO(table.out, newline="")) for cell in row]
    assert [letter for cell in cells for letter in cell if unicodedata.category(letter) in CONTROLS] == []
    assert [cell for cell in cells if cell.lstrip().startswith(("=", "+", "-", "@"))] == []


def test_a_refusal_that_repeats_it_is_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    def refusing(text: str) -> Callable[[], None]:
        def refuse() -> None:
            raise NotFound(f"There is no agent {text}.", hint=text)

        return refuse

    codes = {ended(refusing(text)) for text in HOSTILE.values()}

    told = capsys.readouterr()
    assert (codes, told.out, [found for line in told.err.split("\n") for found in dangers(line)]) == ({1}, "", [])


def test_a_list_without_ids_says_so(hostile: Fleet, tmp_path: Path) -> None:
    told = agent_console("settings", "list", "-o", "ids", home=tmp_path, AGENT_CONSOLE_DSN=hostile.working)

    assert (told.code, told.out, "There are no ids" in told.err) == (2, "", True)
