"""Storage: connectors with their credentials, and the collections that are refreshed from them."""

from agent_console.domain.audit import audit_action
from agent_console.domain.collections import (
    Collection,
    CollectionAsked,
    CollectionQuery,
    CollectionUpdate,
    NewCollection,
)
from agent_console.domain.connectors import (
    Connector,
    ConnectorAsked,
    ConnectorCredentials,
    ConnectorMove,
    ConnectorQuery,
    ConnectorReport,
    ConnectorUpdate,
    NewConnector,
    Resealed,
)
from agent_console.domain.jobs import Job
from agent_console.domain.permissions import Permission
from agent_console.domain.records import Nothing, Page
from agent_console.repository.operations.declared import AnyOperation, Operation, Verb

CONNECTOR_CREATED = audit_action("connector.create", "name", "type", "credential_location", "key_id")
CONNECTOR_UPDATED = audit_action("connector.update", "changed")
CONNECTOR_CREDENTIALS_SET = audit_action("connector.credentials.set", "key_id")
CONNECTOR_MOVED = audit_action("connector.move", "from", "to", "key_id")
CONNECTOR_DELETED = audit_action("connector.delete", "name")
CONNECTOR_REPORTED = audit_action("connector.report", "available", "credential_location")
CONNECTORS_RESEALED = audit_action("connector.reseal", "resealed", "unreadable", "key_id")
COLLECTION_CREATED = audit_action(
    "collection.create", "name", "type", "connector_id", "bound_agent_id", "scheduled"
)
COLLECTION_UPDATED = audit_action("collection.update", "changed", "scheduled")
COLLECTION_DELETED = audit_action("collection.delete", "name", "cancelled_jobs", "running_jobs")
COLLECTION_REFRESHED = audit_action("collection.refresh", "job_id", "cancelled_jobs")

CONNECTORS_LIST = Operation(
    name="connectors.list",
    summary="The connectors of the team, oldest first.",
    verb=Verb.GET,
    path="/v1/connectors",
    request=ConnectorQuery,
    answer=Page[Connector],
    permission=Permission.SEE_FLEET,
)
CONNECTORS_GET = Operation(
    name="connectors.get",
    summary="One connector, whole, with the agents that have credentials for it.",
    verb=Verb.GET,
    path="/v1/connectors/{connector_id}",
    request=ConnectorAsked,
    answer=Connector,
    permission=Permission.SEE_FLEET,
)
CONNECTORS_CREATE = Operation(
    name="connectors.create",
    summary="Make a connector to a storage.",
    verb=Verb.POST,
    path="/v1/connectors",
    request=NewConnector,
    answer=Connector,
    permission=Permission.ADMINISTER,
    audit=CONNECTOR_CREATED,
    created=True,
)
CONNECTORS_UPDATE = Operation(
    name="connectors.update",
    summary="Change the name or the settings of a connector.",
    verb=Verb.PATCH,
    path="/v1/connectors/{connector_id}",
    request=ConnectorUpdate,
    answer=Connector,
    permission=Permission.ADMINISTER,
    audit=CONNECTOR_UPDATED,
)
CONNECTORS_SET_CREDENTIALS = Operation(
    name="connectors.set_credentials",
    summary="Give the server new credentials for a connector; they are kept encrypted.",
    verb=Verb.PUT,
    path="/v1/connectors/{connector_id}/credentials",
    request=ConnectorCredentials,
    answer=Connector,
    permission=Permission.ADMINISTER,
    audit=CONNECTOR_CREDENTIALS_SET,
)
CONNECTORS_MOVE = Operation(
    name="connectors.move",
    summary="Let the server or the agents keep the credentials; what the server had is wiped.",
    verb=Verb.POST,
    path="/v1/connectors/{connector_id}/location",
    request=ConnectorMove,
    answer=Connector,
    permission=Permission.ADMINISTER,
    audit=CONNECTOR_MOVED,
    danger=True,
)
CONNECTORS_DELETE = Operation(
    name="connectors.delete",
    summary="Delete a connector that nothing uses any more, with its credentials.",
    verb=Verb.DELETE,
    path="/v1/connectors/{connector_id}",
    request=ConnectorAsked,
    answer=Connector,
    permission=Permission.ADMINISTER,
    audit=CONNECTOR_DELETED,
    danger=True,
)
CONNECTORS_REPORT = Operation(
    name="connectors.report",
    summary="As an agent: say whether you have credentials of your own for a connector.",
    verb=Verb.POST,
    path="/v1/connectors/{connector_id}/report",
    request=ConnectorReport,
    answer=Connector,
    permission=Permission.ACT_AS_AGENT,
    audit=CONNECTOR_REPORTED,
)
CONNECTORS_RESEAL = Operation(
    name="connectors.reseal",
    summary="Encrypt all credentials again with the server's first key, after a new one was put in front.",
    verb=Verb.POST,
    path="/v1/connectors/reseal",
    request=Nothing,
    answer=Resealed,
    permission=Permission.ADMINISTER,
    audit=CONNECTORS_RESEALED,
)
COLLECTIONS_LIST = Operation(
    name="collections.list",
    summary="The collections of the team, oldest first.",
    verb=Verb.GET,
    path="/v1/collections",
    request=CollectionQuery,
    answer=Page[Collection],
    permission=Permission.SEE_FLEET,
)
COLLECTIONS_GET = Operation(
    name="collections.get",
    summary="One collection, whole.",
    verb=Verb.GET,
    path="/v1/collections/{collection_id}",
    request=CollectionAsked,
    answer=Collection,
    permission=Permission.SEE_FLEET,
)
COLLECTIONS_CREATE = Operation(
    name="collections.create",
    summary="Make a collection; with an interval its first refresh is scheduled.",
    verb=Verb.POST,
    path="/v1/collections",
    request=NewCollection,
    answer=Collection,
    permission=Permission.ADMINISTER,
    audit=COLLECTION_CREATED,
    created=True,
)
COLLECTIONS_UPDATE = Operation(
    name="collections.update",
    summary="Change a collection; its scheduled refresh follows.",
    verb=Verb.PATCH,
    path="/v1/collections/{collection_id}",
    request=CollectionUpdate,
    answer=Collection,
    permission=Permission.ADMINISTER,
    audit=COLLECTION_UPDATED,
)
COLLECTIONS_DELETE = Operation(
    name="collections.delete",
    summary="Delete a collection and cancel the jobs that wait for it.",
    verb=Verb.DELETE,
    path="/v1/collections/{collection_id}",
    request=CollectionAsked,
    answer=Collection,
    permission=Permission.ADMINISTER,
    audit=COLLECTION_DELETED,
    danger=True,
)
COLLECTIONS_REFRESH = Operation(
    name="collections.refresh",
    summary="Refresh a collection now instead of at its scheduled time.",
    verb=Verb.POST,
    path="/v1/collections/{collection_id}/refresh",
    request=CollectionAsked,
    answer=Job,
    permission=Permission.WORK_QUEUE,
    audit=COLLECTION_REFRESHED,
)

NOUNS = {
    "connectors": "Storage that jobs reach, and where its credentials are kept.",
    "collections": "What is refreshed on a timetable.",
}

STORAGE: tuple[AnyOperation, ...] = (
    CONNECTORS_LIST,
    CONNECTORS_GET,
    CONNECTORS_CREATE,
    CONNECTORS_UPDATE,
    CONNECTORS_SET_CREDENTIALS,
    CONNECTORS_MOVE,
    CONNECTORS_DELETE,
    CONNECTORS_REPORT,
    CONNECTORS_RESEAL,
    COLLECTIONS_LIST,
    COLLECTIONS_GET,
    COLLECTIONS_CREATE,
    COLLECTIONS_UPDATE,
    COLLECTIONS_DELETE,
    COLLECTIONS_REFRESH,
)
