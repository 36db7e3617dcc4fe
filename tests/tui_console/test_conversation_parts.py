"""The parts of a conversation on their own: what is held, where one goes, what is drafted, what was found."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from agent_console.domain.errors import ConsoleError
from agent_console.domain.ids import MessageId, RunId, ThreadId, UserId
from agent_console.domain.kinds import ActorType
from agent_console.domain.messages import Message, SeqPage
from agent_console.tui.panes.conversation.drafts import Draft, Drafts
from agent_console.tui.panes.conversation.heading import Status, status_line
from agent_console.tui.panes.conversation.held import NEWEST_KEPT, Held, Stretch, after, before, newest
from agent_console.tui.panes.conversation.lines import FOLDED_LINES, UNFOLDED_LINES, word_lines
from agent_console.tui.panes.conversation.places import Place, place_of
from agent_console.tui.panes.conversation.search import Hits
from agent_console.tui.widgets.tall_window import Heights, TallWindow
from tests.support.fleet import AT

THREAD = ThreadId(int=1)


def message(seq: int, content: str = "words") -> Message:
    return Message(
        id=MessageId(int=seq),
        seq=seq,
        thread_id=THREAD,
        author_type=ActorType.HUMAN,
        author_user_id=UserId(int=1),
        author_agent_id=None,
        author="Ole Berg",
        content=content,
        payload={},
        run_id=None,
        created_at=AT,
    )


def back(thread: list[int], seq: int | None, limit: int) -> SeqPage[Message]:
    """A page as the other side gives it, newest first."""
    older = [one for one in thread if seq is None or one < seq][::-1]
    shown = older[:limit]
    more = len(older) > limit
    return SeqPage[Message](
        items=tuple(map(message, shown)),
        next_before_seq=shown[-1] if more else None,
        next="before" if more else None,
    )


def forward(thread: list[int], seq: int, limit: int) -> SeqPage[Message]:
    later = [one for one in thread if one > seq]
    return SeqPage[Message](items=tuple(map(message, later[:limit])), next="after" if len(later) > limit else None)


def seqs(held: Held) -> list[int]:
    return [one.seq for one in held.messages]


pages = st.lists(st.tuples(st.booleans(), st.integers(0, 400), st.integers(1, 20)), max_size=20)


@settings(max_examples=60, deadline=None)
@given(thread=st.sets(st.integers(1, 400), max_size=120).map(sorted), asked=pages, most=st.integers(60, 100))
def test_whatever_pages_come_nothing_is_twice_and_only_gaps_hide_anything(
    thread: list[int], asked: list[tuple[bool, int, int]], most: int
) -> None:
    held = Held().with_stretch(newest(back(thread, None, 10)))
    for goes_back, seq, limit in asked:
        page = back(thread, seq, limit) if goes_back else forward(thread, seq, limit)
        come = before(seq, page) if goes_back else after(seq, page)
        held = held.with_stretch(come).trimmed(seq, most)

    shown = seqs(held)
    assert shown == sorted(set(shown))
    assert len(shown) <= most
    assert shown[-NEWEST_KEPT:][-1:] == thread[-1:]
    for stretch in held.stretches:
        assert [one.seq for one in stretch.messages] == [
            seq for seq in thread if stretch.low <= seq <= stretch.high
        ]
    for above, below in pairwise(held.stretches):
        assert above.high + 1 < below.low, "a gap leaves room for something"


def test_stretches_that_touch_become_one() -> None:
    held = Held((Stretch(1, 3, tuple(map(message, (1, 3)))), Stretch(8, 9, (message(8),))))

    joined = held.with_stretch(Stretch(4, 7, (message(5),)))

    assert seqs(joined) == [1, 3, 5, 8]
    assert joined.gaps == ()


def heights_of(heights: list[int], screen: int) -> Heights:
    return Heights(len(heights), screen, heights.__getitem__)


@settings(max_examples=100, deadline=None)
@given(
    heights=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    screen=st.integers(1, 15),
    index=st.integers(0, 11),
    line=st.integers(-5, 20),
)
def test_a_window_never_shows_less_than_there_is(heights: list[int], screen: int, index: int, line: int) -> None:
    index = min(index, len(heights) - 1)
    tall = heights_of(heights, screen)

    window = tall.with_line(index, line)

    left = sum(heights[window.top :]) - window.cut
    assert 0 <= window.cut < heights[window.top]
    assert left >= min(screen, sum(heights))
    if left > screen and window != TallWindow():
        assert tall.line_of(window, index) == line


@pytest.mark.parametrize(
    ("heights", "index", "its_end", "line"),
    [
        ([2, 2, 2, 2], 3, False, 2),
        ([2, 2, 9, 2], 2, False, 0),
        ([2, 2, 9, 2], 2, True, -5),
    ],
    ids=["just into sight", "too tall, from above", "too tall, from below"],
)
def test_the_shortest_scroll_shows_an_item(heights: list[int], index: int, its_end: bool, line: int) -> None:
    tall = heights_of(heights, 4)

    window = tall.showing(TallWindow(), index, its_end=its_end)

    assert tall.line_of(window, index) == line


@pytest.mark.parametrize(
    ("typed", "place"),
    [
        ("#1204", Place(seq=1204)),
        (" 7 ", Place(seq=7)),
        ("40m", Place(time=AT - timedelta(minutes=40))),
        ("02:10", Place(time=datetime(2099, 3, 1, 2, 10, tzinfo=UTC))),
        ("04:00", Place(time=datetime(2099, 2, 28, 4, 0, tzinfo=UTC))),
        ("2099-02-01 10:00", Place(time=datetime(2099, 2, 1, 10, 0, tzinfo=UTC))),
        (str(RunId(int=5)), Place(run_id=RunId(int=5))),
    ],
)
def test_a_place_is_typed_in_many_ways(typed: str, place: Place) -> None:
    assert place_of(typed, AT) == place


@pytest.mark.parametrize("typed", ["soon", "25:00", "9" * 19, "run_x", "\x1b[2J"])
def test_what_is_no_place_is_refused_with_a_sentence(typed: str) -> None:
    with pytest.raises(ConsoleError):
        place_of(typed, AT)


def test_a_draft_keeps_its_key_until_its_words_change() -> None:
    drafts = Drafts()
    drafts.keep(THREAD, Draft("once"))
    first = drafts.message_of(THREAD)
    again = drafts.message_of(THREAD)
    drafts.keep(THREAD, Draft("once more"))

    assert first == again
    assert drafts.message_of(THREAD).idempotency_key != first.idempotency_key


def test_what_is_typed_while_a_message_is_on_its_way_stays() -> None:
    drafts = Drafts()
    drafts.keep(THREAD, Draft("sent"))
    on_its_way = drafts.message_of(THREAD)
    drafts.keep(THREAD, Draft("sent, and more"))

    drafts.was_said(on_its_way)

    assert drafts.of(THREAD).text == "sent, and more"


def test_too_long_a_draft_is_refused_and_stays() -> None:
    drafts = Drafts()
    drafts.keep(THREAD, Draft("x" * 70_000))

    with pytest.raises(ValidationError):
        drafts.message_of(THREAD)
    assert drafts.of(THREAD).says_something


def test_a_search_never_goes_past_its_ends_and_says_when_there_may_be_more() -> None:
    hits = Hits("words", (9, 5), more=True, place=1)

    assert hits.needs_more
    assert hits.count == "> 2"
    assert hits.moved(1).seq == 5
    assert hits.moved(-1).moved(-1).seq == 9


@pytest.mark.parametrize("content", ["x" * 60_000, "\n".join(map(str, range(3_000)))], ids=["long", "many lines"])
def test_a_long_message_is_folded_and_says_so(content: str) -> None:
    folded = word_lines(message(1, content), 78, unfolded=False, found=None)
    whole = word_lines(message(1, content), 78, unfolded=True, found=None)

    assert len(folded) == FOLDED_LINES + 2
    assert f"{len(content):,} characters, o unfolds" in folded[-2].plain
    assert sum(len(line.plain) for line in whole) > len(content)


def test_a_message_of_line_breaks_costs_no_more_than_a_long_one_and_says_what_is_left_out() -> None:
    content = "a\n" * 30_000

    lines = word_lines(message(1, content), 78, unfolded=True, found=None)

    assert len(lines) == UNFOLDED_LINES + 2
    assert "52,001 characters more" in lines[-2].plain


@pytest.mark.parametrize("hits", [None, Hits("week"), Hits("week", seqs=(7, 5), more=False, place=0)])
def test_a_kept_draft_is_told_whole_in_eighty_columns_beside_a_search(hits: Hits | None) -> None:
    status = Status(Held(), at_end=False, live=True, seen=0, hits=hits, has_draft=True)

    line = status_line(status)

    assert line.cell_length <= 78
    assert "✎ draft kept" in line.plain
