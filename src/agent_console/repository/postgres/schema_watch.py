"""Whether the database's schema serves this program: asked before the first answer, and again now and then."""

from time import monotonic

from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.ext.asyncio import AsyncConnection

from agent_console.database.schema import REVISION, require_served

LOOK_AGAIN_SECONDS = 60.0

# Two tables of a few rows, and the second by its key.
STANDING = text("""
    select version_num as revision,
           exists (select from schema_fits where revision = :mine) as listed
      from alembic_version
""").bindparams(mine=REVISION)
# An older schema has no list of programs.
ONLY_REVISION = text("select version_num as revision, false as listed from alembic_version")
NO_SUCH_TABLE = "42P01"


class SchemaWatch:
    """Remembers that the schema was right, for as long as nobody could have been told otherwise.

    When a look is due again, one caller takes it and the others go on with what is known; while the schema is
    wrong, everybody looks, so that work begins again as soon as it is right.
    """

    def __init__(self, look_again_seconds: float = LOOK_AGAIN_SECONDS) -> None:
        self._look_again_seconds = look_again_seconds
        self._right_at: float | None = None

    @property
    def is_due(self) -> bool:
        return self._right_at is None or monotonic() - self._right_at >= self._look_again_seconds

    def forget(self) -> None:
        """After a failure that may mean another database, or another schema."""
        self._right_at = None

    async def require(self, connection: AsyncConnection) -> None:
        """Refuse to work when the schema does not serve us; a look leaves no transaction open."""
        if not self.is_due:
            return
        if self._right_at is not None:
            self._right_at = monotonic()
        try:
            revision, listed = await _standing(connection)
            require_served(revision, listed=listed)
        except BaseException:
            self.forget()
            raise
        self._right_at = monotonic()


async def _standing(connection: AsyncConnection) -> tuple[str | None, bool]:
    for statement in (STANDING, ONLY_REVISION):
        try:
            row = (await connection.execute(statement)).one_or_none()
        except ProgrammingError as error:
            if getattr(error.orig, "sqlstate", None) != NO_SUCH_TABLE:
                raise
            row = None
        if connection.in_transaction():
            await connection.rollback()
        if row is not None:
            return row.revision, row.listed
    return None, False
