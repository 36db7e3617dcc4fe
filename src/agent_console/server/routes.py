"""Routes derived from the declared operations: none is written by hand."""

import inspect
from collections.abc import Callable, Coroutine
from functools import cache
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, FastAPI, Path, Query, Response
from fastapi import Request as HttpRequest
from pydantic import BaseModel, WrapValidator, create_model
from starlette.routing import BaseRoute

from agent_console.domain.errors import Forbidden
from agent_console.domain.records import Request
from agent_console.repository.operations import OPERATIONS, AnyOperation, Verb
from agent_console.repository.operations.declared import READ_ONLY_HEADER
from agent_console.repository.operations.fields import help_of
from agent_console.repository.postgres.repository import PostgresRepository
from agent_console.server.allowed import ANSWER_SECONDS
from agent_console.server.arrival import arrival_of
from agent_console.server.attended import while_client_stays, within
from agent_console.server.credentials import CallerRepository, PublicRepository, keeps_pace
from agent_console.server.failures import ERROR_RESPONSES
from agent_console.server.json_body import JsonRoute, few_faults
from agent_console.server.leaving import Leaving
from agent_console.server.open_at_once import OpenAtOnce
from agent_console.server.tracing import ANSWER

Endpoint = Callable[..., Coroutine[Any, Any, Response]]


def rest_of(operation: AnyOperation) -> type[BaseModel] | None:
    """What of the request does not travel in the path."""
    in_path = operation.path_fields
    if not in_path:
        return operation.request if operation.request.model_fields else None
    left = {
        name: (info.annotation, info)
        for name, info in operation.request.model_fields.items()
        if name not in in_path
    }
    if not left:
        return None
    fields: dict[str, Any] = left
    return create_model(f"{operation.request.__name__}Rest", __base__=Request, **fields)


def endpoint_of(operation: AnyOperation) -> Endpoint:
    """A function whose signature tells FastAPI, and so the OpenAPI document, what the operation takes."""
    in_path = operation.path_fields
    rest = rest_of(operation)
    status = 201 if operation.created else 200

    async def endpoint(http: HttpRequest, repository: PostgresRepository, **given: Any) -> Response:
        values = {name: given[name] for name in in_path}
        if rest is not None:
            values |= {name: getattr(given["rest"], name) for name in given["rest"].model_fields_set}
        async with within(ANSWER_SECONDS + operation.waits_seconds):
            answer = await answer_of(operation, http, repository, operation.request(**values))
        http.scope[ANSWER] = answer
        accepted = operation.accepted is not None and operation.accepted(answer)
        return Response(answer.model_dump_json(), 202 if accepted else status, media_type="application/json")

    keyword = inspect.Parameter.KEYWORD_ONLY
    of_whom = PublicRepository if operation.public else CallerRepository
    parameters = [
        inspect.Parameter("http", keyword, annotation=HttpRequest),
        inspect.Parameter("repository", keyword, annotation=of_whom),
    ]
    for name in in_path:
        field = operation.request.model_fields[name]
        told = Path(description=help_of(field))
        parameters.append(
            inspect.Parameter(name, keyword, annotation=Annotated[field.annotation, *field.metadata, told])
        )
    if rest is not None:
        places = (Query(),) if operation.verb is Verb.GET else (WrapValidator(few_faults), Body())
        parameters.append(inspect.Parameter("rest", keyword, annotation=Annotated[rest, *places]))
    vars(endpoint)["__signature__"] = inspect.Signature(parameters)
    return endpoint


async def answer_of(
    operation: AnyOperation, http: HttpRequest, repository: PostgresRepository, asked: Request
) -> BaseModel:
    """A long poll takes one of the caller's places and ends with its client; a change that was begun goes on. So
    does a claim when the server stops: the queue lets it go, and what it took is told."""
    if operation.audit is not None and READ_ONLY_HEADER in http.headers:
        raise Forbidden(
            "This session is read-only, so nothing is changed.", hint="Begin one without --read-only to change it."
        )
    leaving: Leaving | None = None if operation.changes else http.app.state.leaving
    if getattr(asked, "wait_seconds", 0.0):
        places: OpenAtOnce = http.app.state.open_at_once
        with places.long_poll(arrival_of(http.scope)):
            return await while_client_stays(http.receive, repository.call(operation, asked), leaving=leaving)
    if operation.waits_seconds and not operation.changes:
        return await while_client_stays(http.receive, repository.call(operation, asked), leaving=leaving)
    return await repository.call(operation, asked)


def _accepted(operation: AnyOperation) -> dict[int | str, dict[str, Any]]:
    return {202: {"model": operation.answer, "description": "Asked for; it has yet to happen."}}


@cache
def operation_routes() -> tuple[BaseRoute, ...]:
    """They follow from the declarations alone, so every app of a process shares them."""
    router = APIRouter(route_class=JsonRoute)
    for operation in OPERATIONS:
        most = operation.per_minute
        router.add_api_route(
            operation.path,
            endpoint_of(operation),
            methods=[operation.verb.value],
            name=operation.name,
            operation_id=operation.name.replace(".", "_"),
            summary=operation.summary,
            tags=[operation.noun],
            status_code=201 if operation.created else 200,
            response_model=operation.answer,
            responses=ERROR_RESPONSES if operation.accepted is None else ERROR_RESPONSES | _accepted(operation),
            dependencies=[] if most is None else [Depends(keeps_pace(operation, most))],
        )
    return tuple(router.routes)


def add_routes(app: FastAPI) -> None:
    app.router.routes.extend(operation_routes())
