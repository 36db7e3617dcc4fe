"""Ids: one UUIDv7 inside, a prefix and 26 Crockford characters outside."""

from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from agent_console.domain.errors import WrongId
from agent_console.domain.ids import ALPHABET, KINDS, AgentId, Id, JobId

VECTOR = UUID("01890a5d-ac96-774b-bcce-b302099a8057")
SHOWN = "agt_01h455vb4pex5vsknk084sn02q"


def test_the_vector_both_ways() -> None:
    assert str(AgentId.of(VECTOR)) == SHOWN
    assert AgentId.parse(SHOWN) == VECTOR


@pytest.mark.rule("R000-1", "R000-2", "R000-4", "R000-5")
def test_every_kind_has_its_prefix() -> None:
    assert " ".join(KINDS) == "tea usr agt art wkt opt con col job jev res thr par msg run rte apr ses aud lan chk"


@given(st.integers(0, 2**128 - 1))
def test_any_value_survives_the_round_trip(number: int) -> None:
    for kind in KINDS.values():
        assert kind.parse(str(kind(int=number))).int == number


@given(st.lists(st.integers(0, 2**128 - 1), min_size=2))
def test_text_order_is_byte_order(numbers: list[int]) -> None:
    ids = [JobId(int=number) for number in numbers]

    assert [str(one) for one in sorted(ids)] == sorted(str(one) for one in ids)


@pytest.mark.rule("R004-14", "R002-3")
def test_creation_order_is_sort_order() -> None:
    made = [JobId.new() for _ in range(5000)]

    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert all(one.version == 7 for one in made)


def test_any_case_and_surrounding_blanks_are_read() -> None:
    assert AgentId.parse(f" {SHOWN.upper()}\n") == AgentId.of(VECTOR)


@pytest.mark.rule("R004-83")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("job_01h455vb4pex5vsknk084sn02q", "job_ is a job, an agent id starts with agt_"),
        ("xyz_01h455vb4pex5vsknk084sn02q", "'xyz' is no known prefix"),
        ("01h455vb4pex5vsknk084sn02q", "it has no prefix"),
        ("agt_01h455vb4pex5vsknk084sn02", "26 characters follow agt_, not 25"),
        ("agt_", "not 0"),
        ("", "it has no prefix"),
        ("agt_81h455vb4pex5vsknk084sn02q", "0 to 7"),
        *((f"agt_01h455vb4pex5vsknk084sn02{bad}", "is not used in ids") for bad in "ilou!é"),
        (str(VECTOR), "it has no prefix"),
    ],
)
def test_a_wrong_id_names_the_right_prefix(text: str, why: str) -> None:
    with pytest.raises(WrongId) as refused:
        AgentId.parse(text)

    assert why in refused.value.message
    assert refused.value.details["expected_prefix"] == "agt_"


@given(st.text(max_size=60))
def test_no_text_ever_breaks_the_reader(text: str) -> None:
    try:
        parsed = AgentId.parse(text)
    except WrongId as error:
        assert error.message.isprintable()
    else:
        assert str(parsed).removeprefix("agt_").strip(ALPHABET) == ""


def test_ids_of_different_kinds_are_never_equal() -> None:
    assert AgentId.of(VECTOR) != JobId.of(VECTOR)
    assert AgentId.of(VECTOR) == AgentId.of(VECTOR) == VECTOR
    assert len({AgentId.of(VECTOR), AgentId.of(VECTOR)}) == 1


class Holder(BaseModel):
    id: AgentId


def test_models_read_and_write_the_shown_form() -> None:
    held = Holder.model_validate_json(f'{{"id": "{SHOWN}"}}')

    assert held.id == AgentId.of(VECTOR)
    assert held.model_dump_json() == f'{{"id":"{SHOWN}"}}'
    assert Holder.model_json_schema()["properties"]["id"]["pattern"].startswith("^agt_")
    assert Holder.model_validate({"id": VECTOR}).id == held.id
    for wrong in (JobId.of(VECTOR), 7, None):
        with pytest.raises(ValidationError):
            Holder.model_validate({"id": wrong})


def test_a_bare_uuid_is_taken_only_from_the_database_never_as_text() -> None:
    with pytest.raises(WrongId):
        Holder.model_validate({"id": str(uuid4())})


def test_the_root_kind_is_nobodys() -> None:
    assert Id.prefix == ""
    assert Id not in KINDS.values()
