"""Bodies that mean one thing to who looks and another to who acts, and words that are meant for the database."""

import gzip
import json
import zlib
from collections.abc import AsyncIterator, Callable

import pytest

from agent_console.domain.ids import JobId
from agent_console.repository.operations import Verb
from tests.attacks.asked_about import valid
from tests.attacks.over_http import Server, server
from tests.attacks.request_fields import text_fields
from tests.attacks.two_teams import TwoTeams, our_team
from tests.support.fleet import Fleet

JSON = {"Content-Type": "application/json"}
WHOLE = json.dumps({"type": "report", "payload": {"zeros": "0" * 100_000}}).encode()
SQL = (
    *("'; drop table jobs; --", "' or '1'='1", "1 or 1=1", "x') union select 1 --", "%_\\"),
    *(
        "id desc; select pg_sleep(30)",
        "$$; drop table jobs; $$",
        "\\'; drop table jobs; --",
        "{1,2}",
        "%(team_id)s",
    ),
)
COUNTED = "select count(*) from jobs", "select count(*) from agents", "select count(*) from audit_log"


@pytest.fixture
async def serving(fleet: Fleet) -> AsyncIterator[Server]:
    async with server(fleet) as opened:
        yield opened


# A test is known by the same name in every process: what is compressed holds the time of day.
@pytest.mark.parametrize(
    ("encoding", "body"),
    [("gzip", gzip.compress(WHOLE)), ("deflate", zlib.compress(WHOLE)), ("br", b"\x8b\x00\x80")],
    ids=["gzip", "deflate", "br"],
)
async def test_what_was_pressed_together_is_not_unfolded(
    serving: Server, fleet: Fleet, encoding: str, body: bytes
) -> None:
    """A few bytes could become gigabytes: they are read as they are, and they are no JSON."""
    before = fleet.one("select count(*) from jobs")

    answer = await serving.ana.post("/v1/jobs", content=body, headers=JSON | {"Content-Encoding": encoding})

    assert answer.is_client_error, answer.text
    assert "0000" not in answer.text
    assert fleet.one("select count(*) from jobs") == before


async def test_a_key_that_stands_twice_means_the_same_to_all_who_look(serving: Server, fleet: Fleet) -> None:
    twice = b'"priority": 1, "priority": 7, "payload": {"a": "first", "a": "second"}'
    body = b'{"type": "report", ' + twice + b', "type": "crawl"}'

    answer = await serving.ana.post("/v1/jobs", content=body, headers=JSON)

    made = answer.json()
    assert (answer.status_code, made["type"], made["payload"], made["priority"]) == (
        201,
        "crawl",
        {"a": "second"},
        7,
    )
    kept = fleet.execute("select type, payload, priority from jobs where id = %s", JobId.parse(made["id"]))
    assert kept == [("crawl", {"a": "second"}, 7)]
    told = fleet.execute("select metadata from audit_log where action = 'job.create' order by seq desc limit 1")
    assert [(facts["type"], facts["priority"]) for (facts,) in told if isinstance(facts, dict)] == [("crawl", 7)]


async def test_sql_in_a_filter_an_order_or_a_place_in_a_list_is_a_word_like_any_other(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    doors = [door for door in text_fields() if door.operation.verb is Verb.GET]
    record_property("tried", len(doors) * len(SQL))
    async with our_team(fleet, monkeypatch) as (stage, ours), server(fleet) as serving:
        teams = TwoTeams(stage, ours, {})
        requests = [(door, await valid(teams, door)) for door in doors]
        before, wrong = [fleet.one(counted) for counted in COUNTED], []

        for door, values in requests:
            for words in SQL:
                answer = await serving.asked(door.operation, door.filled(values, words))
                if answer.is_server_error or "syntax error" in answer.text:
                    wrong.append((door.name, words, answer.status_code, answer.text[:200]))

        assert wrong == []
        assert len(doors) > 20
        assert [fleet.one(counted) for counted in COUNTED] == before
