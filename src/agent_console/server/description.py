"""The OpenAPI document: what FastAPI makes of the routes, every refusal told, every model plainly named."""

import json
from typing import Any

from fastapi import FastAPI

from agent_console.server.failures import MEANINGS

_PACKAGE = "agent_console__"
_BODY = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}}
_RETRY = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
_REQUEST_ID = {"X-Request-Id": {"description": "The request in the server's log.", "schema": {"type": "string"}}}


class DescribedApp(FastAPI):
    """Refusals are told once and referred to: spelt out in every operation they would be most of the document."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = plainly_named(with_refusals(super().openapi()))
        return self.openapi_schema


def with_refusals(document: dict[str, Any]) -> dict[str, Any]:
    """Whatever may be refused may be refused in every way: the limits are everybody's."""
    document["components"]["responses"] = {f"Refused{status}": _refusal(status) for status in MEANINGS}
    told = {str(status): {"$ref": f"#/components/responses/Refused{status}"} for status in MEANINGS}
    for item in document["paths"].values():
        for entry in item.values():
            if "default" in entry["responses"]:
                entry["responses"] = told | entry["responses"]
    return document


def _refusal(status: int) -> dict[str, Any]:
    headers = _REQUEST_ID | (_RETRY if status == 429 else {})
    return {"description": MEANINGS[status], "headers": headers, "content": _BODY}


def plainly_named(document: dict[str, Any]) -> dict[str, Any]:
    """Two models of one name are told apart by their modules; here by a name that a generated class can have."""
    models = document["components"]["schemas"]
    named = {name: _plain(name) for name in models if name.startswith(_PACKAGE)}
    text = json.dumps(document)
    for name, plain in named.items():
        text = text.replace(f'/{name}"', f'/{plain}"').replace(f'"{name}":', f'"{plain}":')
    renamed: dict[str, Any] = json.loads(text)
    for plain in named.values():
        renamed["components"]["schemas"][plain]["title"] = plain
    return renamed


def _plain(name: str) -> str:
    """agent_console__domain__explaining__Outcome is ExplainingOutcome."""
    module, own = name.split("__")[-2:]
    return "".join(part.capitalize() for part in module.split("_")) + own
