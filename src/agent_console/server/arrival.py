"""What is known of a request before anyone has looked at it: its id, its address, its credential."""

import hashlib
import re
import secrets
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Self

from starlette.types import Scope

from agent_console.domain.errors import Unauthorized
from agent_console.domain.secrets import Secret
from agent_console.server.bad_credentials import counted_address
from agent_console.server.client_address import TrustedProxies, read_address

_KEPT = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_IN_SCOPE = "agent_console.arrival"


@dataclass(frozen=True)
class Arrival:
    """One request. `word` is what it claims as its credential; nobody has proved it, and it is read here only."""

    request_id: str
    client: str | None
    word: str | None = field(repr=False)

    @classmethod
    def of(cls, scope: Scope, proxies: TrustedProxies) -> Self:
        """Read the headers once; from here on the scope carries what they said."""
        request_id, said, forwarded = b"", [], []
        for name, value in scope["headers"]:
            if name == b"authorization":
                said.append(value.decode("latin-1"))
            elif name == b"x-request-id":
                request_id = value
            elif name == b"x-forwarded-for":
                forwarded.append(value.decode("latin-1"))
        kept = request_id.decode() if _KEPT.fullmatch(request_id) else secrets.token_hex(16)
        peer = scope["client"][0] if scope.get("client") else None
        arrival = cls(kept, proxies.client_of(peer, forwarded), _word_of(said))
        scope[_IN_SCOPE] = arrival
        return arrival

    @property
    def counted(self) -> str:
        """What its address is counted by."""
        return _counted(self.client)

    @property
    def is_local(self) -> bool:
        return _is_local(self.client)

    @property
    def mark(self) -> str | None:
        """What its credential is counted by; the credential itself is kept nowhere."""
        return None if self.word is None else hashlib.sha256(self.word.encode()).hexdigest()

    @property
    def shown(self) -> str | None:
        """The credential as it may be shown to anybody: the prefix that lists of credentials show too."""
        if self.word is None:
            return None
        try:
            return Secret.parse(self.word).shown_prefix
        except Unauthorized:
            return "not a key"


def _word_of(said: list[str]) -> str | None:
    """Several are none: whoever stands before us may have looked at another one than we would."""
    scheme, _, word = said[0].partition(" ") if len(said) == 1 else ("", "", "")
    return word.strip() or None if scheme.lower() == "bearer" else None


def arrival_of(scope: Scope) -> Arrival:
    arrival = scope[_IN_SCOPE]
    if not isinstance(arrival, Arrival):
        raise TypeError("a request came in past the reception")
    return arrival


_counted = lru_cache(1024)(counted_address)


@lru_cache(1024)
def _is_local(client: str | None) -> bool:
    address = read_address(client or "")
    return address is not None and address.is_loopback
