"""A fixed fleet in a real database: the same rows, ids and times in every run.

Its time lies in the future, so that the database's own clock never counts an agent of it as silent.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Self
from uuid import UUID

from psycopg.types.json import Jsonb

from agent_console.database.roles import APP, with_role
from agent_console.domain.ids import AgentId, Id, JobId, LaneId, OperatorTokenId, TeamId, UserId
from agent_console.domain.secrets import Secret
from tests.support.administration import Administration

AT = datetime(2099, 3, 1, 3, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Fleet:
    """The example fleet, and whatever a test adds to it."""

    administration: str
    _session: Administration = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_session", Administration(self.administration))

    def __enter__(self) -> Self:
        """Within the block one connection does everything that the test asks for here."""
        self._session.stay_connected()
        return self

    def __exit__(self, *_: object) -> None:
        self._session.leave()

    @property
    def working(self) -> str:
        """A session with no more rights than the program itself has."""
        return with_role(self.administration, APP)

    def execute(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        """As the superuser, committed; for what only a test may do."""
        return self._session.execute(statement, values)

    def one(self, statement: str, *values: object) -> object:
        return self.execute(statement, *values)[0][0]

    def token(self, email: str) -> str:
        """A token of a person, as the program mints them, but on the connection that is there, and used before."""
        [(team_id, user_id)] = self.execute("select team_id, id from users where lower(email) = lower(%s)", email)
        assert isinstance(team_id, UUID)
        secret = Secret.mint(TeamId.of(team_id), OperatorTokenId.new())
        self.execute(
            "insert into operator_tokens (team_id, id, user_id, created_by_user_id, token_hash, token_prefix,"
            " last_used_at) values (%s, %s, %s, %s, %s, %s, now())",
            *(team_id, secret.owner, user_id, user_id, secret.hash, secret.shown_prefix),
        )
        return secret.word

    def _id(self, kind: type[Id], statement: str, *values: object) -> Id:
        found = self.one(statement, *values)
        assert isinstance(found, UUID)
        return kind(int=found.int)

    def team_id(self, slug: str = "example") -> TeamId:
        return TeamId.of(self._id(TeamId, "select id from teams where slug = %s", slug))

    def agent_id(self, name: str) -> AgentId:
        return AgentId.of(self._id(AgentId, "select id from agents where name = %s", name))

    def user_id(self, email: str) -> UserId:
        return UserId.of(self._id(UserId, "select id from users where email = %s", email))

    def add_team(self, slug: str) -> TeamId:
        """Another team with its own administrator, `admin@<slug>.example`."""
        team_id, user_id = TeamId.new(), UserId.new()
        self.execute("insert into teams (id, slug, name) values (%s, %s, %s)", team_id, slug, slug)
        self.execute(
            "insert into users (team_id, id, email, full_name, role) values (%s, %s, %s, %s, 'admin')",
            *(team_id, user_id, f"admin@{slug}.example", f"Admin of {slug}"),
        )
        return team_id

    def add_jobs(
        self, count: int, *, status: str = "queued", type: str = "bulk", since: str = "2030-01-01"
    ) -> None:
        """Many jobs at once, made by the database, each a millisecond after the other."""
        team_id, lane_id = self.team_id(), LaneId.new()
        self.execute(
            "insert into lanes (team_id, id, key) values (%s, %s, encode(sha256(%s::text::bytea), 'hex'))",
            *(team_id, lane_id, str(lane_id)),
        )
        self.execute(
            """
            insert into jobs (team_id, id, lane_id, type, status, payload, finished_at)
            select %s, (lpad(to_hex((extract(epoch from %s::timestamptz) * 1000)::bigint + n), 12, '0')
                        || '7000' || 'a000' || lpad(to_hex(n), 12, '0'))::uuid,
                   %s, %s, %s, %s,
                   case when %s in ('succeeded', 'failed', 'dead_letter', 'cancelled') then now() end
              from generate_series(1, %s) as n
            """,
            *(team_id, since, lane_id, type, status, Jsonb({}), status, count),
        )

    def first_job(self, status: str) -> JobId:
        statement = "select id from jobs where status = %s order by id limit 1"
        return JobId.of(self._id(JobId, statement, status))
