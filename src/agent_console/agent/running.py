"""Any program as the handler of jobs: payload in, lines out, and the exit code decides."""

import asyncio
import json
import signal
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from pydantic import ValidationError

from agent_console.agent.child import PIPE_SECONDS, READ_BYTES, Child, start
from agent_console.agent.environment import environment_of
from agent_console.agent.hiding import HiddenSecrets
from agent_console.agent.job import JobContext
from agent_console.agent.lines import Lines
from agent_console.agent.outcome import ERROR_LENGTH, Done, JobFailure
from agent_console.agent.program_watch import ProgramWatch
from agent_console.agent.said import (
    EventSaid,
    Form,
    MessageSaid,
    NotUnderstood,
    ProgressSaid,
    ResultSaid,
    Words,
    said_in,
)
from agent_console.agent.storable import shortened_to_end
from agent_console.domain.errors import ConsoleError
from agent_console.domain.kinds import EventLevel
from agent_console.domain.problems import first_problem

TRY_AGAIN = 75
ERROR_LINES = 20
MESSAGES_WAITING = 100


@dataclass(frozen=True)
class Command:
    """A handler that starts a program for each job.

    `key` is given to the program only when it is set; without `tells_output` its plain lines stay here. With a
    `watch` the program ends even when this process is killed.
    """

    words: tuple[str, ...]
    url: str
    key: str | None = None
    tells_output: bool = True
    watch: ProgramWatch | None = None

    async def __call__(self, job: JobContext) -> Done:
        asked = await job.message()
        environment = environment_of(job, self.url, None if asked is None else asked.content, self.key)
        try:
            child = await start(self.words, environment, json.dumps(job.payload).encode())
        except (OSError, ValueError) as error:
            reason = f"{self.words[0]} can't be started: {error}"
            raise JobFailure(reason, code="not_started", retryable=True) from error
        watched = nullcontext() if self.watch is None else self.watch.over(child.group)
        return await _Conversation(job, child, watched, tells_output=self.tells_output).held()


@dataclass
class _Conversation:
    """One job's program, from its first word to its exit code."""

    job: JobContext
    child: Child
    watched: AbstractContextManager[None]
    tells_output: bool
    result: ResultSaid | None = None
    last_errors: deque[str] = field(default_factory=lambda: deque(maxlen=ERROR_LINES))
    out_secrets: HiddenSecrets = field(default_factory=HiddenSecrets)
    err_secrets: HiddenSecrets = field(default_factory=HiddenSecrets)
    messages: asyncio.Queue[str] = field(default_factory=lambda: asyncio.Queue(MESSAGES_WAITING))

    async def held(self) -> Done:
        asking = asyncio.create_task(self._ask_to_end_when_cancelled())
        posting = asyncio.create_task(self._post_messages())
        reading = asyncio.gather(
            self._read(self.child.out, self._hear_out), self._read(self.child.err, self._hear_err)
        )
        try:
            with self.watched:
                code = await self.child.wait()
                await self.child.bury()
            await asyncio.wait({reading}, timeout=PIPE_SECONDS)
            if reading.done():
                reading.result()
            await self.messages.join()
        finally:
            self.child.kill()
            for task in (asking, posting, reading):
                task.cancel()
            self.child.close()
            await asyncio.gather(asking, posting, reading, self.child.bury(), return_exceptions=True)
        return self._outcome(code)

    async def _ask_to_end_when_cancelled(self) -> None:
        await self.job.until_cancelled()
        self.child.ask_to_end()

    async def _read(self, stream: asyncio.StreamReader, hear: Callable[[str], None]) -> None:
        lines = Lines()
        try:
            while piece := await stream.read(READ_BYTES):
                for line in lines.feed(piece):
                    hear(line)
            for line in lines.last():
                hear(line)
        except Exception:
            # Nobody empties the pipe any more, and the program would stand still when it is full.
            self.child.kill()
            raise

    def _hear_err(self, line: str) -> None:
        text = self.err_secrets.line(line)
        if text.strip():
            self.last_errors.append(text)
            self._tell(text, EventLevel.WARN)

    def _hear_out(self, line: str) -> None:
        said = said_in(line)
        if not isinstance(said, Words | NotUnderstood):
            self._heed(said)
            return
        self._tell(self.out_secrets.line(line), EventLevel.INFO)
        if isinstance(said, NotUnderstood):
            self.job.event(f"The line before was not understood: {said.problem}", level=EventLevel.WARN)

    def _tell(self, text: str, level: EventLevel) -> None:
        if self.tells_output:
            self.job.event(text, level=level)

    def _heed(self, said: Form) -> None:
        match said:
            case ProgressSaid():
                self.job.progress(**said.model_dump(exclude={"agent_console"}))
            case EventSaid():
                self.job.event(said.message, level=said.level, payload=said.payload)
            case ResultSaid():
                self.result = said
            case MessageSaid():
                self._queue_message(said.text)

    def _queue_message(self, text: str) -> None:
        try:
            self.messages.put_nowait(text)
        except asyncio.QueueFull:
            self.job.event("A message was left out: too many wait already.", level=EventLevel.WARN)

    async def _post_messages(self) -> None:
        while True:
            text = await self.messages.get()
            try:
                await self.job.post_message(text)
            except (ConsoleError, ValidationError) as refusal:
                reason = first_problem(refusal) if isinstance(refusal, ValidationError) else refusal
                self.job.event(f"A message could not be posted: {reason}", level=EventLevel.WARN)
            finally:
                self.messages.task_done()

    def _outcome(self, code: int) -> Done:
        if code == 0:
            return Done() if self.result is None else Done(self.result.summary, self.result.result)
        name, words = _shown_exit(code)
        room = ERROR_LENGTH - len(words) - len(":\n")
        errors = shortened_to_end("\n".join(self.last_errors), room)
        message = f"{words}:\n{errors}" if errors else words
        raise JobFailure(message, code=name, retryable=code == TRY_AGAIN)


def _shown_exit(code: int) -> tuple[str, str]:
    """For programs and for people."""
    if code >= 0:
        return f"exit_{code}", f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = str(-code)
    return f"signal_{name}", f"ended by signal {name}"
