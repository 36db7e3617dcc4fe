"""A request's JSON, read so that a number nobody can keep is refused by who knows the name of its field."""

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import ValidationError, ValidatorFunctionWrapHandler
from pydantic_core import PydanticCustomError

from agent_console.server.allowed import MOST_FAULTS

# Of the largest double, with its sign: whatever is longer is infinite to all who read numbers as doubles.
NUMBER_CHARACTERS = 310


def _whole_number(written: str) -> float:
    """Python refuses to read very long ones at all, and then nobody could say where in the body it stood."""
    return int(written) if len(written) <= NUMBER_CHARACTERS else float(written)


def few_faults(body: Any, read: ValidatorFunctionWrapHandler) -> Any:
    """To name each of a hundred thousand would take seconds, and many times the room of the body."""
    try:
        return read(body)
    except ValidationError as error:
        if error.error_count() <= MOST_FAULTS:
            raise
        told = {"faults": error.error_count()}
        raise PydanticCustomError("many_faults", "has {faults} faults, too many to name", told) from None


class JsonRequest(Request):
    async def json(self) -> Any:
        return json.loads(await self.body(), parse_int=_whole_number)


class JsonRoute(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def read(request: Request) -> Response:
            return await handle(JsonRequest(request.scope, request.receive))

        return read
