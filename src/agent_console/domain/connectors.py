"""Connectors: storage that jobs reach, and where the credentials for it are kept."""

from typing import Annotated, ClassVar

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue

from agent_console.domain.ids import AgentId, ConnectorId, UserId
from agent_console.domain.kinds import CredentialLocation, StorageKind
from agent_console.domain.records import Instant, JsonObject, NotBlank, PageRequest, Record, Request, Storable

AGENTS_SHOWN = 100


def _server_if_null(value: object) -> object:
    return CredentialLocation.SERVER if value is None else value


# Whoever comes from a registry that did not ask the question yet sends null.
GivenLocation = Annotated[
    CredentialLocation, BeforeValidator(_server_if_null, json_schema_input_type=CredentialLocation | None)
]
StorageName = Annotated[str, Field(min_length=1, max_length=255), NotBlank]
Credentials = Annotated[dict[str, JsonValue], Field(min_length=1), Storable]


class ConnectorAgent(Record):
    """An agent that said it has credentials of its own for a connector."""

    id: AgentId
    name: str


class Connector(Record):
    """A storage target. Its credentials are never part of it, only where they are and whether there are any."""

    columns: ClassVar[tuple[str, ...]] = ("id", "name", "type", "credential_location", "has_credentials")

    id: ConnectorId
    name: str
    type: StorageKind
    credential_location: CredentialLocation
    has_credentials: bool = Field(description="Whether the server keeps credentials, encrypted.")
    agents: tuple[ConnectorAgent, ...] = Field(description="Agents with credentials of their own.")
    agents_capped: bool = Field(description="True when there are more agents than are listed.")
    config: dict[str, JsonValue]
    created_by_user_id: UserId
    created_by: str
    updated_by_user_id: UserId | None
    updated_by: str | None
    created_at: Instant
    updated_at: Instant


class ConnectorQuery(PageRequest):
    """The connectors of the team, oldest first."""

    type: StorageKind | None = Field(None, description="Only this kind of storage.")
    credential_location: CredentialLocation | None = Field(
        None, description="Only those with credentials kept here."
    )


class ConnectorAsked(Request):
    connector_id: ConnectorId


class NewConnector(Request):
    """A connector to make. Credentials come along only when the server is to keep them."""

    model_config = ConfigDict(hide_input_in_errors=True)

    name: StorageName = Field(description="What people call it.")
    type: StorageKind = Field(description="The kind of storage.")
    credential_location: GivenLocation = Field(
        CredentialLocation.SERVER, description="Who keeps the credentials; pending decides later, null is server."
    )
    credentials: Credentials | None = Field(
        None, repr=False, description="What opens the storage, a JSON object; only with server."
    )
    config: JsonObject = Field(default_factory=dict, description="Settings without secrets, a JSON object.")


class ConnectorUpdate(Request):
    """What is left out stays as it is."""

    connector_id: ConnectorId
    name: StorageName | None = Field(None, description="A new name.")
    config: JsonObject | None = Field(None, description="New settings without secrets, a JSON object.")


class ConnectorCredentials(Request):
    model_config = ConfigDict(hide_input_in_errors=True)

    connector_id: ConnectorId
    credentials: Credentials = Field(repr=False, description="What opens the storage, a JSON object.")


class ConnectorMove(Request):
    """Where the credentials shall be kept from now on. To the server they have to come along."""

    model_config = ConfigDict(hide_input_in_errors=True)

    connector_id: ConnectorId
    to: CredentialLocation = Field(description="Who keeps the credentials from now on.")
    credentials: Credentials | None = Field(
        None, repr=False, description="What opens the storage, a JSON object; needed for server."
    )


class ConnectorReport(Request):
    """An agent says whether it has credentials of its own. The credentials themselves are never sent."""

    connector_id: ConnectorId
    available: bool = Field(description="Whether the agent can open the storage by itself.")


class Resealed(Record):
    resealed: int = Field(description="How many were encrypted again with the first key.")
    unreadable: tuple[ConnectorId, ...] = Field(
        description="Connectors whose key the server does not have; set their credentials anew."
    )
