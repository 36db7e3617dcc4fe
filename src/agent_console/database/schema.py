"""The schema this program was written for. A test holds it to the newest migration."""

from agent_console.domain.errors import SchemaMismatch

REVISION = "0005"


def require_served(revision: str | None, *, listed: bool) -> None:
    """Refuse a database whose schema is not this program's own, unless it is `listed` there as served.

    Revisions are numbered, so that a running program can tell older from newer without the migrations.
    """
    if revision == REVISION:
        return
    details = {"revision": revision, "wanted": REVISION}
    if revision is not None and revision > REVISION:
        if listed:
            return
        raise SchemaMismatch(
            f"The database is at schema {revision}, newer than this program knows ({REVISION}).",
            hint="Upgrade agent-console on this machine.",
            details=details,
        )
    where = (
        "has no agent-console schema yet" if revision is None else f"is at schema {revision}, not yet {REVISION}"
    )
    raise SchemaMismatch(f"The database {where}.", hint="Run: agent-console db migrate", details=details)
