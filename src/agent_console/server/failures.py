"""Every refusal leaves in one form: {code, message, hint, details}."""

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, JsonValue
from starlette.exceptions import HTTPException

from agent_console.domain.errors import (
    BadRequest,
    ConsoleError,
    Internal,
    Invalid,
    JSONValue,
    NotFound,
    RateLimited,
    Unauthorized,
)

log = logging.getLogger("agent_console.server")


class ErrorBody(BaseModel):
    code: str
    message: str
    hint: str
    details: dict[str, JsonValue]


ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    "default": {"model": ErrorBody, "description": "Refused; the body says why and what to do next."}
}


def answer(error: ConsoleError, status: int | None = None) -> JSONResponse:
    headers = {"WWW-Authenticate": "Bearer"} if isinstance(error, Unauthorized) else {}
    if isinstance(error, RateLimited) and "retry_after" in error.details:
        headers["Retry-After"] = str(error.details["retry_after"])
    return JSONResponse(error.body(), status or error.status, headers)


def outside_bounds(error: RequestValidationError) -> ConsoleError:
    """Name each field and what is wrong with it; never repeat the value, which may be a secret."""
    found = error.errors()
    if any(item["type"] == "json_invalid" for item in found):
        return BadRequest("The body is not JSON.", hint="Send a JSON object.")
    fields: list[JSONValue] = [
        {"field": ".".join(str(part) for part in item["loc"][1:]) or "body", "problem": item["msg"]}
        for item in found
    ]
    named = ", ".join(str(field["field"]) for field in fields if isinstance(field, dict))
    return Invalid(f"Not acceptable: {named}.", hint="See details.", details={"fields": fields})


def add_failures(app: FastAPI) -> None:
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

    @app.exception_handler(Exception)
    async def broken(request: Request, error: Exception) -> JSONResponse:
        log.exception("request failed: %s %s", request.method, request.url.path)
        return answer(Internal("Something went wrong inside agent-console.", hint="The server's log says more."))
