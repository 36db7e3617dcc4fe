"""What no request may hold, whatever it is about: from the declared operations."""

import pytest
from pydantic import AwareDatetime, BaseModel, ValidationError

from agent_console.domain.agent_changes import AgentImport
from agent_console.domain.errors import WrongId
from agent_console.domain.registration import AgentRegistration
from agent_console.repository.operations import OPERATIONS
from agent_console.repository.operations.fields import value_type

UNKEPT = ("a\0b", ["a\0b"], {"a": "a\0b"}, {"a\0b": 1}, "a\ud800b", ["a\ud800b"], {"a": "a\ud800b"})
FIELDS = sorted(
    {(operation.request, field) for operation in OPERATIONS for field in operation.request.model_fields},
    key=lambda one: (one[0].__name__, one[1]),
)


@pytest.mark.parametrize(("request_type", "field"), FIELDS, ids=lambda one: getattr(one, "__name__", one))
def test_what_the_database_cannot_keep_is_refused_by_the_name_of_its_field(
    request_type: type[BaseModel], field: str
) -> None:
    for value in UNKEPT:
        with pytest.raises((ValidationError, WrongId)) as refused:
            request_type.model_validate({field: value})

        if isinstance(refused.value, ValidationError):
            assert field in {str(error["loc"][0]) for error in refused.value.errors() if error["loc"]}, value


TIMES = [(kind, name) for kind, name in FIELDS if value_type(kind.model_fields[name].annotation) is AwareDatetime]


@pytest.mark.parametrize(("request_type", "field"), TIMES, ids=lambda one: getattr(one, "__name__", one))
def test_a_time_that_is_none_in_another_zone_is_refused_by_the_name_of_its_field(
    request_type: type[BaseModel], field: str
) -> None:
    for time in ("9999-12-31T23:59:59-05:00", "0001-01-01T00:00:00+10:00"):
        with pytest.raises(ValidationError) as refused:
            request_type.model_validate({field: time})

        told = {error["loc"]: error["msg"] for error in refused.value.errors()}
        assert told[field,] == "Value error, must lie in the years 2 to 9998"


@pytest.mark.parametrize("field", ["hostname", "os_info", "version"])
def test_what_another_registry_does_not_know_of_an_agent_is_left_out_and_not_empty(field: str) -> None:
    for request_type in (AgentImport, AgentRegistration):
        with pytest.raises(ValidationError) as refused:
            request_type.model_validate({field: ""})

        assert (field,) in {error["loc"] for error in refused.value.errors()}


def test_there_are_requests_with_a_time() -> None:
    assert len(TIMES) >= 4
