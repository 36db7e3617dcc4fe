"""What is typed to see a part of the trail, what is kept of it, and the line about its chain."""

from datetime import datetime, timedelta

import pytest

from agent_console.domain.audit_trail import AuditFilter, AuditRow, AuditTailPage, SealStatus
from agent_console.domain.errors import ConsoleError
from agent_console.domain.ids import AgentId, AuditId, Id, JobId, RunId, TeamId, ThreadId, UserId
from agent_console.domain.kinds import ActorType, Decision
from agent_console.domain.records import Page, Record
from agent_console.tui.panes.audit.chain import ChainState, chain_line
from agent_console.tui.panes.audit.filters import filter_words, read_filter
from agent_console.tui.panes.audit.pause import Pause
from agent_console.tui.panes.audit.so_far import ActsSoFar
from tests.support.fleet import AT

ME, ATLAS, JOB, THREAD, RUN = UserId(int=1), AgentId(int=2), JobId(int=3), ThreadId(int=4), RunId(int=5)
SEEN: dict[str, set[Id]] = {"Ana Costa": {ME}, "atlas": {ATLAS}, "kim": {UserId(int=6)}, "Kim": {UserId(int=7)}}
HASH = "0" * 64


@pytest.mark.rule("R002-118")
@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("", {}),
        ("who:me", {"actor_user_id": ME}),
        ('who:"ana costa" decision:block', {"actor_user_id": ME, "decision": Decision.BLOCK}),
        (f"who:{ATLAS}", {"actor_agent_id": ATLAS}),
        ("who:Atlas action:job.", {"actor_agent_id": ATLAS, "action": "job."}),
        ("on:job", {"resource_type": "job"}),
        (f"on:{JOB}", {"resource_type": "job", "resource_id": str(JOB)}),
        (f"thread:{THREAD} run:{RUN}", {"thread_id": THREAD, "run_id": RUN}),
        ("since:2h until:30m", {"since": AT - timedelta(hours=2), "until": AT - timedelta(minutes=30)}),
        ("since:2099-03-01T01:00", {"since": AT - timedelta(hours=2)}),
    ],
)
def test_what_is_typed_becomes_a_question_to_the_database(typed: str, wanted: dict[str, object]) -> None:
    assert read_filter(typed, AT, SEEN, ME) == AuditFilter.model_validate(wanted)


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("job", "does not say what it is to match"),
        ("colour:red", "There is no colour:"),
        ("who:nobody", "No act of nobody is in the list so far"),
        ("who:kim", "2 go by the name kim. Give the id: usr_00000000000000000000000006, usr_"),
        ("decision:maybe", "decision"),
        ("thread:job_1", "thread"),
        ("since:soon", "soon is no time"),
        ('who:"ana', "A quote is not closed"),
        ("since:1h until:2h", "must not lie after"),
    ],
)
def test_what_can_not_be_read_is_refused_with_a_reason(typed: str, why: str) -> None:
    with pytest.raises(ConsoleError, match=why):
        read_filter(typed, AT, SEEN, ME)


def test_a_filter_says_what_is_searched() -> None:
    asked = AuditFilter(actor_agent_id=ATLAS, decision=Decision.BLOCK, since=AT)

    assert filter_words(asked, SEEN) == "who:atlas  decision:block  since 2099-03-01T03:00:00.000Z"
    assert filter_words(AuditFilter(), SEEN) == "last 7 days"
    assert filter_words(AuditFilter(action="job."), SEEN, any_time="ever") == "action:job.  ever"


def one_act(seq: int, position: int | None = None) -> AuditRow:
    return AuditRow(
        id=AuditId(int=seq), seq=seq, created_at=AT, actor_type=ActorType.SYSTEM, actor_user_id=None,
        actor_agent_id=None, actor="x", action="job.create", resource_type="job", resource_id="job_1",
        thread_id=None, run_id=None, decision=None, reason=None, ip=None, user_agent=None, metadata={},
        event_hash=HASH, position=position, seal=None,
    )  # fmt: skip


def page(*seqs: int, goes_on: int | None = None) -> Page[Record]:
    return Page[Record](items=tuple(one_act(seq) for seq in seqs), next=None if goes_on is None else str(goes_on))


def seqs(acts: ActsSoFar) -> list[int]:
    return [act.seq for act in acts.records]


def test_pages_go_together_without_a_gap_whoever_commits_late() -> None:
    acts = ActsSoFar().merged(None, page(9, 8, 6, goes_on=6)).merged("6", page(5, 3, goes_on=3))

    assert seqs(acts) == [9, 8, 6, 5, 3]
    assert seqs(acts.merged(None, page(10, 9, 8, 7, goes_on=7))) == [10, 9, 8, 7, 6, 5, 3], "7 came late"
    assert seqs(acts.merged("8", page(6, 5, 4, goes_on=4))) == [9, 8, 6, 5, 4, 3], "4 came late"
    assert seqs(acts.merged(None, page(30, 29, goes_on=29))) == [30, 29], "what lies between is not known"
    assert seqs(acts.merged("2", page(1))) == seqs(acts), "the list was begun anew meanwhile"
    assert acts.merged("3", page(2)).complete
    assert (acts.index_of(str(AuditId(int=6))), acts.index_of(str(AuditId(int=7)))) == (2, None)
    assert [acts.last_before(place) for place in (0, 1, 5)] == [None, "9", "3"]


def test_a_page_without_a_single_act_only_says_where_to_go_on() -> None:
    acts = ActsSoFar().merged(None, page(goes_on=500)).merged("500", page(goes_on=100))

    assert (seqs(acts), acts.complete, acts.going_on) == ([], False, "100")
    assert seqs(acts.merged("100", page(7))) == [7]


def test_a_pinned_list_asks_for_nothing_newer_and_a_cut_one_goes_on_below() -> None:
    acts = ActsSoFar().merged(None, page(9, 8, 6, goes_on=6)).pinned_here()

    assert acts.last_before(0) == "10"
    assert seqs(acts.merged("10", page(9, 8, 7, goes_on=7))) == [9, 8, 7, 6]
    assert seqs(acts.merged(None, page(12, 11, 9, 7, goes_on=7))) == [9, 7, 6], "asked for before it was pinned"
    assert acts.merged(None, page(12, 11, goes_on=11)) is acts
    assert acts.unpinned().last_before(0) is None
    cut = acts.cut_to(2)
    assert (seqs(cut), cut.going_on, cut.complete) == ([9, 8], "8", False)


def test_what_came_in_is_counted_once_in_the_order_of_the_seals() -> None:
    pause = Pause(newest=9, counted_to=4)
    late, new = one_act(7, 5), one_act(10, 6)

    first = pause.counting(AuditTailPage(items=(late, new), position=6, head=8, next="6"))
    then = first.counting(AuditTailPage(items=(one_act(11, 8),), position=8, head=8))

    assert (first.new, first.behind, first.counted_to) == (1, True, 6)
    assert (then.new, then.behind, then.counted_to) == (2, False, 8)


def status(unsealed: int, lag: float, sealed_at: datetime | None = AT - timedelta(seconds=4)) -> SealStatus:
    return SealStatus(
        team_id=TeamId(int=1), team="example", position=1200, hash=HASH, sealed_at=sealed_at, unsealed=unsealed,
        lag_seconds=lag, at=AT, months=(), kept_since=AT, checkpoints=(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("known", "words"),
    [
        (status(0, 0.0), "Not verified here (V) · sealed to 1,200, 4s ago · all sealed"),
        (status(3, 0.4), "Not verified here (V) · sealed to 1,200, 4s ago · 3 unsealed"),
        (status(3, 5.5), "▲ 3 unsealed for 5s · Not verified here (V) · sealed to 1,200, 4s ago"),
        (status(10_000, 90.0), "▲ 10,000+ unsealed for 1m · Not verified here (V) · sealed to 1,200, 4s ago"),
        (status(1, 0.1, None), "Not verified here (V) · nothing sealed yet · 1 unsealed"),
    ],
)
def test_the_line_about_the_chain(known: SealStatus, words: str) -> None:
    assert chain_line(ChainState(known), AT).plain == words
