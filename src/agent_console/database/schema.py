"""The schema this program was written for. A test holds it to the newest migration."""

from agent_console.domain.errors import SchemaMismatch

REVISION = "0005"


def require_revision(found: str | None) -> None:
    """Revisions are numbered, so that a running program can tell older from newer without the migrations."""
    if found == REVISION:
        return
    details = {"revision": found, "wanted": REVISION}
    if found is not None and found > REVISION:
        raise SchemaMismatch(
            f"The database is at schema {found}, newer than this program knows ({REVISION}).",
            hint="Upgrade agent-console on this machine.",
            details=details,
        )
    where = "has no agent-console schema yet" if found is None else f"is at schema {found}, not yet {REVISION}"
    raise SchemaMismatch(f"The database {where}.", hint="Run: agent-console db migrate", details=details)
