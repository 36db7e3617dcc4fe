"""The state of the chain in one line: how far it is proved, how far it is sealed, and what waits for its seal."""

from dataclasses import dataclass, replace
from datetime import datetime

from textual.content import Content

from agent_console.domain.audit_proof import Damage, Verified
from agent_console.domain.audit_trail import UNSEALED_MOST, SealStatus
from agent_console.domain.spans import ago, span
from agent_console.tui.agent_text import agent_text, system_text

LAG_SECONDS = 5.0
"""An act that has waited longer for its seal is a reason to look."""
MESSAGE_SHOWN = 200


@dataclass(frozen=True)
class ChainState:
    """`verified` is how far somebody here has proved the chain; `damage` is what was found wrong then."""

    status: SealStatus | None = None
    verified: int | None = None
    damage: Damage | None = None

    def sealed(self, status: SealStatus) -> "ChainState":
        return replace(self, status=status)

    def proved(self, found: Verified) -> "ChainState":
        return replace(self, verified=found.position, damage=found.damage)

    @property
    def position(self) -> int:
        return 0 if self.status is None else self.status.position

    @property
    def is_late(self) -> bool:
        return self.status is not None and is_late(self.status)


def is_late(status: SealStatus) -> bool:
    return status.unsealed > 0 and status.lag_seconds > LAG_SECONDS


def chain_line(chain: ChainState, now: datetime) -> Content:
    if chain.status is None:
        return system_text("Chain: …", "$foreground-muted")
    parts = [_proof(chain), _seal(chain.status, now)]
    if chain.status.unsealed or chain.status.position:
        # On a narrow screen the end is cut off: what is a reason to look stands first.
        parts.insert(0 if chain.is_late else 2, _waiting(chain.status))
    return system_text(" · ", "$foreground-muted").join(parts)


def _proof(chain: ChainState) -> Content:
    if chain.damage is not None:
        return damage_words(chain.damage)
    if chain.verified is None:
        return system_text("Not verified here (V)", "$foreground-muted")
    return system_text(f"✓ Verified to {chain.verified:,}", "$text-success")


def damage_words(damage: Damage) -> Content:
    where = "" if damage.position is None else f" at {damage.position:,}"
    told = system_text(f"✗ Damaged{where} ({damage.kind.value}): ", "bold $text-error")
    return told + agent_text(damage.message, "$text-error", limit=MESSAGE_SHOWN)


def _seal(status: SealStatus, now: datetime) -> Content:
    if status.sealed_at is None:
        return system_text("nothing sealed yet", "$foreground-muted")
    words = f"sealed to {status.position:,}, {ago(status.sealed_at, now)} ago"
    return system_text(words, "$foreground-muted")


def _waiting(status: SealStatus) -> Content:
    if not status.unsealed:
        return system_text("all sealed", "$foreground-muted")
    count = f"{status.unsealed:,}{'+' if status.unsealed >= UNSEALED_MOST else ''} unsealed"
    if is_late(status):
        return system_text(f"▲ {count} for {span(status.lag_seconds)}", "bold $text-warning")
    return system_text(count, "$foreground-muted")
