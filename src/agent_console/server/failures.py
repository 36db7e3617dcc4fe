"""Every refusal leaves in one form: {code, message, hint, details}."""

from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field, JsonValue
from starlette.exceptions import HTTPException

from agent_console.domain.errors import (
    BadRequest,
    ConsoleError,
    Invalid,
    JSONValue,
    NotFound,
    Unauthorized,
)
from agent_console.domain.problems import problem_of
from agent_console.server.attended import ClientGone


class ErrorBody(BaseModel):
    """Every refusal. The answer's X-Request-Id names the request in the server's log."""

    code: str = Field(description="One word for programs, such as not_found.")
    message: str = Field(description="What is wrong, in a sentence.")
    hint: str = Field(description="What to do next; may be empty.")
    details: dict[str, JsonValue] = Field(description="Facts by name: fields, retry_after, request_id and others.")


MEANINGS = {
    400: "The request can't be read: no JSON, nested too deep, or an id of another kind.",
    401: "No credential, or one that proves nothing.",
    403: "Known, but without the right to it.",
    404: "There is no such thing, or none that the caller may know of.",
    408: "The body did not come in time.",
    409: "The thing is not in the state that the request needs, or no longer the caller's.",
    413: "The body is too large.",
    422: "A value is outside its bounds; `details.fields` names each one.",
    429: "Too much, too fast, or too many open at once; come back after `Retry-After` seconds.",
    500: "The program is at fault; the server's log says more under `details.request_id`.",
    503: "The database, or the agent that was asked for, can't be reached now, or the server is stopping.",
    504: "No answer in time; whether a change was made is not known.",
}

ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    "default": {"model": ErrorBody, "description": "Refused; the body says why and what to do next."}
}


def answer(error: ConsoleError, status: int | None = None) -> JSONResponse:
    headers = {"WWW-Authenticate": "Bearer"} if isinstance(error, Unauthorized) else {}
    if "retry_after" in error.details:
        headers["Retry-After"] = str(error.details["retry_after"])
    return JSONResponse(error.body(), status or error.status, headers)


def outside_bounds(error: RequestValidationError) -> ConsoleError:
    """Name each field and what is wrong with it; never repeat the value, which may be a secret."""
    found = error.errors()
    if any(item["type"] == "json_invalid" for item in found):
        return BadRequest("The body is not JSON.", hint="Send a JSON object.")
    fields: list[JSONValue] = [
        {"field": ".".join(str(part) for part in item["loc"][1:]) or "body", "problem": problem_of(item)}
        for item in found
    ]
    named = ", ".join(str(field["field"]) for field in fields if isinstance(field, dict))
    return Invalid(f"Not acceptable: {named}.", hint="See details.", details={"fields": fields})


CLIENT_GONE = 499


def add_failures(app: FastAPI) -> None:
    @app.exception_handler(ClientGone)
    async def gone(request: Request, error: ClientGone) -> Response:
        """Nobody reads it; the log tells it from an answer."""
        return Response(status_code=CLIENT_GONE)

    @app.exception_handler(ConsoleError)
    async def refused(request: Request, error: ConsoleError) -> JSONResponse:
        return answer(error)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        return answer(outside_bounds(error))

    @app.exception_handler(HTTPException)
    async def unknown(request: Request, error: HTTPException) -> JSONResponse:
        if error.status_code == NotFound.status:
            return answer(NotFound("There is nothing at this address.", hint="See /docs for what there is."))
        return answer(BadRequest(str(error.detail), hint="See /docs for what there is."), error.status_code)
