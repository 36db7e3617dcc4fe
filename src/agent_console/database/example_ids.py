"""Ids for rows that are made up: the same again for the same time and name."""

import hashlib
from datetime import datetime, timedelta
from typing import TypeVar

from agent_console.domain.ids import Id

Kind = TypeVar("Kind", bound=Id)


class ExampleIds:
    """Ids made from the fleet's own time and a name, so that the same fleet has the same ids again."""

    def __init__(self, at: datetime) -> None:
        self._at = at

    def make(self, kind: type[Kind], name: str, seconds_ago: float = 0) -> Kind:
        moment = int((self._at - timedelta(seconds=seconds_ago)).timestamp() * 1000)
        random = int.from_bytes(hashlib.sha256(f"{kind.prefix}:{name}".encode()).digest()[:10])
        return kind(int=moment << 80 | 7 << 76 | (random >> 68) << 64 | 2 << 62 | random & (1 << 62) - 1)
