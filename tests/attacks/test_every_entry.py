"""Hostile text at every door of the server: taken as it is, or refused in plain words; and no secret leaks."""

import json
import logging
import os
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import httpx
import pytest

from agent_console.domain.ids import OperatorTokenId, TeamId
from agent_console.domain.secrets import Secret
from agent_console.repository.operations.audit_trail import AUDIT_EXPORT
from tests.attacks.asked_about import valid, with_its_own_job
from tests.attacks.hostile_strings import HOSTILE, dangers
from tests.attacks.over_http import Server, server
from tests.attacks.request_fields import Field, Values, text_fields
from tests.attacks.two_teams import TwoTeams, our_team
from tests.support.fleet import Fleet
from tests.support.trail import seal

WORDS = tuple(HOSTILE.values())
# Who keeps registering with what is no token is shut out in the end, so that is tried last.
DOORS = sorted(text_fields(), key=lambda door: door.operation.public)
# In the long form every text goes through every door.
TEXTS_FOR_EACH = len(WORDS) if os.environ.get("HYPOTHESIS_PROFILE") == "prove" else 1
REFUSED = {400, 401, 403, 404, 409, 413, 422, 429}
A_SECRET = re.compile(r"(?:agt|art|wkt|opt)_key_\w{70,}")
# For the proof: how many cases a test went through by itself.
Told = Callable[[str, object], None]
HEADERS = ("User-Agent", "X-Request-Id", "Cookie", "X-Forwarded-For", "Last-Event-ID", "Referer", "Origin")


@dataclass(frozen=True)
class Doors:
    """Every field of every operation that takes a text, with the rest of its request as it should be."""

    server: Server
    valid: dict[str, Values]

    async def enter(self, door: Field[str], text: str) -> httpx.Response:
        return await self.server.asked(door.operation, door.filled(self.valid[door.name], text))


@pytest.fixture
async def doors(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Doors]:
    """Every request is made before the first is sent: what is let in may take up the room for another."""
    async with our_team(fleet, monkeypatch) as (stage, ours), server(fleet) as serving:
        teams, known = TwoTeams(stage, ours, {}), dict[str, Values]()
        for door in DOORS:
            if door.operation.name not in known:
                known[door.operation.name] = await valid(teams, door)
        yield Doors(serving, {door.name: with_its_own_job(teams, known[door.operation.name]) for door in DOORS})


def words_of(refusal: httpx.Response) -> str:
    told = refusal.json()
    return f"{told['message']} {told['hint']}"


async def test_a_text_is_taken_or_refused_in_plain_words(doors: Doors, record_property: Told) -> None:
    taken, wrong = set(), []
    record_property("tried", len(DOORS) * TEXTS_FOR_EACH)

    for number, door in enumerate(DOORS):
        for turn in range(TEXTS_FOR_EACH):
            text = WORDS[(number * TEXTS_FOR_EACH + turn) % len(WORDS)]
            answer = await doors.enter(door, text)
            if answer.is_success:
                taken.add(door.name)
            elif answer.status_code not in REFUSED or dangers(words_of(answer)):
                wrong.append((door.name, ascii(text[:80]), answer.status_code, answer.text[:300]))

    assert wrong == []
    assert len(taken) > len(DOORS) / 3
    assert [line for line in doors.server.log if not line.isascii() or not json.loads(line)] == []


async def test_what_stands_in_the_head_of_a_request_is_no_line_of_the_log(
    doors: Doors, caplog: pytest.LogCaptureFixture
) -> None:
    sent = [text.encode("utf-8", "replace") for text in WORDS]
    lines = [bare for text in sent if (bare := re.sub(rb"[\r\n\0]", b"", text)[:4_000].strip())]

    answers = {
        (await doors.server.ana.get("/v1/me", headers=[(name.encode(), line) for name in HEADERS])).status_code
        for line in lines
    }

    assert answers <= {200, 400}
    assert (len(doors.server.log), caplog.messages) == (len(lines), [])
    assert [found for line in doors.server.log for found in dangers(line)] == []
    told = [json.loads(line) for line in doors.server.log]
    assert {line["path"] for line in told} == {"/v1/me"}
    assert [
        line["request_id"] for line in told if not re.fullmatch(r"[\w.-]+", line["request_id"], re.ASCII)
    ] == []
    assert [line[:300] for line in doors.server.log if "evil.example" in line] == []


# What agents and people work with and talk of, as far as it is text of their own.
SAID = """
    select (payload, progress, result_summary, error_message, artifacts_path)::text from jobs
    union all select (message, payload)::text from job_events
    union all select result::text from job_results
    union all select (content, payload)::text from messages
"""


@pytest.mark.rule("U002-31", "U001-21")
async def test_a_secret_that_was_put_anywhere_comes_out_nowhere(
    doors: Doors, fleet: Fleet, caplog: pytest.LogCaptureFixture, record_property: Told
) -> None:
    record_property("tried", len(DOORS))
    canary = Secret.mint(TeamId.new(), OperatorTokenId.new()).word
    caplog.set_level(logging.INFO, "agent_console")
    known, entered, repeated, broken = {canary}, set(), [], []

    for door in DOORS:
        answer = await doors.enter(door, canary)
        broken += [door.name] if answer.is_server_error else []
        if answer.is_success:
            entered.add(door.name)
            known |= set(A_SECRET.findall(answer.text))
        elif canary in answer.text:
            repeated.append(door.name)
    seal(fleet)
    kept = fleet.execute("select a::text from audit_log a")
    exports = [
        (await doors.server.asked(AUDIT_EXPORT, {"format": form})).json()["text"] for form in ("jsonl", "csv")
    ]
    metrics = (await doors.server.ana.get("/metrics")).text

    assert (repeated, broken, len(known) > 3, len(kept) > 20) == ([], [], True, True)
    places = {
        "trail": str(kept),
        "export": "".join(exports),
        "access log": "".join(doors.server.log),
        "log": caplog.text,
        "metrics": metrics,
    }
    assert {place for place, text in places.items() for secret in known if secret in text} == set()
    assert minted_secrets_stored(fleet, known - {canary}) == []
    said = [str(line) for (line,) in fleet.execute(SAID)]
    assert (len(said) > 20, [line for line in said if canary in line]) == (True, [])
    assert {f"jobs.complete {field}" for field in ("result_summary", "result", "artifacts_path")} <= entered


def minted_secrets_stored(fleet: Fleet, secrets: set[str]) -> list[object]:
    """Tables in which a secret of ours can be read: only its hash and its first letters are kept."""
    tables = fleet.execute(
        "select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace"
    )
    everything = " union all ".join(
        f"select '{table}' as place, t::text as line from {table} t" for (table,) in tables
    )
    found = f"select distinct place from ({everything}) as lines where line like any (%s)"
    return [place for (place,) in fleet.execute(found, [f"%{secret}%" for secret in secrets])]
