"""What a request may cost before anyone has looked at it: so many fields, so many bytes, so much time, so deep."""

import asyncio
import re

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_console.domain.errors import BadRequest, ConsoleError, TooLarge
from agent_console.server.allowed import BODY_BYTES, BODY_DEPTH, BODY_SECONDS, MOST_FIELDS
from agent_console.server.failures import answer

REQUEST_TIMEOUT = 408

# A string that nothing ends goes on to the end: without that, every quotation mark would be tried again.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_NO_BRACKET = bytes(byte for byte in range(256) if byte not in b"[]{}")


def too_large() -> TooLarge:
    return TooLarge(
        f"The body is larger than {BODY_BYTES:,} bytes.", hint="Store large data elsewhere and send where it is."
    )


def too_slow() -> BadRequest:
    return BadRequest(f"The body did not come within {BODY_SECONDS:g} s.", hint="Send it at once, or send less.")


def too_many() -> BadRequest:
    return BadRequest(f"The query has more than {MOST_FIELDS:,} fields.", hint="Ask for less at once.")


class RequestLimit:
    """Takes in the whole body before anybody else sees the request. Whoever leaves meanwhile is not answered."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["query_string"].count(b"&") >= MOST_FIELDS:
            await answer(too_many())(scope, receive, send)
            return
        if (announced := _announced(scope)) == 0:
            await self.app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(BODY_SECONDS) as waiting:
                body = await _whole(receive, announced)
        except ConsoleError as refusal:
            await answer(refusal)(scope, receive, send)
            return
        except TimeoutError:
            if not waiting.expired():
                raise
            late = answer(too_slow(), REQUEST_TIMEOUT)
            # What still trickles in is no longer waited for.
            late.headers["Connection"] = "close"
            await late(scope, receive, send)
            return
        if body is not None:
            await self.app(scope, _replayed(body, receive), send)


def _announced(scope: Scope) -> int | None:
    """How many bytes will come; None when that is not said."""
    headers = dict(scope["headers"])
    if b"transfer-encoding" in headers:
        return None
    length: bytes = headers.get(b"content-length", b"0").rstrip(b" \t")
    return int(length) if length.isdigit() and len(length) <= len(str(BODY_BYTES)) else BODY_BYTES + 1


async def _whole(receive: Receive, announced: int | None) -> bytes | None:
    """The body; None when the client is gone."""
    if announced is not None and announced > BODY_BYTES:
        raise too_large()
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > BODY_BYTES:
            raise too_large()
    whole = bytes(body)
    require_plain(whole)
    return whole


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body in one piece, then whatever comes after it."""
    first: Message | None = {"type": "http.request", "body": body, "more_body": False}

    async def replayed() -> Message:
        nonlocal first
        message, first = first, None
        return await receive() if message is None else message

    return replayed


def require_plain(body: bytes) -> None:
    """Refuse what is nested too deep for those who walk through it, and texts in which that can't be told."""
    if b"\0" in body:
        raise BadRequest("The body is not JSON in UTF-8.", hint="Send a JSON object in UTF-8.")
    if is_deeper(body, BODY_DEPTH):
        raise BadRequest(
            f"The body is nested more than {BODY_DEPTH} levels deep.",
            hint="Send flatter data, or send the deep part as text.",
            details={"levels": BODY_DEPTH},
        )


def is_deeper(body: bytes, levels: int) -> bool:
    """Whether brackets stand within brackets more than so many times. What is no JSON its reader finds out."""
    if body.count(b"[") + body.count(b"{") <= levels:
        return False
    brackets = _STRING.sub(b"", body).translate(_ONE_KIND, _NO_BRACKET)
    for _ in range(levels):
        # Innermost pairs go first, a level at a time.
        shallower = brackets.replace(b"[]", b"")
        if len(shallower) == len(brackets):
            return brackets.count(b"[") > levels
        brackets = shallower
    return bool(brackets)
