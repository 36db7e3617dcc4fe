"""The form of every secret: kind, team, public id, 256 random bits and a checksum in one copyable word.

A typing mistake is told from a wrong key without a look-up, a scanner can find a leaked one, and the look-up
touches one team. Only the SHA-256 of the whole word is ever stored.
"""

import hashlib
import hmac
import re
import secrets
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from agent_console.domain.errors import Unauthorized
from agent_console.domain.ids import (
    ALPHABET,
    SUFFIX_LENGTH,
    AgentId,
    Id,
    OperatorTokenId,
    RegistrationTokenId,
    TeamId,
    WorkerTokenId,
)

RANDOM_LENGTH = 52
CHECKSUM_LENGTH = 7
SHOWN_RANDOM = 8

OWNERS: dict[str, type[Id]] = {
    kind.prefix: kind for kind in (AgentId, RegistrationTokenId, WorkerTokenId, OperatorTokenId)
}
# Of the first letter of an id three bits are used.
_ID = rf"[0-7][{ALPHABET}]{{{SUFFIX_LENGTH - 1}}}"
_WORD = re.compile(
    rf"(?P<kind>{'|'.join(OWNERS)})_key_(?P<team>{_ID})(?P<owner>{_ID})(?P<random>[{ALPHABET}]{{{RANDOM_LENGTH}}})"
    rf"(?P<checksum>[{ALPHABET}]{{{CHECKSUM_LENGTH}}})"
)


def _base32(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 32)
        digits.append(ALPHABET[digit])
    return "".join(reversed(digits))


def _checksum(text: str) -> str:
    return _base32(zlib.crc32(text.encode()), CHECKSUM_LENGTH)


def hash_of(word: str) -> str:
    return hashlib.sha256(word.encode()).hexdigest()


def same_hash(left: str, right: str) -> bool:
    return hmac.compare_digest(left, right)


@dataclass(frozen=True, repr=False)
class Secret:
    """A secret in the hands of its owner. Its text never appears in a repr or a log line."""

    team_id: TeamId
    owner: Id
    word: str

    @classmethod
    def mint(cls, team_id: TeamId, owner: Id) -> Self:
        random = _base32(secrets.randbits(256), RANDOM_LENGTH)
        body = f"{owner.prefix}_key_{_suffix(team_id)}{_suffix(owner)}{random}"
        return cls(team_id, owner, body + _checksum(body))

    @classmethod
    def parse(cls, word: str) -> Self:
        """Tell a mistyped word from a well-formed one; whether it is valid only the database knows."""
        match = _WORD.fullmatch(word.strip())
        if match is None or _checksum(match.string[:-CHECKSUM_LENGTH]) != match["checksum"]:
            raise Unauthorized(
                "This is not a key as agent-console makes them; it was cut short or mistyped.",
                hint="Copy the whole word again, or mint a new key.",
            )
        owner = OWNERS[match["kind"]].parse(f"{match['kind']}_{match['owner']}")
        return cls(TeamId.parse(f"tea_{match['team']}"), owner, match.string)

    @property
    def shown_prefix(self) -> str:
        start = len(self.owner.prefix) + len("_key_") + 2 * SUFFIX_LENGTH
        return f"{self.owner.prefix}_key_{self.word[start : start + SHOWN_RANDOM]}"

    @cached_property
    def hash(self) -> str:
        return hash_of(self.word)

    def __repr__(self) -> str:
        return f"Secret({self.shown_prefix}…)"


def _suffix(value: Id) -> str:
    return str(value).partition("_")[2]
