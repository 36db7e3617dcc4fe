"""Posting a message: it is said, and each agent that it is addressed to is asked to act."""

from dataclasses import dataclass

from sqlalchemy import Select, and_, select, text

from agent_console.database.tables import agent_runtime, agents, messages, runs, thread_participants
from agent_console.domain.audit import AuditEvent
from agent_console.domain.errors import Conflict, ConsoleError, Forbidden, Invalid, NotFound
from agent_console.domain.ids import AgentId, MessageId, RunId, TeamId
from agent_console.domain.lane_words import NAME_SHOWN
from agent_console.domain.messages import NewMessage, PostedMessage
from agent_console.domain.safe_text import shortened
from agent_console.domain.states import Presence
from agent_console.repository.operations.messages import MESSAGE_CREATED, MESSAGES_POST
from agent_console.repository.port import Topic
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.registry.agent_words import no_agent
from agent_console.repository.postgres.registry.agents import STATUS
from agent_console.repository.postgres.runs.beginning import require_room
from agent_console.repository.postgres.runs.runs import start_run
from agent_console.repository.postgres.threads.access import Access, thread_access
from agent_console.repository.postgres.threads.saying import Said, Words, say_if_allowed
from agent_console.repository.postgres.told_refusals import answers_and_tells_refusals
from agent_console.repository.postgres.work import Work


@dataclass(frozen=True)
class Recipient:
    id: AgentId
    name: str
    status: Presence

    @property
    def warning(self) -> str | None:
        who = shortened(self.name, NAME_SHOWN)
        match self.status:
            case Presence.OFFLINE | Presence.UNKNOWN:
                return f"{who} is {self.status.value}: its run is queued until it comes, or you choose another."
            case Presence.REVOKED:
                return f"{who} is revoked and was left out."
            case _:
                return None


@answers_and_tells_refusals(MESSAGES_POST)
async def post(work: Work, new: NewMessage) -> PostedMessage:
    access = await thread_access(work, new.thread_id, lock=True)
    access.require_write()
    _require_sensible(work, new)
    if new.idempotency_key is not None and (earlier := await _said_before(work, new)) is not None:
        return earlier
    recipients = await _recipients(work, new)
    asked = tuple(one for one in recipients if one.status is not Presence.REVOKED or not new.broadcast)
    words = Words(
        content=new.content,
        payload=new.payload,
        run_id=new.run_id,
        to_agent_ids=tuple(one.id for one in asked),
        broadcast=new.broadcast,
        idempotency_key=new.idempotency_key,
    )
    if len(asked) > 1:
        await require_room(work, access, *(one.id for one in asked))
    author = audit.actor_of(work.caller)
    said = await say_if_allowed(work.connection, work.caller, new.thread_id, author, words)
    if said is None:
        raise await _refusal(work, new)
    begun = [await _ask(work, access, said, one) for one in asked]
    await _tell(work, new, said, words, access)
    return PostedMessage(
        id=said.id,
        seq=said.seq,
        thread_id=new.thread_id,
        author_type=author.type,
        author_user_id=author.user_id,
        author_agent_id=author.agent_id,
        author=author.label,
        content=new.content,
        payload=new.payload,
        run_id=new.run_id,
        to_agent_ids=words.to_agent_ids,
        broadcast=new.broadcast,
        intervention=said.intervention,
        created_at=said.at,
        runs=tuple(begun),
        warnings=tuple(one.warning for one in recipients if one.warning is not None),
    )


def _require_sensible(work: Work, new: NewMessage) -> None:
    if new.broadcast and new.to:
        raise Invalid(
            "A message goes to some agents or to all of them.",
            hint="Give `to` or `broadcast`, not both.",
            details={"fields": [{"field": "to", "problem": "can't be given with broadcast"}]},
        )
    if work.caller.agent_id is None and new.run_id is not None:
        raise Invalid(
            "Only what an agent writes comes out of a run.",
            hint="Leave run_id out.",
            details={"fields": [{"field": "run_id", "problem": "is for agents"}]},
        )
    if work.caller.agent_id is not None and (new.broadcast or new.to):
        raise Forbidden(
            "An agent can't ask others to act by writing to a thread.",
            hint="Delegate instead: the routes between agents decide.",
        )


async def _refusal(work: Work, new: NewMessage) -> ConsoleError:
    """Why nothing was written, as it stands now."""
    (await thread_access(work, new.thread_id)).require_write()
    return NotFound(
        f"There is no run {new.run_id} of yours in thread {new.thread_id}.",
        hint="Leave run_id out, or name a run that you work on.",
    )


async def _recipients(work: Work, new: NewMessage) -> list[Recipient]:
    if not (new.broadcast or new.to):
        return []
    chosen = _agents_of_thread(work.caller.team_id, new) if new.broadcast else _agents_named(work, new)
    rows = (await work.connection.execute(chosen.order_by(agents.c.id))).all()
    found = {row.id: Recipient(AgentId.of(row.id), row.name, Presence(row.status)) for row in rows}
    if new.broadcast and not found:
        raise Conflict(
            f"No agent takes part in thread {new.thread_id}.", hint="Let one in, or write to one directly."
        )
    if missing := next((agent_id for agent_id in new.to if agent_id not in found), None):
        raise no_agent(missing)
    return list(found.values())


def _living(team_id: TeamId) -> Select[tuple[AgentId, str, str]]:
    runtime = and_(agent_runtime.c.team_id == agents.c.team_id, agent_runtime.c.agent_id == agents.c.id)
    return (
        select(agents.c.id, agents.c.name, STATUS.label("status"))
        .join(agent_runtime, runtime)
        .where(agents.c.team_id == team_id, agents.c.deleted_at.is_(None))
    )


def _agents_named(work: Work, new: NewMessage) -> Select[tuple[AgentId, str, str]]:
    return _living(work.caller.team_id).where(agents.c.id.in_(set(new.to)))


def _agents_of_thread(team_id: TeamId, new: NewMessage) -> Select[tuple[AgentId, str, str]]:
    """Served by thread_participants_agent_uq."""
    taking_part = and_(
        thread_participants.c.team_id == agents.c.team_id,
        thread_participants.c.agent_id == agents.c.id,
        thread_participants.c.thread_id == new.thread_id,
        thread_participants.c.can_read,
        text("thread_participants.participant_type = 'agent'"),
    )
    return _living(team_id).join(thread_participants, taking_part)


def _key(message_id: MessageId, agent_id: AgentId) -> str:
    """A message asks an agent once; and by this key its runs are found again."""
    return f"{message_id}/{agent_id}"


async def _ask(work: Work, access: Access, said: Said, recipient: Recipient) -> RunId:
    run = await start_run(
        work,
        access,
        target_agent_id=recipient.id,
        input_message_id=said.id,
        idempotency_key=_key(said.id, recipient.id),
    )
    return run.id


async def _said_before(work: Work, new: NewMessage) -> PostedMessage | None:
    """The same key and the same request is the same message; the same key for something else is a mistake."""
    from agent_console.repository.postgres.threads.messages import message_of

    known = select(messages.c.id).where(
        messages.c.team_id == work.caller.team_id,
        messages.c.thread_id == new.thread_id,
        messages.c.idempotency_key == new.idempotency_key,
    )
    if (found := (await work.connection.execute(known)).scalar()) is None:
        return None
    earlier = await message_of(work, new.thread_id, MessageId.of(found))
    author = audit.actor_of(work.caller)
    same = (
        (earlier.author_user_id, earlier.author_agent_id) == (author.user_id, author.agent_id)
        and (earlier.content, earlier.payload, earlier.run_id) == (new.content, new.payload, new.run_id)
        and earlier.broadcast == new.broadcast
        and (new.broadcast or set(earlier.to_agent_ids) == set(new.to))
    )
    if not same:
        raise Conflict(
            "This idempotency key was used for another message of the thread.",
            hint="Use a new key for new words.",
        )
    keys = [_key(earlier.id, agent_id) for agent_id in earlier.to_agent_ids]
    of_message = select(runs.c.id).where(runs.c.team_id == work.caller.team_id, runs.c.idempotency_key.in_(keys))
    begun = (await work.connection.execute(of_message.order_by(runs.c.seq))).scalars() if keys else ()
    return PostedMessage.model_validate(earlier.model_dump() | {"runs": tuple(begun)})


async def _tell(work: Work, new: NewMessage, said: Said, words: Words, access: Access) -> None:
    event = AuditEvent(
        MESSAGE_CREATED,
        "message",
        str(said.id),
        {
            "recipients": len(words.to_agent_ids),
            "broadcast": words.broadcast,
            "intervention": said.intervention,
        },
        thread_id=new.thread_id,
        run_id=new.run_id,
    )
    await audit.append(work, event, access.at)
    # Named after the thread: that is what its readers fetch again, and what decides who may hear of it.
    work.announce(Topic.MESSAGES, new.thread_id)
