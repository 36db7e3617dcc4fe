"""A job as its handler sees it."""

import hashlib
import json
from collections import Counter
from uuid import UUID

from pydantic import JsonValue

from agent_console.agent.delegating import ask_another, until_settled
from agent_console.agent.held import HeldJob, Stop
from agent_console.agent.output import JobOutput
from agent_console.agent.storable import shortened, storable_text
from agent_console.domain.delegation import Delegation
from agent_console.domain.errors import Conflict, Forbidden, NotFound, WrongId
from agent_console.domain.ids import AgentId, JobId, MessageId, RunId, ThreadId
from agent_console.domain.kinds import EventLevel
from agent_console.domain.messages import Message, MessageAsked, NewMessage, PostedMessage
from agent_console.domain.working import JobProgress
from agent_console.repository.operations.messages import MESSAGES_GET, MESSAGES_POST
from agent_console.tracing import traceparent

PROGRESS_TEXT, STAGE_TEXT = 2_000, 200


class JobContext:
    """What a handler knows of its job, and what it can say while it works.

    `progress` and `event` return at once; what they say is gathered and sent in the background. Everything that is
    awaited goes on through an outage of the server.
    """

    def __init__(self, held: HeldJob, output: JobOutput) -> None:
        self._held = held
        self._output = output
        self._said: Counter[str] = Counter()

    @property
    def id(self) -> JobId:
        return self._held.id

    @property
    def type(self) -> str:
        return self._held.assignment.type

    @property
    def attempt(self) -> int:
        """1 for the first try."""
        return self._held.attempt

    @property
    def payload(self) -> dict[str, JsonValue]:
        return self._held.assignment.payload

    @property
    def run_id(self) -> RunId | None:
        """The run that this job is, if somebody asked for it in a thread."""
        return self._held.assignment.run_id

    @property
    def thread(self) -> ThreadId | None:
        """The thread that the job's run belongs to."""
        named = self.payload.get("thread_id")
        return ThreadId.parse(named) if self.run_id is not None and isinstance(named, str) else None

    @property
    def traceparent(self) -> str | None:
        """The run as W3C trace context, for whatever works on it."""
        trace_id = self.payload.get("trace_id")
        if self.run_id is None or not isinstance(trace_id, str):
            return None
        return traceparent(UUID(trace_id), self.run_id)

    @property
    def cancelled(self) -> bool:
        """True when the work has to stop: it was cancelled, the lease is lost, or the agent leaves.

        A handler that goes on is itself cancelled when the agent's grace is over.
        """
        return self._held.stopping.is_set()

    async def until_cancelled(self) -> None:
        """Return when the work has to stop; for those who have something to end then."""
        await self._held.stopping.wait()

    @property
    def why_cancelled(self) -> Stop | None:
        return self._held.stop

    def progress(
        self,
        percentage: float | None = None,
        message: str | None = None,
        *,
        stage: str | None = None,
        files_scanned: int | None = None,
        total_files: int | None = None,
        current_file: str | None = None,
    ) -> None:
        """Say how far it is; replaces what was said before."""
        try:
            # What is no number can't be rounded.
            share = None if percentage is None else round(min(max(percentage, 0.0), 100.0))
            said = JobProgress(
                job_id=self.id,
                attempt=self.attempt,
                percentage=share,
                message=_cut(message, PROGRESS_TEXT),
                stage=_cut(stage, STAGE_TEXT),
                files_scanned=files_scanned,
                total_files=total_files,
                current_file=_cut(current_file, PROGRESS_TEXT),
            )
        except ValueError:
            self.event("Progress that could not be told as it was.", level=EventLevel.WARN)
        else:
            self._output.progress(said)

    def event(
        self,
        message: str,
        *,
        level: EventLevel | str = EventLevel.INFO,
        payload: dict[str, JsonValue] | None = None,
    ) -> None:
        """Add a line to the story of the job; secrets are taken out."""
        self._output.add(message, EventLevel(level), payload)

    async def message(self) -> Message | None:
        """The message that asked for this run; None when there is none that this agent may read."""
        named = self.payload.get("input_message_id")
        thread_id = self.thread
        if thread_id is None or not isinstance(named, str):
            return None
        try:
            asked = MessageAsked(thread_id=thread_id, message_id=MessageId.parse(named))
            return await self._held.line.insist(MESSAGES_GET, lambda: asked)
        except (NotFound, Forbidden, WrongId):
            return None

    async def post_message(
        self,
        text: str,
        *,
        to: tuple[AgentId, ...] = (),
        payload: dict[str, JsonValue] | None = None,
        thread_id: ThreadId | None = None,
    ) -> PostedMessage:
        """Say something in the job's thread, or in another.

        A job that is tried again says nothing twice: the same words of the same job are one message.
        """
        place = self._thread(thread_id)
        words = json.dumps([str(place), text, [str(one) for one in to], payload], sort_keys=True)
        self._said[words] += 1
        new = NewMessage(
            thread_id=place,
            content=storable_text(text),
            payload=payload or {},
            to=to,
            run_id=self.run_id if place == self.thread else None,
            idempotency_key=_key(str(self.id), words, str(self._said[words])),
        )
        return await self._held.line.insist(MESSAGES_POST, lambda: new)

    async def delegate(
        self, to: AgentId | str, input: str, *, wait: bool = True, thread_id: ThreadId | None = None
    ) -> Delegation:
        """Ask another agent to act in the thread, and wait until it has, or until it may not.

        A person who has to approve is waited for, also through restarts: the same job that asks the same again
        goes on waiting for the first answer. What the policy forbids raises Forbidden. Look at `state` and at
        `run.status` of the answer: rejected, expired and withdrawn requests are answers too.
        """
        target = to if isinstance(to, AgentId) else AgentId.parse(to)
        place = self._thread(thread_id)
        key = _key(str(self.run_id or self.id), str(place), str(target), input)
        asked = await ask_another(self._held.line, target, place, storable_text(input), key, self.run_id)
        return await until_settled(self._held, asked) if wait else asked

    def _thread(self, given: ThreadId | None) -> ThreadId:
        place = given or self.thread
        if place is None:
            raise Conflict(f"Job {self.id} belongs to no thread.", hint="Name one with thread_id.")
        return place


def _cut(text: str | None, length: int) -> str | None:
    return None if text is None else shortened(storable_text(text), length)


def _key(*words: str) -> str:
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()
