"""The sentences somebody reads at 03:00, and nothing but the sentences."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from agent_console.domain.explaining import AbleAgent, AgentGroup, Standing
from agent_console.domain.ids import AgentId, ConnectorId, LaneId
from agent_console.domain.kinds import CredentialLocation
from agent_console.domain.lane_words import lane_words, listed
from agent_console.domain.lanes import Lane
from agent_console.domain.queue_stats import QueueStats, QueueTotals
from agent_console.domain.why_waiting import (
    bound_words,
    busy_words,
    coming,
    connector_words,
    nobody_words,
    old_transaction_words,
    paused_words,
    since,
    turn_words,
)

NOW = datetime(2026, 3, 2, 3, 0, tzinfo=UTC)
ATLAS = AbleAgent(id=AgentId.new(), name="atlas", since=NOW - timedelta(minutes=46))
IRIS = AbleAgent(id=AgentId.new(), name="iris", since=NOW - timedelta(days=1))
NEVER = AbleAgent(id=AgentId.new(), name="nova")
ANY = Lane(LaneId.new(), None, (), "transcribe", None, None, None)
WHISPER = replace(ANY, required_capabilities=("tool:whisper",))
BOTH = replace(ANY, required_capabilities=("gpu", "tool:whisper"))
ARCHIVE = replace(WHISPER, connector_id=ConnectorId.new(), credentials=CredentialLocation.AGENT)


def group(standing: Standing, *agents: AbleAgent, count: int = 0, capped: bool = False) -> AgentGroup:
    return AgentGroup(standing=standing, count=count or len(agents), capped=capped, agents=agents)


def noted(agent: AbleAgent, note: str) -> AbleAgent:
    return agent.model_copy(update={"note": note})


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        (NOW - timedelta(minutes=46), "since 02:14 UTC"),
        (NOW - timedelta(hours=4), "since yesterday"),
        (NOW - timedelta(days=5), "since 25 February"),
        (NOW - timedelta(days=400), "since 26 January 2025"),
    ],
)
def test_a_time_is_told_as_exactly_as_it_matters(moment: datetime, words: str) -> None:
    assert since(moment, NOW) == words


def test_what_is_to_come_is_told_with_how_long_it_takes() -> None:
    assert coming(NOW + timedelta(hours=3), NOW) == "at 06:00 UTC, in 3h"
    assert coming(NOW + timedelta(days=2), NOW) == "on 4 March 03:00 UTC, in 2d"


def test_a_time_is_told_in_utc_whatever_its_zone() -> None:
    lisbon, kiritimati = timezone(timedelta(hours=1)), timezone(timedelta(hours=14))
    moment = NOW - timedelta(minutes=46)

    assert since(moment.astimezone(lisbon), NOW.astimezone(kiritimati)) == since(moment, NOW) == "since 02:14 UTC"
    later = NOW + timedelta(hours=3)
    assert coming(later.astimezone(kiritimati), NOW.astimezone(lisbon)) == "at 06:00 UTC, in 3h"


OFFLINE = group(Standing.OFFLINE, ATLAS, IRIS)
DRAINED = group(Standing.DRAINED, noted(IRIS, "disk swap"))


@pytest.mark.rule("U000-36")
@pytest.mark.parametrize(
    ("lane", "groups", "missing", "words"),
    [
        (
            WHISPER,
            (OFFLINE,),
            (),
            "Nobody who is online has tool:whisper; 2 agents have it but are offline (atlas since 02:14 UTC,"
            " iris since yesterday).",
        ),
        (
            BOTH,
            (group(Standing.OFFLINE, NEVER),),
            (),
            "Nobody who is online has gpu and tool:whisper; 1 agent has all of it but is offline"
            " (nova was never seen).",
        ),
        (
            WHISPER,
            (DRAINED, group(Standing.OFFLINE, ATLAS, count=12)),
            (),
            "Nobody who is online and open for work has tool:whisper; 1 agent has it but is drained"
            " (iris: disk swap), 12 are offline (atlas since 02:14 UTC, 11 more).",
        ),
        (ANY, (OFFLINE,), (), "Nobody is online; 2 agents could take it but are offline (atlas since 02:14 UTC,"
         " iris since yesterday)."),
        (ANY, (), (), "There is no agent who could take it."),
        (BOTH, (), ("tool:whisper",), "No agent has tool:whisper."),
        (BOTH, (), (), "No agent has gpu and tool:whisper together."),
        (ARCHIVE, (), (), "No agent has tool:whisper and credentials for connector archive together."),
    ],
)  # fmt: skip
def test_that_nobody_could_take_it_says_why(
    lane: Lane, groups: tuple[AgentGroup, ...], missing: tuple[str, ...], words: str
) -> None:
    assert nobody_words(lane, groups, missing, "archive", NOW) == words


def test_of_a_fleet_that_was_looked_at_in_part_nothing_more_is_claimed() -> None:
    words = nobody_words(WHISPER, (), (), None, NOW, whole_fleet=False)

    assert words == (
        "None of the agents that were looked at could take it (it needs tool:whisper), and there are more."
    )


@pytest.mark.parametrize(
    ("standing", "agent", "words"),
    [
        (Standing.FREE, ATLAS, None),
        (Standing.OFFLINE, ATLAS, "It is bound to atlas, who is offline since 02:14 UTC."),
        (Standing.OFFLINE, NEVER, "It is bound to nova, who was never seen."),
        (Standing.BUSY, noted(ATLAS, "1 of 1: crawl"), "It is bound to atlas, who is busy: 1 of 1: crawl."),
        (Standing.DRAINED, noted(ATLAS, "disk swap"), "It is bound to atlas, who is drained: disk swap."),
        (
            Standing.REVOKED,
            ATLAS,
            "It is bound to atlas, who is revoked and will never take it; rebind it or cancel it.",
        ),
    ],
)
def test_a_bound_job_tells_of_its_agent(standing: Standing, agent: AbleAgent, words: str | None) -> None:
    assert bound_words(agent, standing, NOW) == words


def test_when_all_are_busy_they_are_counted_and_some_are_named() -> None:
    one = group(Standing.BUSY, noted(ATLAS, "2 of 2: crawl, crawl"))
    many = group(Standing.BUSY, noted(ATLAS, "1 of 1: crawl"), count=200, capped=True)

    assert busy_words(one, NOW) == "The one agent who could take it is busy (atlas: 2 of 2: crawl, crawl)."
    assert busy_words(many, NOW) == (
        "All 200 or more agents who could take it are busy (atlas: 1 of 1: crawl, and more)."
    )


def test_a_turn_tells_who_is_ahead_and_who_is_free() -> None:
    free = group(Standing.FREE, ATLAS)

    assert turn_words(0, False, free, NOW) == "It is next in its lane; 1 agent is free to take it (atlas)."
    assert turn_words(1, False, None, NOW) == "1 is ahead in its lane."
    assert turn_words(2, False, None, NOW) == "2 are ahead in its lane."
    assert turn_words(1000, True, None, NOW) == "1,000 or more are ahead in its lane."


def test_a_pause_names_who_and_why() -> None:
    words = paused_words("drain", "Ana Costa", NOW - timedelta(minutes=10), "database upgrade", NOW)

    assert words == "The queue is paused (drain) by Ana Costa since 02:50 UTC: database upgrade"


@pytest.mark.rule("R000-106")
def test_a_pending_connector_is_the_reason() -> None:
    pending = replace(ARCHIVE, credentials=CredentialLocation.PENDING)

    assert (connector_words(pending, "archive") or "").startswith("Connector archive has no credentials yet")
    assert connector_words(ARCHIVE, "archive") is None


@pytest.mark.parametrize(("seconds", "warned"), [(None, False), (60.0, False), (61.0, True)])
def test_a_transaction_older_than_a_minute_is_warned_of(seconds: float | None, warned: bool) -> None:
    assert (old_transaction_words(seconds) is not None) is warned


def test_a_lane_is_told_in_words() -> None:
    bound = replace(ARCHIVE, bound_agent_id=ATLAS.id, repository="org/repo")

    assert lane_words(ANY, None, None) == "jobs of type transcribe for any agent"
    assert lane_words(BOTH, None, None) == "jobs of type transcribe for agents with gpu and tool:whisper"
    assert lane_words(bound, "atlas", "archive") == (
        "jobs of type transcribe for atlas alone, in org/repo, through archive"
    )


def test_words_from_outside_are_cut_and_made_safe() -> None:
    many = listed(tuple(f"need{n}" for n in range(12)))
    hostile = lane_words(replace(ANY, job_type="x\x1b[31m" + "y" * 200), None, None)

    assert many.endswith("need8, need9 and 2 more")
    assert "\x1b" not in hostile
    assert len(hostile) < 100


def test_two_looks_make_a_rate() -> None:
    totals = QueueTotals(
        **dict.fromkeys(("created", "claims", "completions", "failures", "retries"), 10),
        **dict.fromkeys(("dead_letters", "cancellations", "lease_losses"), 0),
        claim_wait_seconds=1.0,
    )
    before = QueueStats(
        by_status=(), by_type=(), types_capped=False, by_lane=(), lanes_capped=False, oldest_queued_at=None,
        oldest_queued_seconds=None, totals=totals, average_claim_wait_seconds=None,
        oldest_transaction_seconds=None, hidden_transactions=0, oldest_snapshot_transactions=0, warnings=(),
        at=NOW,
    )  # fmt: skip
    later = {"totals": totals.model_copy(update={"claims": 70}), "at": NOW + timedelta(seconds=30)}

    rates = before.model_copy(update=later).per_minute_since(before)

    assert (rates["claims"], rates["created"]) == (120.0, 0.0)
    assert before.per_minute_since(before) == {}
