"""Who is calling."""

from agent_console.domain.ids import TeamId, UserId
from agent_console.domain.permissions import Role
from agent_console.domain.records import Record


class Caller(Record):
    """The person (or agent) behind a call, as the database knew them when the call was made."""

    team_id: TeamId
    team: str
    user_id: UserId
    name: str
    role: Role


class Myself(Caller):
    """What a client is told about itself and about what it is connected to."""

    program_version: str
    database_version: str
