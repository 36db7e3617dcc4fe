"""How the database is, as a doctor is told: the same through a server and directly."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from agent_console.database.schema import REVISION
from agent_console.domain.errors import Forbidden
from agent_console.domain.records import Nothing
from agent_console.repository.examining import examined
from agent_console.repository.operations import Answered, Asked, Operation
from agent_console.repository.operations.audit_trail import AUDIT_SEAL_STATUS
from agent_console.repository.operations.database import DATABASE_STATE
from agent_console.repository.port import Repository
from agent_console.repository.postgres.repository import open_direct
from tests.repository.conftest import VIEWER, OpenRepository
from tests.support.fleet import AT, Fleet


async def test_its_settings_clock_and_rights_are_told_to_whoever_sees_the_fleet(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    before = fleet.one("select clock_timestamp()")

    state = await (await open_repository(VIEWER)).call(DATABASE_STATE, Nothing())

    known = fleet.execute(
        "select current_setting('server_version'), current_setting('server_version_num')::integer,"
        " current_setting('max_connections')::integer, clock_timestamp()"
    )
    assert [(state.version, state.version_number, state.max_connections)] == [row[:3] for row in known]
    assert (state.schema_revision, state.wanted_revision, state.is_served) == (REVISION, REVISION, True)
    after = known[0][3]
    assert isinstance(before, datetime)
    assert isinstance(after, datetime)
    assert before <= state.at <= after
    assert 1 <= state.connections <= state.max_connections
    assert (state.autovacuum, state.is_standby) == (True, False)
    assert (state.user, state.is_superuser, state.may_rewrite_audit) == ("agent_console_app", False, False)


async def test_who_works_with_too_many_rights_is_told_so(fleet: Fleet) -> None:
    async with open_direct(fleet.administration, team="example", user=VIEWER) as repository:
        state = await repository.call(DATABASE_STATE, Nothing())

    assert (state.is_superuser, state.may_rewrite_audit) == (True, True)


async def test_an_examination_asks_for_everything_and_measures(repository: Repository) -> None:
    times = iter(range(0, 1000, 3))

    far = await examined(repository, lambda: AT, lambda: float(next(times)))

    assert far.round_trips == (3.0,) * 5
    assert far.me is not None
    assert far.duties is not None
    assert far.seal is not None
    assert far.database is not None
    assert far.skew_seconds is not None
    assert timedelta(seconds=far.skew_seconds) == far.database.at - AT
    assert (far.problem, far.refused) == ("", ())


@dataclass(frozen=True)
class AllButSeals:
    """Another side that does not tell how the sealing goes."""

    repository: Repository

    async def call(self, operation: Operation[Asked, Answered], request: Asked) -> Answered:
        if operation.name == AUDIT_SEAL_STATUS.name:
            raise Forbidden("That is not for you.")
        return await self.repository.call(operation, request)


async def test_what_alone_is_refused_is_left_out_with_the_reason(repository: Repository) -> None:
    far = await examined(AllButSeals(repository), lambda: AT)

    assert (far.seal, far.refused) == (None, (("seals", "That is not for you."),))
    assert far.database is not None
    assert far.duties is not None
