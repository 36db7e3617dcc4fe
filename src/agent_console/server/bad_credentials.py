"""Who keeps sending bad credentials: counted for each address, in this process.

The first failure of a minute is written down. An address is warned about, then shut out for a while. The address
is the socket's peer, or what a trusted proxy says of its own peer; IPv6 is counted by /64, which is what one
customer has.
"""

import ipaddress
import logging
import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from sqlalchemy import text

from agent_console.domain.audit import SYSTEM, AuditEvent
from agent_console.domain.errors import ConsoleError, RateLimited
from agent_console.domain.ids import TeamId
from agent_console.domain.kinds import Decision
from agent_console.repository.operations.credentials import AUTH_BLOCKED, AUTH_FAILED
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.repository import Backend

WARN_AT = 5
BLOCK_AT = 20
WINDOW_SECONDS = 300.0
BLOCK_SECONDS = 300.0
TOLD_EVERY_SECONDS = 60.0
MOST_ADDRESSES = 10_000

log = logging.getLogger("agent_console.server")


@dataclass
class _Address:
    failures: deque[float] = field(default_factory=lambda: deque(maxlen=BLOCK_AT))
    blocked_until: float | None = None
    team_id: TeamId | None = None
    told_at: float | None = None


@dataclass(frozen=True)
class Block:
    """An address that was just shut out, and the team its last well-formed secret named."""

    address: str
    team_id: TeamId | None


class BadCredentials:
    """Counts failures. A success takes nothing back: it may be another's, behind the same address."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, *, most_addresses: int = MOST_ADDRESSES
    ) -> None:
        self._clock = clock
        self._most_addresses = most_addresses
        self._addresses: OrderedDict[str, _Address] = OrderedDict()

    def __len__(self) -> int:
        return len(self._addresses)

    def refuse_blocked(self, address: str) -> None:
        known = self._addresses.get(address)
        if known is None or known.blocked_until is None:
            return
        left = known.blocked_until - self._clock()
        if left <= 0:
            del self._addresses[address]
            return
        raise RateLimited(
            "Too many bad credentials came from this address.",
            hint="Wait, then try again with a credential that works.",
            details={"retry_after": math.ceil(left)},
        )

    def failed(self, address: str, team_id: TeamId | None) -> Block | None:
        """Count one failure; the one that fills the measure answers with the block it began."""
        known = self._remembered(address)
        known.team_id = team_id or known.team_id
        if known.blocked_until is not None:
            return None
        now = self._clock()
        known.failures.append(now)
        while known.failures[0] <= now - WINDOW_SECONDS:
            known.failures.popleft()
        count = len(known.failures)
        if count == WARN_AT:
            log.warning("%d bad credentials within %d s from %s", count, WINDOW_SECONDS, address)
        if count < BLOCK_AT:
            return None
        known.blocked_until = now + BLOCK_SECONDS
        log.warning("%s is blocked for %d s: %d bad credentials", address, BLOCK_SECONDS, count)
        return Block(address, known.team_id)

    def is_news(self, address: str) -> bool:
        """Whether nothing was written down of this address for a minute; from now on it was."""
        known, now = self._remembered(address), self._clock()
        if known.told_at is not None and known.told_at > now - TOLD_EVERY_SECONDS:
            return False
        known.told_at = now
        return True

    def _remembered(self, address: str) -> _Address:
        """Whoever failed longest ago is forgotten first, so that strangers can't fill the memory."""
        known = self._addresses.setdefault(address, _Address())
        self._addresses.move_to_end(address)
        while len(self._addresses) > self._most_addresses:
            self._addresses.popitem(last=False)
        return known


def counted_address(host: str | None) -> str:
    """What failures are counted by: an IPv4 address, an IPv6 /64, or whatever the socket calls its peer."""
    if host is None:
        return "unknown"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address), 64), strict=False))


# The team's id came from a stranger: a team that does not exist gets no row.
TEAM_EXISTS = text("select now() from teams where id = :team_id")


async def tell(backend: Backend, block: Block) -> None:
    """Write the block down for the team it was aimed at. It holds whether or not this can be written."""
    facts = {"failures": BLOCK_AT, "seconds": int(BLOCK_SECONDS)}
    event = AuditEvent(AUTH_BLOCKED, "address", block.address, facts, decision=Decision.BLOCK)
    await _tell(backend, block.team_id, event)


async def tell_failure(backend: Backend, address: str, team_id: TeamId | None) -> None:
    """Write down that somebody was turned away, for the team whose door was tried."""
    await _tell(backend, team_id, AuditEvent(AUTH_FAILED, "address", address, decision=Decision.BLOCK))


async def _tell(backend: Backend, team_id: TeamId | None, event: AuditEvent) -> None:
    if team_id is None:
        return
    try:
        await backend.database.within_time(_write(backend, team_id, event))
    except ConsoleError as error:
        log.warning("%s of %s could not be written to the audit trail: %s", event.action, event.resource_id, error)


async def _write(backend: Backend, team_id: TeamId, event: AuditEvent) -> None:
    async with backend.database.changing() as connection:
        at = (await connection.execute(TEAM_EXISTS, {"team_id": team_id})).scalar()
        if at is not None:
            await audit.append_for(connection, team_id, SYSTEM, event, at)
