"""The list of runs as its pages come: in the order of their seq; a page may hold less than was asked for."""

from agent_console.domain.ids import AgentId, RunId, ThreadId
from agent_console.domain.kinds import ParticipantType
from agent_console.domain.records import Page
from agent_console.domain.runs import Run
from agent_console.domain.states import RunStatus
from agent_console.tui.lists.seq_list import SeqList
from tests.support.fleet import AT


def run(seq: int) -> Run:
    """Its id says nothing about its place."""
    return Run(
        id=RunId(int=1_000 - seq),
        seq=seq,
        thread_id=ThreadId(int=1),
        requested_by_type=ParticipantType.HUMAN,
        requested_by_user_id=None,
        requested_by_agent_id=None,
        requested_by=None,
        target_agent_id=AgentId(int=1),
        target="atlas",
        status=RunStatus.QUEUED,
        input_message_id=None,
        trace_id=None,
        parent_run_id=None,
        delegation_path=(),
        route_version=None,
        job_id=None,
        deadline_at=None,
        started_at=None,
        ended_at=None,
        cancel_requested_at=None,
        error_code=None,
        error_message=None,
        output_summary={},
        created_at=AT,
        updated_at=AT,
    )


def page(*seqs: int, goes_on_at: int | None = None) -> Page[Run]:
    return Page[Run](items=tuple(map(run, seqs)), next=None if goes_on_at is None else str(goes_on_at))


def seqs(runs: SeqList[Run]) -> list[int]:
    return [one.seq for one in runs.records]


def test_an_empty_page_goes_on_where_it_ended() -> None:
    first = SeqList[Run]().merged(None, page(90, 80, goes_on_at=80))
    walked = first.merged("80", page(goes_on_at=50))
    whole = walked.merged("50", page(40))

    assert walked.last_before(len(walked.records)) == "50"
    assert (seqs(whole), whole.complete) == ([90, 80, 40], True)


def test_a_page_fetched_again_replaces_the_stretch_it_covers() -> None:
    known = SeqList[Run]((run(90), run(80), run(70), run(60)), complete=True)

    fresh = known.merged("90", page(75, goes_on_at=70))

    assert (seqs(fresh), fresh.complete) == ([90, 75, 60], True)
    assert fresh.index_of(str(run(75).id)) == 1


def test_what_does_not_reach_what_was_known_begins_the_list_anew() -> None:
    known = SeqList[Run]((run(20), run(10)), complete=True)

    fresh = known.merged(None, page(90, 80, goes_on_at=80))

    assert (seqs(fresh), fresh.complete, fresh.going_on) == ([90, 80], False, "80")
    assert fresh.merged("20", page(10)) == fresh
