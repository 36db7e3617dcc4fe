"""Whether those who read live streams are still who they were: one look at all of them, by key.

It only finds out who has to be asked again; what has become of them, their own identification says.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from agent_console.domain.identity import Caller
from agent_console.domain.ids import Id
from agent_console.domain.secrets import Secret
from agent_console.repository.postgres.identify import BySecret, Identify
from agent_console.repository.postgres.live.stream_reader import StreamReader
from agent_console.repository.postgres.queue.connections import QueueConnections

LOOK_AGAIN_SECONDS = 4.0

BY_SECRET = """
    with asked as materialized (
        select *
          from unnest(%(kinds)s::text[], %(teams)s::uuid[], %(owners)s::uuid[], %(hashes)s::text[])
               with ordinality as a (kind, team_id, owner, hash, place)
    )
    select a.place, u.role
      from asked a
      join operator_tokens k on k.team_id = a.team_id and k.id = a.owner
      join users u on u.team_id = k.team_id and u.id = k.user_id
     where a.kind = 'opt' and k.token_hash = a.hash and k.revoked_at is null
       and coalesce(k.expires_at > now(), true) and u.is_active
    union all
    select a.place, 'agent'
      from asked a
      join agents g on g.team_id = a.team_id and g.id = a.owner
     where a.kind = 'agt' and g.revoked_at is null and g.deleted_at is null
       and (g.api_key_hash = a.hash or (g.previous_key_hash = a.hash and g.previous_key_ends_at > now()))
    union all
    select a.place, 'agent'
      from asked a
      join worker_tokens k on k.team_id = a.team_id and k.id = a.owner
      join agents g on g.team_id = k.team_id and g.worker_id = k.worker_id and g.deleted_at is null
     where a.kind = 'wkt' and k.token_hash = a.hash and k.is_active
       and coalesce(k.expires_at > now(), true) and g.revoked_at is null
"""
# A direct session may have no right to look at secrets, not even at their hashes.
BY_NAME = """
    select a.place, u.role
      from unnest(%(teams)s::uuid[], %(owners)s::uuid[]) with ordinality as a (team_id, owner, place)
      join users u on u.team_id = a.team_id and u.id = a.owner
     where u.is_active
"""


def secret_of(identify: Identify) -> Secret | None:
    """What the reader proved itself with; None in a direct session, where the database's own login did."""
    return identify.secret if isinstance(identify, BySecret) else None


async def changed_standing(
    connections: QueueConnections, readers: Iterable[tuple[StreamReader, Caller]]
) -> list[StreamReader]:
    """Those whose credential no longer holds, or whose role is another one."""
    by_secret, by_name = Asked(BY_SECRET), Asked(BY_NAME)
    for reader, caller in readers:
        if reader.secret is None:
            by_name.add(reader, caller, caller.user_id, "")
        else:
            by_secret.add(reader, caller, reader.secret.owner, reader.secret.hash)
    return [*await by_secret.changed(connections), *await by_name.changed(connections)]


@dataclass
class Asked:
    """One statement, and those it is asked about, in their order."""

    statement: str
    readers: list[tuple[StreamReader, Caller]] = field(default_factory=list)
    owners: list[Id] = field(default_factory=list)
    hashes: list[str] = field(default_factory=list)

    def add(self, reader: StreamReader, caller: Caller, owner: Id, hashed: str) -> None:
        self.readers.append((reader, caller))
        self.owners.append(owner)
        self.hashes.append(hashed)

    async def changed(self, connections: QueueConnections) -> list[StreamReader]:
        if not self.readers:
            return []
        facts = {
            "kinds": [owner.prefix for owner in self.owners],
            "teams": [reader.team_id for reader, _ in self.readers],
            "owners": self.owners,
            "hashes": self.hashes,
        }
        roles = {row.place: row.role for row in await connections.rows(self.statement, facts)}
        return [
            reader
            for place, (reader, caller) in enumerate(self.readers, start=1)
            if roles.get(place) != caller.role.value
        ]
