"""The description of the API: complete and exact enough to write a client from it alone."""

from collections.abc import Iterator
from typing import Any

import pytest

from agent_console.domain.errors import ERRORS
from agent_console.repository.operations import OPERATIONS
from agent_console.repository.postgres.repository import Backend
from agent_console.server.app import build_app

# One process for all of them: each would make the description anew.
pytestmark = pytest.mark.xdist_group("described")

Entry = dict[str, Any]


@pytest.fixture(scope="module")
def described() -> Entry:
    return build_app(Backend("host=/nowhere dbname=x")).openapi()


def entries(described: Entry) -> Iterator[tuple[str, str, Entry]]:
    for path, item in described["paths"].items():
        for verb, entry in item.items():
            yield path, verb, entry


def resolved(described: Entry, entry: Entry) -> Entry:
    """What is told once, where it is referred to."""
    reference = entry.get("$ref", "")
    found: Entry = described["components"]["responses"][reference.rpartition("/")[2]] if reference else entry
    return found


def test_every_operation_is_under_a_version() -> None:
    assert [operation.name for operation in OPERATIONS if not operation.path.startswith("/v1/")] == []


def test_every_entry_has_a_name_of_its_own_and_a_tag_that_is_explained(described: Entry) -> None:
    found = [entry for _, _, entry in entries(described)]
    tags = {tag["name"] for tag in described["tags"] if tag["description"]}

    ids = [entry["operationId"] for entry in found]
    assert len(set(ids)) == len(ids)
    assert [
        entry["operationId"] for entry in found if len(entry["tags"]) != 1 or entry["tags"][0] not in tags
    ] == []
    assert [entry["operationId"] for entry in found if not entry["summary"]] == []


def test_every_status_of_a_refusal_is_described_in_one_form(described: Entry) -> None:
    form = {"$ref": "#/components/schemas/ErrorBody"}
    statuses = {str(error.status) for error in ERRORS.values()} | {"408", "default"}

    for path, verb, entry in entries(described):
        if path in ("/healthz", "/readyz"):
            continue
        assert statuses <= set(entry["responses"]), (verb, path)
        for status in statuses:
            refusal = resolved(described, entry["responses"][status])
            assert refusal["description"]
            assert refusal["content"]["application/json"]["schema"] == form, (verb, path, status)
        assert "Retry-After" in resolved(described, entry["responses"]["429"])["headers"]


def test_the_credential_is_declared_wherever_one_is_needed(described: Entry) -> None:
    public = {operation.path for operation in OPERATIONS if operation.public} | {"/healthz", "/readyz"}

    assert described["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    for path, verb, entry in entries(described):
        assert ("security" in entry) is (path not in public), (verb, path)


def test_every_parameter_is_described(described: Entry) -> None:
    silent = [
        (entry["operationId"], parameter["name"])
        for _, _, entry in entries(described)
        for parameter in entry.get("parameters", ())
        if not parameter.get("description")
    ]

    assert silent == []


def test_every_model_has_a_name_that_a_class_can_have(described: Entry) -> None:
    models = described["components"]["schemas"]
    titles = [model["title"] for model in models.values() if "title" in model]

    assert [name for name in models if "__" in name] == []
    assert len(set(titles)) == len(titles)


def test_every_list_is_a_page_that_is_asked_for_the_same_way(described: Entry) -> None:
    for path, verb, entry in entries(described):
        named = {parameter["name"] for parameter in entry.get("parameters", ()) if parameter["in"] == "query"}
        if "after" in named and path != "/v1/stream":
            assert "limit" in named, (verb, path)
