"""What is wrong with a value that somebody gave, without the names that Python has for it."""

import re
from collections.abc import Mapping

from pydantic import ValidationError
from pydantic_core import ErrorDetails

_A_TIME = "has to be a time with its zone, such as 2026-11-01T00:00:00Z"
WORDS: Mapping[str, str] = {
    "missing": "has to be given",
    "extra_forbidden": "is not known here",
    "dict_type": "has to be a JSON object",
    "model_type": "has to be a JSON object",
    "model_attributes_type": "has to be a JSON object",
    "list_type": "has to be a list",
    "tuple_type": "has to be a list",
    "int_parsing": "has to be a whole number",
    "float_parsing": "has to be a number",
    "bool_parsing": "has to be yes or no",
    "datetime_parsing": _A_TIME,
    "datetime_from_date_parsing": _A_TIME,
    "timezone_aware": _A_TIME,
}
_SHOULD = re.compile(r"^\w+ should (be|have) ")


def problem_of(found: ErrorDetails) -> str:
    """One of the faults that a model found; it completes "<field>: …"."""
    if (words := WORDS.get(found["type"])) is not None:
        return words
    said = found["msg"].removeprefix("Value error, ").replace(" after validation", "")
    return _SHOULD.sub(r"has to \1 ", said)


def first_problem(error: ValidationError, *, below: int = 0) -> str:
    """What is wrong first, and where, without the first steps of the way there; never the value, which may be a
    secret."""
    first = error.errors(include_input=False, include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"][below:])
    return f"{place}: {problem_of(first)}" if place else problem_of(first)
