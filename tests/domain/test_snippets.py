"""Where the words are: the marks always point at them, whatever the text is made of."""

import pytest

from agent_console.domain.snippets import MARKS, SNIPPET_LENGTH, searched_words, snippet_of
from tests.attacks.hostile_strings import HOSTILE


def marked(content: str, asked: str) -> list[str]:
    snippet = snippet_of(content, searched_words(asked))
    return [snippet.text[start:end] for start, end in snippet.marks]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("pump  failed", ("pump", "failed")),
        ('"pump failed" now', ("pump", "failed", "now")),
        ("pump or valve OR tank", ("pump", "valve", "tank")),
        ('pump -valve -"old tank"', ("pump",)),
        ("foo-bar pump pump", ("foo", "bar", "pump")),
        ("-pump", ()),
        ('"" - !? ""', ()),
    ],
)
def test_the_words_that_have_to_be_there(asked: str, words: tuple[str, ...]) -> None:
    assert searched_words(asked) == words


def test_whole_words_are_marked_in_any_case() -> None:
    assert marked("Pump: the PUMP of pumps, ein Überlauf", "pump überlauf") == ["Pump", "PUMP", "Überlauf"]


def test_letters_that_change_their_length_move_no_mark() -> None:
    assert marked("İİİ ﬁ pump", "pump") == ["pump"]


def test_a_long_text_is_cut_around_its_first_hit() -> None:
    snippet = snippet_of("x " * 5_000 + "the pump failed" + " y" * 5_000, ("pump",))

    assert len(snippet.text) == SNIPPET_LENGTH
    assert "the pump failed y" in snippet.text
    assert [snippet.text[start:end] for start, end in snippet.marks] == ["pump"]


def test_without_a_hit_it_is_the_beginning() -> None:
    snippet = snippet_of("a" * 1_000, ("pump",))

    assert (snippet.text, snippet.marks) == ("a" * SNIPPET_LENGTH, ())


def test_many_hits_are_not_all_marked() -> None:
    assert len(marked("pump " * 100, "pump")) == MARKS


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_neither_changed_nor_mistaken_for_a_mark(hostile: str) -> None:
    assert marked(f"{hostile} pump", "pump") == ["pump"]
    assert snippet_of(f"pump {hostile}", ("pump",)).text == f"pump {hostile}"[:SNIPPET_LENGTH]
