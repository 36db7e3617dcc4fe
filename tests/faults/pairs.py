"""Two things that are done to one row at the same moment, by two processes, and how many of them may succeed."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count

from agent_console.domain.agent_changes import AgentRenaming, AgentRevocation
from agent_console.domain.agents import AgentAsked
from agent_console.domain.approvals import ApprovalBrief, Approving, Rejecting
from agent_console.domain.collections import NewCollection
from agent_console.domain.job_acts import JobCancelling
from agent_console.domain.jobs import NewJob
from agent_console.domain.kinds import RoutePolicy, StorageKind
from agent_console.domain.messages import NewMessage
from agent_console.domain.permissions import Role
from agent_console.domain.registration import AgentRegistration
from agent_console.domain.routes import RouteEdit
from agent_console.domain.threads import ThreadAsked
from agent_console.domain.tokens import NewRegistrationToken, RegistrationTokenAsked
from agent_console.domain.users import NewUser, UserRole
from agent_console.domain.working import Assignment, Claim, Claimed, JobDone
from agent_console.repository.operations import JOBS_CREATE
from agent_console.repository.operations.agents import AGENTS_DELETE, AGENTS_RENAME, AGENTS_REVOKE
from agent_console.repository.operations.approvals import APPROVALS_APPROVE, APPROVALS_REJECT
from agent_console.repository.operations.credentials import (
    AGENTS_REGISTER,
    REGISTRATION_TOKENS_MINT,
    REGISTRATION_TOKENS_REVOKE,
)
from agent_console.repository.operations.job_acts import JOBS_CANCEL
from agent_console.repository.operations.messages import MESSAGES_POST
from agent_console.repository.operations.people import USERS_CREATE, USERS_SET_ROLE
from agent_console.repository.operations.routes import ROUTES_PUT
from agent_console.repository.operations.storage import COLLECTIONS_CREATE
from agent_console.repository.operations.threads import THREADS_ARCHIVE
from agent_console.repository.operations.working import CLAIMS_TAKE, JOBS_COMPLETE
from agent_console.repository.port import Repository
from agent_console.repository.postgres.duties.approvals import end_due_approvals
from agent_console.repository.postgres.duties.queue import tend_jobs
from agent_console.repository.postgres.identify import by_name, by_token
from agent_console.repository.postgres.repository import Backend, PostgresRepository
from tests.queue.crew import take_running
from tests.queue.more_agents import AddedAgent, add_agents, new_agent
from tests.support.asking import add_route, asks
from tests.support.conversations import add_thread, let_in
from tests.support.fleet import Fleet

ANA, OLE = "ana@example.com", "ole@example.com"
IS_OVER_AT_ONCE = "update approvals set expires_at = clock_timestamp() + interval '15 milliseconds' where id = %s"
LEASE_IS_OVER = "update jobs set lease_expires_at = now(), look_at = now() where id = %s"


def always(_: object) -> bool:
    return True


def brought_a_job(answer: object) -> bool:
    return isinstance(answer, Claimed) and bool(answer.jobs)


@dataclass(frozen=True)
class Pair:
    """`winners` is how many of the two may succeed."""

    first: Callable[[], Awaitable[object]]
    second: Callable[[], Awaitable[object]]
    winners: tuple[int, ...] = (1,)
    won: Callable[[object], bool] = always


class Ground:
    """Two processes on one database."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.backends = (Backend(fleet.working), Backend(fleet.working))
        self._numbers = count(1)

    def new(self, word: str) -> str:
        return f"{word}-{next(self._numbers)}"

    def person(self, process: int, email: str = ANA) -> Repository:
        return PostgresRepository(self.backends[process], by_name("example", email))

    def agent(self, room: int = 1) -> AddedAgent:
        made = new_agent(self.fleet.team_id(), self.new("agent"), room=room)
        add_agents(self.fleet, [made])
        return made

    def caller(self, process: int, agent: AddedAgent) -> Repository:
        return PostgresRepository(self.backends[process], by_token(agent.secret))

    async def running(self, agent: AddedAgent) -> Assignment:
        await self.person(0).call(JOBS_CREATE, NewJob(type=agent.name, payload={}, bound_agent_id=agent.id))
        return await take_running(self.caller(0, agent))

    async def close(self) -> None:
        for backend in self.backends:
            await backend.close()


@dataclass(frozen=True)
class Request:
    """What waits for a person, and between whom."""

    waits: ApprovalBrief
    from_agent: AddedAgent
    to_agent: AddedAgent

    def yes(self, who: Repository) -> Callable[[], Awaitable[object]]:
        asked = Approving(approval_id=self.waits.id, digest_seen=self.waits.digest)
        return lambda: who.call(APPROVALS_APPROVE, asked)

    def no(self, who: Repository) -> Callable[[], Awaitable[object]]:
        asked = Rejecting(approval_id=self.waits.id, digest_seen=self.waits.digest, reason="not now")
        return lambda: who.call(APPROVALS_REJECT, asked)


async def request(ground: Ground) -> Request:
    asker, asked = ground.agent(), ground.agent()
    thread_id = add_thread(ground.fleet, ANA, visibility="shared")
    let_in(ground.fleet, thread_id, asker.name, write=True)
    add_route(ground.fleet, asker.name, asked.name, "requires_human_approval")
    waits = (await asks(ground.caller(0, asker), ground.fleet, thread_id, asked.name)).approval
    assert waits is not None
    return Request(waits, asker, asked)


async def approve_and_reject(ground: Ground) -> Pair:
    asked = await request(ground)
    return Pair(asked.yes(ground.person(0)), asked.no(ground.person(1, OLE)))


async def approve_twice(ground: Ground) -> Pair:
    asked = await request(ground)
    return Pair(asked.yes(ground.person(0)), asked.yes(ground.person(1, OLE)))


async def expire_and_approve(ground: Ground) -> Pair:
    asked = await request(ground)
    ground.fleet.execute(IS_OVER_AT_ONCE, asked.waits.id)
    return Pair(
        lambda: end_due_approvals(ground.backends[0]),
        asked.yes(ground.person(1)),
        winners=(0, 1, 2),
    )


async def close_and_approve(ground: Ground) -> Pair:
    """Whoever closes the way ends what waits for it, or comes when it was approved."""
    asked = await request(ground)
    closed = RouteEdit(
        from_agent=asked.from_agent.name,
        to_agent=asked.to_agent.name,
        policy=RoutePolicy.BLOCKED,
        base_version=1,
    )
    return Pair(
        lambda: ground.person(0).call(ROUTES_PUT, closed),
        asked.yes(ground.person(1)),
        winners=(1, 2),
    )


async def demote_and_approve(ground: Ground) -> Pair:
    asked, name = await request(ground), ground.new("person")
    admin = ground.person(0)
    made = await admin.call(USERS_CREATE, NewUser(full_name=name, email=f"{name}@example.com", role=Role.OPERATOR))
    viewer = UserRole(user_id=made.id, role=Role.VIEWER)
    return Pair(
        lambda: admin.call(USERS_SET_ROLE, viewer),
        asked.yes(ground.person(1, f"{name}@example.com")),
        winners=(1, 2),
    )


async def register_twice(ground: Ground) -> Pair:
    minted = await ground.person(0).call(REGISTRATION_TOKENS_MINT, NewRegistrationToken())

    def registers(process: int) -> Callable[[], Awaitable[object]]:
        name = ground.new("registered")
        asked = AgentRegistration(token=minted.secret, nonce=name.ljust(16, "-"), name=name)
        return lambda: ground.person(process).call(AGENTS_REGISTER, asked)

    return Pair(registers(0), registers(1))


async def revoke_token_and_register(ground: Ground) -> Pair:
    minted = await ground.person(0).call(REGISTRATION_TOKENS_MINT, NewRegistrationToken())
    name = ground.new("registered")
    asked = AgentRegistration(token=minted.secret, nonce=name.ljust(16, "-"), name=name)
    return Pair(
        lambda: ground.person(0).call(REGISTRATION_TOKENS_REVOKE, RegistrationTokenAsked(token_id=minted.id)),
        lambda: ground.person(1).call(AGENTS_REGISTER, asked),
    )


async def claim_one_job(ground: Ground) -> Pair:
    kind = ground.new("kind")
    await ground.person(0).call(JOBS_CREATE, NewJob(type=kind, payload={}, required_capabilities=(kind,)))
    agents = [new_agent(ground.fleet.team_id(), ground.new("agent"), (kind,)) for _ in range(2)]
    add_agents(ground.fleet, agents)
    callers = [ground.caller(process, agent) for process, agent in enumerate(agents)]
    return Pair(
        lambda: callers[0].call(CLAIMS_TAKE, Claim()),
        lambda: callers[1].call(CLAIMS_TAKE, Claim()),
        won=brought_a_job,
    )


async def edit_one_route(ground: Ground) -> Pair:
    one, other = ground.agent(), ground.agent()

    def edits(process: int, policy: RoutePolicy, base: int) -> Callable[[], Awaitable[object]]:
        edit = RouteEdit(from_agent=one.name, to_agent=other.name, policy=policy, base_version=base)
        return lambda: ground.person(process).call(ROUTES_PUT, edit)

    await edits(0, RoutePolicy.ALLOWED, 0)()
    return Pair(edits(0, RoutePolicy.BLOCKED, 1), edits(1, RoutePolicy.REQUIRES_HUMAN_APPROVAL, 1))


async def make_one_route(ground: Ground) -> Pair:
    one, other = ground.agent(), ground.agent()

    def makes(process: int, policy: RoutePolicy) -> Callable[[], Awaitable[object]]:
        edit = RouteEdit(from_agent=one.name, to_agent=other.name, policy=policy, base_version=0)
        return lambda: ground.person(process).call(ROUTES_PUT, edit)

    return Pair(makes(0, RoutePolicy.BLOCKED), makes(1, RoutePolicy.ALLOWED))


async def use_one_key(ground: Ground) -> Pair:
    new = NewJob(type="work", payload={}, idempotency_key=ground.new("key"))
    return Pair(
        lambda: ground.person(0).call(JOBS_CREATE, new),
        lambda: ground.person(1).call(JOBS_CREATE, new),
        winners=(2,),
    )


async def take_one_name(ground: Ground) -> Pair:
    name, agents = ground.new("name"), (ground.agent(), ground.agent())

    def renames(process: int) -> Callable[[], Awaitable[object]]:
        asked = AgentRenaming(agent_id=agents[process].id, name=name)
        return lambda: ground.person(process).call(AGENTS_RENAME, asked)

    return Pair(renames(0), renames(1))


async def archive_and_post(ground: Ground) -> Pair:
    thread_id = add_thread(ground.fleet, ANA)
    return Pair(
        lambda: ground.person(0).call(THREADS_ARCHIVE, ThreadAsked(thread_id=thread_id)),
        lambda: ground.person(1).call(MESSAGES_POST, NewMessage(thread_id=thread_id, content="Just in time?")),
        winners=(1, 2),
    )


async def revoke_and_claim(ground: Ground) -> Pair:
    agent = ground.agent()
    await ground.person(0).call(JOBS_CREATE, NewJob(type="work", payload={}, bound_agent_id=agent.id))
    claiming = ground.caller(1, agent)
    return Pair(
        lambda: ground.person(0).call(AGENTS_REVOKE, AgentRevocation(agent_id=agent.id, reason="lost")),
        lambda: claiming.call(CLAIMS_TAKE, Claim(auto_start=True)),
        winners=(1, 2),
    )


async def delete_and_bind(ground: Ground) -> Pair:
    agent = ground.agent()
    bound = NewCollection(name=ground.new("files"), type=StorageKind.LOCAL, bound_agent_id=agent.id)
    return Pair(
        lambda: ground.person(0).call(AGENTS_DELETE, AgentAsked(agent_id=agent.id)),
        lambda: ground.person(1).call(COLLECTIONS_CREATE, bound),
    )


async def delete_and_bind_a_job(ground: Ground) -> Pair:
    agent = ground.agent()
    bound = NewJob(type="work", payload={}, bound_agent_id=agent.id)
    return Pair(
        lambda: ground.person(0).call(AGENTS_DELETE, AgentAsked(agent_id=agent.id)),
        lambda: ground.person(1).call(JOBS_CREATE, bound),
        winners=(1, 2),
    )


async def cancel_and_complete(ground: Ground) -> Pair:
    agent = ground.agent()
    job = await ground.running(agent)
    done = JobDone(job_id=job.id, attempt=job.attempt)
    completing = ground.caller(1, agent)
    return Pair(
        lambda: ground.person(0).call(JOBS_CANCEL, JobCancelling(job_id=job.id)),
        lambda: completing.call(JOBS_COMPLETE, done),
        winners=(1, 2),
    )


async def lose_and_complete(ground: Ground) -> Pair:
    agent = ground.agent()
    job = await ground.running(agent)
    done = JobDone(job_id=job.id, attempt=job.attempt)
    ground.fleet.execute(LEASE_IS_OVER, job.id)
    completing = ground.caller(1, agent)
    return Pair(
        lambda: tend_jobs(ground.backends[0]),
        lambda: completing.call(JOBS_COMPLETE, done),
        winners=(1, 2),
    )


PAIRS: dict[str, Callable[[Ground], Awaitable[Pair]]] = {
    "approve against reject": approve_and_reject,
    "two who approve": approve_twice,
    "expiry against approve": expire_and_approve,
    "closing a route against approve": close_and_approve,
    "demotion against approve": demote_and_approve,
    "one token, two agents": register_twice,
    "revoking a token against registering": revoke_token_and_register,
    "one job, two claims": claim_one_job,
    "two edits of a route": edit_one_route,
    "two makers of a route": make_one_route,
    "one key, two jobs": use_one_key,
    "one name, two agents": take_one_name,
    "archive against post": archive_and_post,
    "revoke against claim": revoke_and_claim,
    "delete against bind": delete_and_bind,
    "delete against a job": delete_and_bind_a_job,
    "cancel against complete": cancel_and_complete,
    "end of a lease against complete": lose_and_complete,
}
