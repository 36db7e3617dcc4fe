"""What a request may cost before anyone has looked at it."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_console.domain.errors import TooLarge
from agent_console.server.failures import answer

BODY_BYTES = 1_000_000


def too_large() -> TooLarge:
    return TooLarge(
        f"The body is larger than {BODY_BYTES:,} bytes.", hint="Store large data elsewhere and send where it is."
    )


class BodyLimit:
    """Refuses a body that is too large, whether it says so beforehand or not."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if not announced.isdigit() or int(announced) > BODY_BYTES:
            await answer(too_large())(scope, receive, send)
            return
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > BODY_BYTES:
                raise too_large()
            return message

        async def unless_too_large(message: Message) -> None:
            # Whoever reads the body turns our refusal into one of its own; this one is said instead.
            if read <= BODY_BYTES:
                await send(message)

        await self.app(scope, counted, unless_too_large)
        if read > BODY_BYTES:
            await answer(too_large())(scope, receive, send)
