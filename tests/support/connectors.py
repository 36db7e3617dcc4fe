"""Connectors as the tests make them, and what must never be found of their credentials."""

from agent_console.domain.connectors import Connector, ConnectorAsked, NewConnector
from agent_console.domain.ids import ConnectorId
from agent_console.repository.operations.storage import CONNECTORS_CREATE, CONNECTORS_GET
from agent_console.repository.port import Repository
from tests.support.fleet import Fleet

MARKER = "MARKER-do-not-keep"
SECRET = {"secret_access_key": MARKER}


async def make_connector(repository: Repository, name: str = "archive", **facts: object) -> Connector:
    wanted = {"name": name, "type": "s3", **facts}
    return await repository.call(CONNECTORS_CREATE, NewConnector.model_validate(wanted))


async def get_connector(repository: Repository, connector_id: ConnectorId) -> Connector:
    return await repository.call(CONNECTORS_GET, ConnectorAsked(connector_id=connector_id))


def audited(fleet: Fleet) -> list[str]:
    return [str(action) for (action,) in fleet.execute("select action from audit_log order by seq")]


def marked_rows(fleet: Fleet) -> object:
    """Rows of any table in which the secret can be read, as text or as bytes."""
    tables = fleet.execute(
        "select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace"
    )
    everything = " union all ".join(f"select t::text as line from {table} t" for (table,) in tables)
    asked = f"select count(*) from ({everything}) as lines where line like %s or line like %s"
    return fleet.one(asked, f"%{MARKER}%", f"%{MARKER.encode().hex()}%")
