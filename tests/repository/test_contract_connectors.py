"""Connectors, through both repositories."""

import httpx
import pytest
from pydantic import ValidationError

from agent_console.domain.collections import CollectionAsked, NewCollection
from agent_console.domain.connectors import (
    ConnectorAsked,
    ConnectorQuery,
    ConnectorUpdate,
    NewConnector,
)
from agent_console.domain.errors import Conflict, Invalid, NotFound
from agent_console.domain.ids import CollectionId, ConnectorId, UserId
from agent_console.domain.jobs import JobAsked, NewJob
from agent_console.domain.kinds import CredentialLocation, StorageKind
from agent_console.repository.operations import JOBS_CREATE, JOBS_GET, AnyOperation
from agent_console.repository.operations.storage import (
    COLLECTIONS_CREATE,
    COLLECTIONS_DELETE,
    CONNECTORS_DELETE,
    CONNECTORS_GET,
    CONNECTORS_LIST,
    CONNECTORS_MOVE,
    CONNECTORS_SET_CREDENTIALS,
    CONNECTORS_UPDATE,
)
from agent_console.repository.port import Repository
from tests.attacks.hostile_strings import HOSTILE
from tests.repository.conftest import ADMIN, VIEWER, OpenRepository
from tests.support.connectors import MARKER, SECRET, audited, get_connector, make_connector, marked_rows
from tests.support.fleet import Fleet
from tests.support.serving import serving


@pytest.mark.rule("R000-4", "R000-100", "U000-49")
async def test_a_new_connector_waits_for_the_servers_credentials(repository: Repository, fleet: Fleet) -> None:
    made = await make_connector(repository, config={"region": "eu-north-1"})

    assert str(made.id).startswith("con_")
    assert (made.credential_location, made.has_credentials, made.agents) == (CredentialLocation.SERVER, False, ())
    assert (made.config, made.created_by, made.updated_by) == ({"region": "eu-north-1"}, "Ana Costa", "Ana Costa")
    assert await get_connector(repository, made.id) == made
    assert audited(fleet) == ["connector.create"]


@pytest.mark.rule("R000-107")
async def test_a_row_that_says_nothing_of_credentials_is_the_servers(repository: Repository, fleet: Fleet) -> None:
    connector_id = ConnectorId.new()
    fleet.execute(
        "insert into connectors (team_id, id, name, type, created_by_user_id) values (%s, %s, 'old', 'smb', %s)",
        *(fleet.team_id(), connector_id, fleet.user_id("ana@example.com")),
    )

    assert (await get_connector(repository, connector_id)).credential_location is CredentialLocation.SERVER


@pytest.mark.rule("R000-108")
async def test_a_connector_that_comes_with_null_is_the_servers(repository: Repository, fleet: Fleet) -> None:
    made = await make_connector(repository, credential_location=None)

    assert made.credential_location is CredentialLocation.SERVER
    assert await get_connector(repository, made.id) == made
    assert fleet.one("select credential_location from connectors where id = %s", made.id) == "server"


@pytest.mark.rule("R000-108")
async def test_null_may_be_sent_and_the_description_says_so(fleet: Fleet) -> None:
    body = {"name": "archive", "type": "s3", "credential_location": None}
    headers = {"Authorization": f"Bearer {fleet.token(ADMIN)}"}

    async with serving(fleet.working) as url, httpx.AsyncClient(base_url=url, headers=headers) as client:
        made = await client.post("/v1/connectors", json=body)
        described = (await client.get("/openapi.json")).json()

    assert (made.status_code, made.json()["credential_location"]) == (201, "server")
    field = described["components"]["schemas"]["NewConnector"]["properties"]["credential_location"]
    assert {"type": "null"} in field["anyOf"]


@pytest.mark.rule("U000-49")
async def test_an_update_changes_what_it_names_and_says_who(repository: Repository, fleet: Fleet) -> None:
    made = await make_connector(repository, config={"region": "a"})

    renamed = await repository.call(CONNECTORS_UPDATE, ConnectorUpdate(connector_id=made.id, name="vault"))
    same = await repository.call(CONNECTORS_UPDATE, ConnectorUpdate(connector_id=made.id, name="vault"))

    assert (renamed.name, renamed.config, renamed.updated_by) == ("vault", {"region": "a"}, "Ana Costa")
    assert renamed.updated_at > made.updated_at
    assert same == renamed
    assert audited(fleet) == ["connector.create", "connector.update"]


async def test_a_secret_in_the_config_is_refused(repository: Repository, fleet: Fleet) -> None:
    made = await make_connector(repository)
    looks_secret = {"access": {"secret_key": MARKER}}

    with pytest.raises(Invalid) as refused:
        await make_connector(repository, "another", config=looks_secret)
    with pytest.raises(Invalid):
        update = ConnectorUpdate.model_validate({"connector_id": str(made.id), "config": looks_secret})
        await repository.call(CONNECTORS_UPDATE, update)

    assert "config" in str(refused.value.details["fields"])
    assert MARKER not in str(refused.value)
    assert marked_rows(fleet) == 0


async def test_names_are_one_per_team_in_any_case_and_stored_as_given(
    repository: Repository, fleet: Fleet
) -> None:
    hostile = [text for text in HOSTILE.values() if text.strip() and "\0" not in text and len(text) <= 255][:5]
    made = await make_connector(repository, "Archive")

    for name in hostile:
        assert (await make_connector(repository, name)).name == name
    with pytest.raises(Conflict):
        await make_connector(repository, "aRCHIVE")
    other = await make_connector(repository, "other")
    with pytest.raises(Conflict):
        await repository.call(CONNECTORS_UPDATE, ConnectorUpdate(connector_id=other.id, name="ARCHIVE"))

    assert (await get_connector(repository, made.id)).name == "Archive"


@pytest.mark.parametrize(
    "wrong", [{"name": ""}, {"name": " "}, {"name": "x" * 256}, {"type": "ftp"}, {"credentials": {}}, {"key": 1}]
)
def test_a_connector_outside_its_bounds_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        NewConnector.model_validate({"name": "archive", "type": "s3", **wrong})


async def test_a_connector_in_use_is_not_deleted(repository: Repository, fleet: Fleet) -> None:
    made = await make_connector(repository)
    collection = await repository.call(
        COLLECTIONS_CREATE, NewCollection(name="photos", type=StorageKind.S3, connector_id=made.id)
    )
    job = await repository.call(JOBS_CREATE, NewJob(type="scan", payload={}, connector_id=made.id))
    asked = ConnectorAsked(connector_id=made.id)

    with pytest.raises(Conflict) as by_collection:
        await repository.call(CONNECTORS_DELETE, asked)
    await repository.call(COLLECTIONS_DELETE, CollectionAsked(collection_id=collection.id))
    with pytest.raises(Conflict) as by_job:
        await repository.call(CONNECTORS_DELETE, asked)
    fleet.execute(
        "update jobs set status = 'cancelled', finished_at = now(), look_at = null where id = %s", job.id
    )
    await repository.call(CONNECTORS_DELETE, asked)

    assert by_collection.value.details["used_by"] == "collections"
    assert by_job.value.details["used_by"] == "unfinished jobs"
    for operation in (CONNECTORS_GET, CONNECTORS_DELETE):
        with pytest.raises(NotFound):
            await repository.call(operation, asked)
    assert (await repository.call(JOBS_GET, JobAsked(job_id=job.id))).connector_id == made.id


async def test_the_list_is_paged_and_filtered(open_repository: OpenRepository) -> None:
    admin, viewer = await open_repository(), await open_repository(VIEWER)
    made = [
        await make_connector(admin, "a"),
        await make_connector(admin, "b", type="smb", credential_location="agent"),
        await make_connector(admin, "c", type="smb"),
    ]

    first = await viewer.call(CONNECTORS_LIST, ConnectorQuery(limit=2))
    rest = await viewer.call(CONNECTORS_LIST, ConnectorQuery(limit=2, after=first.next))
    shares = await viewer.call(CONNECTORS_LIST, ConnectorQuery(type=StorageKind.SMB))
    of_agents = await viewer.call(CONNECTORS_LIST, ConnectorQuery(credential_location=CredentialLocation.AGENT))

    assert [*first.items, *rest.items] == made
    assert rest.next is None
    assert list(shares.items) == made[1:]
    assert list(of_agents.items) == [made[1]]


async def test_another_teams_connector_answers_like_a_missing_one(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    ours = await make_connector(await open_repository())
    fleet.add_team("other")
    other = await open_repository("admin@other.example", "other")
    missing = ConnectorId.new()
    questions: list[tuple[AnyOperation, dict[str, object]]] = [
        (CONNECTORS_GET, {}),
        (CONNECTORS_UPDATE, {"name": "mine"}),
        (CONNECTORS_SET_CREDENTIALS, {"credentials": SECRET}),
        (CONNECTORS_MOVE, {"to": "agent"}),
        (CONNECTORS_DELETE, {}),
    ]

    for operation, values in questions:
        said = []
        for connector_id in (ours.id, missing):
            request = operation.request.model_validate({"connector_id": connector_id, **values})
            with pytest.raises(NotFound) as refused:
                await other.call(operation, request)
            said.append(str(refused.value).replace(str(connector_id), ""))
        assert said[0] == said[1], operation.name
    assert (await other.call(CONNECTORS_LIST, ConnectorQuery())).items == ()


@pytest.mark.rule("U000-7")
async def test_a_body_outside_its_bounds_is_named_and_never_repeated(fleet: Fleet) -> None:
    headers = {"Authorization": f"Bearer {fleet.token(ADMIN)}"}
    bodies: tuple[tuple[str, str, dict[str, object], str], ...] = (
        ("PATCH", "connectors/{con}", {"name": " "}, "name"),
        ("PATCH", "connectors/{con}", {"credentials": SECRET}, "credentials"),
        ("PUT", "connectors/{con}/credentials", {"credentials": MARKER}, "credentials"),
        ("POST", "connectors/{con}/location", {"to": MARKER}, "to"),
        ("POST", "connectors/{con}/report", {"available": True, "credentials": SECRET}, "credentials"),
        ("PATCH", "collections/{col}", {"refresh_interval_hours": 0}, "refresh_interval_hours"),
        ("PATCH", "collections/{col}", {"type": "smb"}, "type"),
        ("POST", "users/{usr}/deactivate", {"reason": " "}, "reason"),
        ("PUT", "users/{usr}/role", {"role": "agent"}, "role"),
        ("PUT", "settings/max_hops", {"value": True}, "value"),
    )

    async with serving(fleet.working) as url, httpx.AsyncClient(base_url=url, headers=headers) as client:
        for method, path, body, field in bodies:
            filled = path.format(con=ConnectorId.new(), col=CollectionId.new(), usr=UserId.new())
            answer = await client.request(method, f"/v1/{filled}", json=body)

            assert answer.status_code == 422, (path, answer.text)
            assert [item["field"] for item in answer.json()["details"]["fields"]] == [field], path
            assert MARKER not in answer.text, path
