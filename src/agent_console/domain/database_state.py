"""How the database behind everything is: what a doctor asks it, and nothing that depends on a team."""

from pydantic import Field

from agent_console.domain.records import Instant, Record


class DatabaseState(Record):
    at: Instant = Field(description="The database's own clock.")
    version: str
    version_number: int = Field(description="As PostgreSQL counts: 180001 is 18.1.")
    schema_revision: str | None = Field(description="Null when it was never migrated.")
    wanted_revision: str = Field(description="What the program that answers was written for.")
    is_served: bool = Field(description="Whether this schema serves that program, which may be an older one.")
    is_standby: bool = Field(description="A copy that nothing can be written to.")
    max_connections: int
    connections: int = Field(description="How many are open on the whole server, whoever has them.")
    autovacuum: bool
    oldest_transaction_seconds: float | None = Field(description="Of those that this login may see.")
    hidden_transactions: int = Field(description="Snapshots held by others, whose age this login may not see.")
    user: str = Field(description="As whom the program works in the database.")
    is_superuser: bool
    may_rewrite_audit: bool = Field(description="May change or delete what was written to the audit trail.")
