"""What an example of an act may need first: agents, jobs, threads, people and tokens of one fleet."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

import pytest

from agent_console.domain.connectors import Connector
from agent_console.domain.delegation import Delegation
from agent_console.domain.ids import AgentId, CollectionId, Id, JobId, SessionId, ThreadId, UserId
from agent_console.repository.operations import OPERATIONS, AnyOperation
from agent_console.repository.port import Repository
from agent_console.repository.postgres.registry.credentials_at_rest import KEY_FILE_VARIABLE, KEY_VARIABLE
from tests.support.asking import Callers, add_route, asks
from tests.support.connectors import make_connector
from tests.support.conversations import add_thread, let_in
from tests.support.fleet import Fleet

MARKER = "zebra-content"
ANA = "ana@example.com"
KEYS = [base64.urlsafe_b64encode(letter * 32).decode() for letter in (b"o", b"n")]
BY_NAME: Mapping[str, AnyOperation] = {operation.name: operation for operation in OPERATIONS}

_numbers = count(1)


def new_name() -> str:
    return f"thing-{next(_numbers)}"


@dataclass(frozen=True)
class Stage:
    """One fleet, its administrator, and whatever an example needs besides."""

    fleet: Fleet
    callers: Callers
    admin: Repository
    keys: pytest.MonkeyPatch

    async def do(self, operation_name: str, /, **values: object) -> object:
        operation = BY_NAME[operation_name]
        return await self.admin.call(operation, operation.request.model_validate(values))

    async def id_of(self, operation_name: str, /, **values: object) -> Id:
        made = getattr(await self.do(operation_name, **values), "id", None)
        assert isinstance(made, Id)
        return made

    def agent(self, name: str = "beacon") -> AgentId:
        return self.fleet.agent_id(name)

    async def hosted(self) -> AgentId:
        made = getattr(await self.do("agents.host", name=new_name()), "agent", None)
        found = getattr(made, "id", None)
        assert isinstance(found, AgentId)
        return found

    async def person(self) -> UserId:
        name = new_name()
        made = await self.id_of("users.create", email=f"{name}@example.com", full_name=name, role="viewer")
        assert isinstance(made, UserId)
        return made

    async def job(self) -> JobId:
        made = await self.id_of("jobs.create", type="report", payload={"words": MARKER})
        assert isinstance(made, JobId)
        return made

    async def ended_job(self) -> JobId:
        job_id = await self.job()
        await self.do("jobs.cancel", job_id=job_id)
        return job_id

    async def connector(self, **facts: object) -> Connector:
        self.keys.setenv(KEY_VARIABLE, KEYS[0])
        self.keys.delenv(KEY_FILE_VARIABLE, raising=False)
        return await make_connector(self.admin, new_name(), **facts)

    async def collection(self) -> CollectionId:
        made = await self.id_of("collections.create", name=new_name(), type="s3", location=MARKER)
        assert isinstance(made, CollectionId)
        return made

    async def session(self) -> SessionId:
        made = await self.id_of("sessions.open", agent_id=self.agent("atlas"))
        assert isinstance(made, SessionId)
        return made

    def thread(self) -> ThreadId:
        return add_thread(self.fleet, ANA, title=MARKER)

    async def waiting(self) -> Delegation:
        """Beacon waits for a person's word before cartographer is asked."""
        thread_id = self.thread()
        if not self.fleet.execute("select 1 from a2a_routes where from_agent_id = %s", self.agent()):
            add_route(self.fleet, "beacon", "cartographer", "requires_human_approval")
        let_in(self.fleet, thread_id, "beacon", write=True)
        return await asks(await self.callers.agent("beacon"), self.fleet, thread_id, "cartographer", MARKER)
