"""The filter language: what is read, what is refused and where, what is offered."""

from enum import StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_console.domain.filters import Filter, Filterable, FilterMistake, Qualifier, Term, quoted
from agent_console.domain.jobs import JOB_FILTERS
from agent_console.domain.runs import RUN_FILTERS, THREAD_RUN_FILTERS


class State(StrEnum):
    QUEUED = "queued"
    DEAD_LETTER = "dead_letter"


KNOWN = Filterable(
    (
        Qualifier("status", "its state", listed=tuple(State)),
        Qualifier("agent", "name or id"),
        Qualifier("age", "since it was made", is_age=True),
    ),
    words="its type",
)
VALUES = st.text(st.characters(categories=("L", "N", "P", "S", "Zs"), include_characters=' ":!\\'), min_size=1)
PRINTABLE = VALUES.filter(lambda text: text.isprintable())
TERMS = st.one_of(
    st.builds(Term, st.just(""), PRINTABLE, st.booleans()),
    st.builds(Term, st.just("agent"), PRINTABLE, st.booleans()),
    st.builds(Term, st.just("status"), st.sampled_from(["queued", "dead_letter"]), st.booleans()),
    st.builds(Term, st.just("age"), st.sampled_from([">1h", "<2d4h", ">90s"])),
)


def test_qualifiers_words_and_their_opposites() -> None:
    read = KNOWN.read('status:queued  STATUS:Dead_Letter !agent:"big atlas" age:>1h30m age:<2d report !crawl')

    assert read.wanted("status") == ("queued", "dead_letter")
    assert (read.wanted("agent"), read.unwanted("agent")) == ((), ("big atlas",))
    assert (read.older_than("age"), read.younger_than("age")) == (5400, 172_800)
    assert (read.words, read.unwanted_words) == (("report",), ("crawl",))


@given(st.lists(TERMS, max_size=6))
def test_what_is_written_reads_as_it_was_meant(terms: list[Term]) -> None:
    meant = Filter(tuple(terms))

    assert KNOWN.read(str(meant)) == meant


@given(st.text(max_size=80), st.integers(0, 80))
def test_any_text_is_read_or_refused_at_a_place_in_it(text: str, cursor: int) -> None:
    try:
        read = KNOWN.read(text)
    except FilterMistake as mistake:
        assert 0 <= mistake.at <= len(text)
    else:
        assert KNOWN.read(str(read)) == read
    assert KNOWN.offer(text, min(cursor, len(text))).end <= len(text)


@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        ("stauts:queued", 0, "did you mean status:?"),
        ("report zebra:x", 7, "there are status:, agent:, age:"),
        ("status:quewed", 7, "one of: queued, dead_letter"),
        ("report status:", 14, "has to follow status:"),
        ("age:1h", 4, "such as >1h"),
        ("age:>99999999h", 4, "such as >1h"),
        ("!age:>1h", 5, "not with !"),
        ('agent:"atlas', 6, "not closed"),
        ('re"port', 2, "not closed"),
        ("http://x", 0, "no http:"),
        ("1:2", 0, "in quotes"),
        ("report !", 8, "has to follow"),
        ("a\x1bb", 1, "can't be looked for"),
    ],
)
def test_a_mistake_names_its_place(text: str, at: int, says: str) -> None:
    with pytest.raises(FilterMistake, match=says.replace("?", r"\?")) as refused:
        KNOWN.read(text)

    assert refused.value.at == at


def test_what_is_offered_depends_on_where_the_cursor_stands() -> None:
    names, states, ages = (KNOWN.offer(text, len(text)) for text in ("report sta", "!status:de", "age:"))

    assert (names.typed, names.values, names.start) == ("sta", ("status:", "agent:", "age:"), 7)
    assert (states.typed, states.values, states.start) == ("de", ("queued", "dead_letter"), 8)
    assert ages.values == (">", "<")
    assert KNOWN.offer("zebra:", 6).values == ()


@pytest.mark.parametrize(
    ("text", "start", "typed"),
    [
        ('agent:"my ag', 6, '"my ag'),
        ('report !agent:"my \\" ag', 14, '"my \\" ag'),
        ('agent:"my agent" sta', 17, "sta"),
        ('"big report', 0, '"big report'),
        ('re"port sta', 8, "sta"),
        ('"a"b\t  sta', 7, "sta"),
        ('agent:"my agent" ', 17, ""),
    ],
)
def test_what_is_offered_is_for_the_whole_term_also_when_blanks_are_in_its_quotes(
    text: str, start: int, typed: str
) -> None:
    offer = KNOWN.offer(text, len(text))

    assert (offer.start, offer.typed, offer.end) == (start, typed, len(text))
    assert (None if offer.of is None else offer.of.name) == ("agent" if text[:start].endswith("agent:") else None)


@pytest.mark.parametrize("filterable", [JOB_FILTERS, RUN_FILTERS, THREAD_RUN_FILTERS])
@pytest.mark.parametrize("said", ["canceled", "CANCELED", "cancelled", "Cancelled"])
def test_the_american_spelling_of_a_state_is_understood(filterable: Filterable, said: str) -> None:
    assert filterable.read(f"status:{said}").wanted("status") == ("cancelled",)
    assert filterable.read(f"!status:{said}").unwanted("status") == ("cancelled",)


def test_a_value_with_blanks_is_put_in_quotes() -> None:
    assert [quoted(value) for value in ("atlas", "big atlas", 'a"b')] == ["atlas", '"big atlas"', r'"a\"b"']
