"""Where the chain is cut off when a month is dropped: of each team by itself, and nothing else is touched."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import psycopg
import pytest

from agent_console.domain.audit_proof import Pruning
from agent_console.domain.team_settings import SettingChange
from agent_console.repository.operations.audit_trail import AUDIT_PRUNE
from agent_console.repository.operations.people import SETTINGS_SET
from agent_console.repository.postgres.identify import by_name
from agent_console.repository.postgres.repository import Backend, PostgresRepository, open_direct
from tests.repository.test_contract_audit_proof import FEBRUARY, JANUARY, whole
from tests.support.fleet import Fleet
from tests.support.locks import somebody_waits_for_a_lock
from tests.support.trail import act, old_act, seal

FIRST_OF_FEBRUARY = datetime(2020, 2, 1, tzinfo=UTC)
MARCH = datetime(2020, 3, 10, tzinfo=UTC)
CUTS = "select team_id, to_char(month, 'YYYY-MM'), first_position, last_position from audit_checkpoints"
THEIRS = """
    insert into audit_checkpoints (team_id, id, month, first_position, last_position, last_hash, rows)
    values (%s, new_id(), '2020-06-01', 1, 2, sha256('theirs'), 2)
"""
OF_SOMEBODY_ELSE = (
    "create table measured (at timestamptz) partition by range (at)",
    "create table a_measured_2019_01 partition of measured for values from ('2019-01-01') to ('2019-02-01')",
)


@pytest.fixture
async def repository(fleet: Fleet) -> AsyncIterator[PostgresRepository]:
    backend = Backend(fleet.working)
    yield PostgresRepository(backend, by_name("example", None))
    await backend.close()


async def test_each_team_is_cut_off_where_its_own_next_month_begins(
    fleet: Fleet, repository: PostgresRepository
) -> None:
    ours, theirs = fleet.team_id(), fleet.add_team("other")
    for at in (JANUARY, JANUARY, FIRST_OF_FEBRUARY):
        old_act(fleet, at)
    for at in (JANUARY, FIRST_OF_FEBRUARY, FEBRUARY):
        old_act(fleet, at, theirs)
    for team_id in (ours, theirs):
        act(fleet, team_id=team_id)
        assert seal(fleet, team_id) == 4

    await repository.call(AUDIT_PRUNE, Pruning())

    assert set(fleet.execute(CUTS)) == {(ours, "2020-01", 1, 2), (theirs, "2020-01", 1, 1)}
    assert (await whole(repository)).damage is None


async def test_a_month_that_lies_behind_the_next_is_cut_off_at_the_last_checkpoint(
    fleet: Fleet, repository: PostgresRepository
) -> None:
    """The seal there is gone already; another team kept its own, and was cut off at the same position."""
    theirs = fleet.add_team("other")
    for at in (JANUARY, JANUARY, MARCH, FEBRUARY):
        old_act(fleet, at)
        act(fleet, team_id=theirs)
    assert (seal(fleet), seal(fleet, theirs)) == (4, 4)
    await repository.call(AUDIT_PRUNE, Pruning())
    assert fleet.one("select prune_audit_seals(100)") == 2
    fleet.execute(THEIRS, theirs)

    await repository.call(AUDIT_PRUNE, Pruning())

    seal(fleet)
    assert fleet.execute(f"{CUTS} where team_id = %s order by month", fleet.team_id()) == [
        (fleet.team_id(), "2020-01", 1, 2), (fleet.team_id(), "2020-02", 3, 2),
    ]  # fmt: skip
    assert (await whole(repository)).damage is None


async def test_who_drops_a_month_waits_for_who_makes_or_drops_one(fleet: Fleet) -> None:
    old_act(fleet, JANUARY)
    seal(fleet)

    async def dropping() -> list[tuple[object, ...]]:
        async with await psycopg.AsyncConnection.connect(fleet.working) as connection:
            return await (await connection.execute("select rows from prune_audit()")).fetchall()

    async with await psycopg.AsyncConnection.connect(fleet.administration) as another:
        await another.execute("select pg_advisory_xact_lock(hashtext('agent_console.audit_months'))")
        begun = asyncio.create_task(dropping())
        await somebody_waits_for_a_lock(fleet, task=begun)
        await another.commit()

    assert await begun == [(1,)]


async def test_whoever_changes_something_does_not_wait_while_a_month_is_dropped(fleet: Fleet) -> None:
    """As on the first day of a month, when the last of those ahead is yet to be made."""
    fleet.execute(f"drop table {_month_ahead(fleet, 3)}")

    async with await psycopg.AsyncConnection.connect(fleet.administration) as another:
        await another.execute("select pg_advisory_xact_lock(hashtext('agent_console.audit_months'))")
        async with open_direct(fleet.working, user="ana@example.com") as ana:
            changed = await ana.call(SETTINGS_SET, SettingChange(name="max_hops", value=4))

    assert changed.value == 4


async def test_whoever_changes_something_makes_the_next_month_where_nobody_did(fleet: Fleet) -> None:
    for ahead in (1, 2, 3):
        fleet.execute(f"drop table {_month_ahead(fleet, ahead)}")

    async with open_direct(fleet.working, user="ana@example.com") as ana:
        await ana.call(SETTINGS_SET, SettingChange(name="max_hops", value=4))

    next_month = _month_ahead(fleet, 1)
    assert fleet.one("select to_regclass(%s)::text", next_month) == next_month


def _month_ahead(fleet: Fleet, ahead: int) -> str:
    month = "to_char(now() at time zone 'UTC' + make_interval(months => %s), 'YYYY_MM')"
    return str(fleet.one(f"select 'audit_log_' || {month}", ahead))


async def test_only_what_is_pruned_may_be_deleted_in_its_transaction(fleet: Fleet) -> None:
    act(fleet)
    seal(fleet)

    async with await psycopg.AsyncConnection.connect(fleet.administration) as connection:
        await connection.execute("select prune_audit_seals(100)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="append-only"):
            await connection.execute("delete from audit_seals")


async def test_months_of_another_table_are_left_alone(fleet: Fleet, repository: PostgresRepository) -> None:
    for table in OF_SOMEBODY_ELSE:
        fleet.execute(table)
    old_act(fleet, JANUARY)
    seal(fleet)

    dropped = await repository.call(AUDIT_PRUNE, Pruning())

    assert (dropped.done, [month.month for month in dropped.months]) == (1, ["2020-01"])
    left = "select to_regclass('a_measured_2019_01')::text, to_regclass('audit_log_2020_01')::text"
    assert fleet.execute(left) == [("a_measured_2019_01", None)]
