"""Every declared operation over HTTP, and live changes as server-sent events."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import httpx
from httpx_sse import ServerSentEvent, SSEError, aconnect_sse
from pydantic import ValidationError

from agent_console import __version__
from agent_console.domain.errors import (
    ERRORS,
    LOOK_FIRST,
    CannotConnect,
    ConfigError,
    ConsoleError,
    Internal,
    Invalid,
    RateLimited,
    TimedOut,
)
from agent_console.domain.redact import redact
from agent_console.repository.http.trust import trusted
from agent_console.repository.logs import Followed, Log, Row
from agent_console.repository.operations import Answered, Asked, Operation, Verb
from agent_console.repository.operations.declared import READ_ONLY_HEADER
from agent_console.repository.port import REFETCH, Change

# Longer than the server waits for its database, so that the server's own answer arrives first.
ANSWER_SECONDS = 15.0
CONNECT_SECONDS = 5.0
SILENCE_SECONDS = 15.0
# Well before the server closes it: a request that crosses the end of its connection is lost.
QUIET_SECONDS = 5.0
CONNECTIONS = httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=QUIET_SECONDS)
RECONNECT_SECONDS = (0.1, 0.5, 1.0, 2.0, 5.0)
# A proxy that the environment names leads to other machines; to it, these addresses are its own.
ON_THIS_MACHINE = ("all://localhost", "all://127.0.0.1", "all://[::1]")
# What keys are made of; anything else would break the header that it is sent in.
KEY_CHARACTERS = re.compile(r"\w+", re.ASCII)


class HttpRepository:
    """One caller's view of a server; without a token only public operations work.

    `ca_file`, or else the variable AGENT_CONSOLE_CA_FILE, names the certificates that alone may vouch for it. One
    that is `read_only` has the server refuse every act.
    """

    def __init__(
        self, url: str, token: str | None, *, ca_file: Path | None = None, read_only: bool = False
    ) -> None:
        self._url = url.rstrip("/")
        self._client = httpx.AsyncClient(
            base_url=self._url,
            headers={"User-Agent": f"agent-console/{__version__}"}
            | ({} if token is None else {"Authorization": f"Bearer {_sendable(token)}"})
            | ({READ_ONLY_HEADER: "yes"} if read_only else {}),
            timeout=httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS),
            limits=CONNECTIONS,
            follow_redirects=False,
            verify=trusted(ca_file),
            mounts=dict.fromkeys(ON_THIS_MACHINE),
        )

    async def call(self, operation: Operation[Asked, Answered], request: Asked) -> Answered:
        answer = await self._send(operation, request)
        if answer.status_code >= httpx.codes.BAD_REQUEST:
            raise self._refusal(answer)
        try:
            return operation.answer.model_validate_json(answer.content)
        except ValidationError as error:
            raise self._strange(answer.status_code) from error

    async def _send(self, operation: Operation[Asked, Answered], request: Asked) -> httpx.Response:
        values: dict[str, Any] = request.model_dump(mode="json", exclude_unset=True)
        timeout = httpx.Timeout(ANSWER_SECONDS + operation.waits_seconds, connect=CONNECT_SECONDS)
        try:
            path = operation.path.format_map({name: _one_step(values.pop(name)) for name in operation.path_fields})
            if operation.verb is Verb.GET:
                given = {name: value for name, value in values.items() if value is not None}
                return await self._client.get(path, params=given, timeout=timeout)
            return await self._client.request(operation.verb.value, path, json=values, timeout=timeout)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        except ValueError as error:
            # Lone surrogates, NaN: nothing that JSON in UTF-8 could carry.
            raise Invalid(
                "A value can't be sent as it is.", hint="Use plain Unicode text and finite numbers."
            ) from error

    async def changes(self) -> AsyncGenerator[Change, None]:
        async with aclosing(self._events("/v1/changes", {})) as events:
            async for event in events:
                if event.event == "change":
                    yield _change(event.data)

    async def follow(self, log: Log[Row], after: int | None = None) -> AsyncGenerator[Followed[Row], None]:
        wanted = {"log": log.name.value, "thread_id": log.thread_id, "job_id": log.job_id, "after": after}
        given = {name: str(value) for name, value in wanted.items() if value is not None}
        began = False
        async with aclosing(self._events("/v1/stream", given)) as events:
            async for event in events:
                if event.event == log.name.value:
                    yield Followed(int(event.id), self._row(log, event.data))
                elif event.event == "begin" and not began:
                    began = True
                    yield Followed(int(event.id))

    async def _events(self, path: str, given: dict[str, str]) -> AsyncGenerator[ServerSentEvent, None]:
        """Events for as long as the server lets us read; a lost connection goes on where the last event was."""
        failures, last = 0, ""
        while True:
            try:
                async with aclosing(self._stream(path, given, last)) as stream:
                    async for event in stream:
                        failures, last = 0, event.id or last
                        yield event
            except (httpx.HTTPError, SSEError):
                failures += 1
            except ConsoleError as refusal:
                if _is_final(refusal):
                    raise
                failures += 1
            await asyncio.sleep(RECONNECT_SECONDS[min(failures, len(RECONNECT_SECONDS) - 1)])

    async def _stream(self, path: str, given: dict[str, str], last: str) -> AsyncGenerator[ServerSentEvent, None]:
        timeout = httpx.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS)
        headers = {"Last-Event-ID": last} if last else {}
        async with aconnect_sse(
            self._client, "GET", path, params=given, headers=headers, timeout=timeout
        ) as source:
            if source.response.status_code >= httpx.codes.BAD_REQUEST:
                await source.response.aread()
                raise self._refusal(source.response)
            async for event in source.aiter_sse():
                if event.event != "end":
                    yield event
                elif (refusal := self._refused_with(event.data)) is not None:
                    raise refusal

    def _row(self, log: Log[Row], data: str) -> Row:
        try:
            return log.row.model_validate_json(data)
        except ValidationError as error:
            raise self._strange(httpx.codes.OK) from error

    def _unreachable(self, error: httpx.HTTPError) -> ConsoleError:
        if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
            return TimedOut(
                f"The server at {self._url} did not answer in time.",
                hint=LOOK_FIRST,
            )
        # It may quote what was sent, and what somebody else has answered.
        reason = redact(str(error)).strip().rstrip(".") or type(error).__name__
        return CannotConnect(
            f"No server answers at {self._url}: {reason}.",
            hint="Check that it runs (agent-console serve) and that the url of your profile is right.",
        )

    def _refusal(self, answer: httpx.Response) -> ConsoleError:
        """Raise again what the server refused with."""
        return self._refused_with(answer.content) or self._strange(answer.status_code)

    def _refused_with(self, content: str | bytes) -> ConsoleError | None:
        try:
            body = json.loads(content)
            kind = ERRORS.get(body["code"], Internal)
            return kind(body["message"], hint=body["hint"], details=body["details"])
        except (ValueError, KeyError, TypeError):
            return None

    def _strange(self, status: int) -> ConsoleError:
        return CannotConnect(
            f"What answers at {self._url} is not an agent-console server of a version this program knows.",
            hint="Check the url of your profile, and compare versions.",
            details={"status": status},
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _sendable(token: str) -> str:
    word = token.strip()
    if KEY_CHARACTERS.fullmatch(word) is None:
        raise ConfigError(
            "The token is no word that agent-console makes.", hint="Copy the whole word again, or mint a new one."
        )
    return word


def _one_step(value: object) -> str:
    """One step of a path, whatever is in it: dots alone would lead elsewhere."""
    return quote(str(value), safe="").replace(".", "%2E")


def _change(data: str) -> Change:
    """A server that is newer may tell of what this program knows nothing of."""
    try:
        return Change.model_validate_json(data)
    except ValidationError:
        return REFETCH


def _is_final(refusal: ConsoleError) -> bool:
    """Whether the same question would be refused again, however long anybody waits."""
    return refusal.status < httpx.codes.INTERNAL_SERVER_ERROR and not isinstance(refusal, RateLimited)
