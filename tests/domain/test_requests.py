"""What no request may hold, whatever it is about: from the declared operations."""

import pytest
from pydantic import BaseModel, ValidationError

from agent_console.domain.errors import WrongId
from agent_console.repository.operations import OPERATIONS

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
