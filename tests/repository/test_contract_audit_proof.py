"""Proving the trail and dropping its old months, through both repositories."""

import asyncio
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from agent_console.domain.audit_proof import DamageKind, Pruned, Pruning, Verification, Verified
from agent_console.domain.audit_trail import AuditQuery, KeptSeal
from agent_console.domain.errors import Conflict, Forbidden, Invalid
from agent_console.domain.ids import AuditId, TeamId
from agent_console.domain.records import Nothing
from agent_console.domain.team_settings import SettingChange
from agent_console.repository.operations.audit_trail import (
    AUDIT_LIST,
    AUDIT_PRUNE,
    AUDIT_SEAL,
    AUDIT_SEAL_STATUS,
    AUDIT_VERIFY,
)
from agent_console.repository.operations.people import SETTINGS_SET
from agent_console.repository.port import Repository
from agent_console.repository.postgres.duties.audit_months import PRUNE_AUDIT
from agent_console.repository.postgres.repository import Backend
from tests.repository.conftest import OPERATOR, OpenRepository
from tests.support.fleet import Fleet
from tests.support.trail import act, old_act, seal
from tests.support.until import until

JANUARY = datetime(2020, 1, 31, 23, 59, tzinfo=UTC)
FEBRUARY = datetime(2020, 2, 1, 0, 1, tzinfo=UTC)
NOW = datetime.now(UTC)


@pytest.fixture(autouse=True)
def months_left_alone(fleet: Fleet) -> None:
    """No server drops them by itself: somebody else seems to be at it."""
    fleet.execute("select pg_advisory_lock(hashtext('agent_console.duties'), hashtext('audit_months'))")


async def whole(repository: Repository, **asked: object) -> Verified:
    request, done = Verification.model_validate(asked), 0
    while True:
        part = await repository.call(AUDIT_VERIFY, request)
        done += part.done
        if part.next is None:
            return part.model_copy(update={"done": done})
        request = request.model_copy(update={"after": part.next})


async def pruned(repository: Repository) -> Pruned:
    so_far: Pruned | None = None
    request = Pruning()
    while so_far is None or so_far.next is not None:
        step = await repository.call(AUDIT_PRUNE, request)
        so_far = step.following(so_far)
        request = request.model_copy(update={"after": step.next})
    return so_far


@pytest.mark.rule("R002-90")
async def test_a_trail_is_proved_in_parts_against_a_seal_that_was_kept(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    admin, operator = await open_repository(), await open_repository(OPERATOR)
    for _ in range(7):
        act(fleet)
    seal(fleet)
    kept = await operator.call(AUDIT_SEAL, Nothing())
    act(fleet)
    seal(fleet)

    proved = await whole(admin, batch_size=3, seal=kept.model_dump(mode="json", exclude={"team", "sealed_at"}))
    first = await admin.call(AUDIT_VERIFY, Verification(batch_size=3))
    but_one = await admin.call(AUDIT_VERIFY, Verification(batch_size=7))

    assert (proved.done, proved.position, proved.left, proved.unsealed, proved.damage) == (8, 8, 0, 0, None)
    assert (first.done, first.left, first.position) == (3, 5, 3)
    assert (but_one.left, but_one.next) == (1, f"7.{kept.hash}")
    assert proved.hash == (await admin.call(AUDIT_SEAL, Nothing())).hash
    with pytest.raises(Forbidden):
        await operator.call(AUDIT_VERIFY, Verification())
    for wrong in (
        Verification(after="here"),
        Verification(seal=KeptSeal(team_id=TeamId.new(), position=1, hash="0" * 64)),
    ):
        with pytest.raises(Invalid):
            await admin.call(AUDIT_VERIFY, wrong)
    for nowhere in (99, 10**30):
        with pytest.raises(Conflict, match="no longer in the chain"):
            await admin.call(AUDIT_VERIFY, Verification(after=f"{nowhere}.{kept.hash}"))


async def test_an_empty_trail_holds(repository: Repository) -> None:
    proved = await repository.call(AUDIT_VERIFY, Verification())

    assert (proved.done, proved.position, proved.damage) == (0, 0, None)


def two_old_months(fleet: Fleet, *, other: TeamId | None = None) -> list[AuditId]:
    """Sealed, with one act of January among those of February."""
    acts = [old_act(fleet, at) for at in (JANUARY, JANUARY, FEBRUARY, JANUARY, FEBRUARY)]
    acts.append(act(fleet))
    if other is not None:
        old_act(fleet, JANUARY, other)
        seal(fleet, other)
    seal(fleet)
    return acts


@pytest.mark.rule("R002-120", "R002-122")
async def test_old_months_are_dropped_and_the_rest_is_proved_from_the_checkpoint(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    other = fleet.add_team("other")
    admin, operator = await open_repository(), await open_repository(OPERATOR)
    acts = two_old_months(fleet, other=other)
    kept = await admin.call(AUDIT_SEAL, Nothing())

    looked = await admin.call(AUDIT_PRUNE, Pruning(dry_run=True))
    untouched = (await whole(admin)).done
    dropped = await pruned(admin)
    seal(fleet)
    proved = await whole(admin, seal={"team_id": kept.team_id, "position": kept.position, "hash": kept.hash})
    again = await pruned(admin)

    assert [(month.month, month.rows) for month in looked.months] == [("2020-01", 3), ("2020-02", 2)]
    assert (looked.done, looked.left, untouched) == (0, 2, 6)
    assert (dropped.done, dropped.left, dropped.months) == (2, 0, looked.months)
    assert (proved.damage, proved.position, again.done) == (None, 8, 0)
    status = await admin.call(AUDIT_SEAL_STATUS, Nothing())
    assert [(cut.month, cut.first_position, cut.last_position, cut.rows) for cut in status.checkpoints] == [
        ("2020-01", 1, 2, 3), ("2020-02", 3, 5, 2),
    ]  # fmt: skip
    assert "2020-01" not in status.months
    told = (await admin.call(AUDIT_LIST, AuditQuery(action="audit.prune"))).items
    assert [(row.resource_id, row.actor, row.metadata["rows"]) for row in told] == [
        ("2020-02", "Ana Costa", 2), ("2020-01", "Ana Costa", 3),
    ]  # fmt: skip
    of_the_other = fleet.execute("select actor_type, resource_id from audit_log where team_id = %s", other)
    assert of_the_other == [("system", "2020-01")]
    assert (
        fleet.one("select id from audit_log where team_id = %s order by seq limit 1", fleet.team_id()) == acts[-1]
    )
    with pytest.raises(Forbidden):
        await operator.call(AUDIT_PRUNE, Pruning())


@pytest.mark.rule("R002-121")
async def test_how_long_months_are_kept_is_a_setting_and_the_longest_of_all_teams_counts(
    repository: Repository, fleet: Fleet
) -> None:
    old_act(fleet, NOW - timedelta(days=400))
    act(fleet)
    seal(fleet)
    months = [f"{NOW - timedelta(days=400):%Y-%m}"]

    await repository.call(SETTINGS_SET, SettingChange(name="audit_retention_days", value=3650))
    kept = await repository.call(AUDIT_PRUNE, Pruning(dry_run=True))
    await repository.call(SETTINGS_SET, SettingChange(name="audit_retention_days", value=30))
    due = await repository.call(AUDIT_PRUNE, Pruning(dry_run=True))
    other = fleet.add_team("other")
    fleet.execute("insert into settings (team_id, name, value) values (%s, 'audit_retention_days', '500')", other)
    kept_by_another = await pruned(repository)

    assert (kept.months, [month.month for month in due.months]) == ((), months)
    assert (kept_by_another.done, kept_by_another.left) == (0, 0)


async def test_a_month_with_acts_that_are_not_sealed_stays(repository: Repository, fleet: Fleet) -> None:
    with psycopg.connect(fleet.administration) as slow:
        slow.execute("select pg_current_xact_id()")
        unsealed = old_act(fleet, JANUARY)

        with pytest.raises(Conflict, match="not sealed"):
            await repository.call(AUDIT_PRUNE, Pruning())

    assert fleet.one("select id from audit_log") == unsealed


FORGED = (
    "insert into audit_checkpoints (team_id, id, month, first_position, last_position, last_hash, rows)"
    " select team_id, new_id(), '2020-01-01', 1, position, hash, 3 from audit_seals where position = 2"
)


@pytest.mark.parametrize("forged", ["", FORGED], ids=["without a checkpoint", "with a forged one"])
async def test_a_month_dropped_by_hand_is_damage(repository: Repository, fleet: Fleet, forged: str) -> None:
    two_old_months(fleet)
    fleet.execute("drop table audit_log_2020_01")
    if forged:
        fleet.execute(forged)

    damage = (await whole(repository)).damage

    assert damage is not None
    assert damage.kind is DamageKind.DROPPED
    assert "2020-01" in damage.message


async def test_a_month_dropped_by_hand_is_damage_though_another_was_dropped_rightly(
    repository: Repository, fleet: Fleet
) -> None:
    two_old_months(fleet)
    await repository.call(AUDIT_PRUNE, Pruning())
    seal(fleet)
    fleet.execute("drop table audit_log_2020_02")

    damage = (await whole(repository)).damage

    assert damage is not None
    assert (damage.kind, damage.position) == (DamageKind.DROPPED, 3)
    assert "2020-02" in damage.message


PUT_IN = """
    insert into audit_log (team_id, id, xid, seq, actor_type, actor_label, action, resource_type, resource_id,
                           event_hash, created_at)
    select %s, new_id(), coalesce(min(s.audit_xid), '4'), 1, 'system', 'agent-console', 'job.create', 'job',
           'job_x', sha256('x'), now()
      from audit_seals s where s.position = %s
    returning id
"""


@pytest.mark.parametrize("how_many", [1, 2])
async def test_acts_put_in_do_not_pass_for_those_that_went_with_their_month(
    repository: Repository, fleet: Fleet, how_many: int
) -> None:
    """One act of January lies among those of February, and is rightly gone."""
    two_old_months(fleet)
    await repository.call(AUDIT_PRUNE, Pruning())
    seal(fleet)
    assert (await whole(repository)).damage is None
    put_in = {fleet.one(PUT_IN, fleet.team_id(), 5) for _ in range(how_many)}

    damage = (await whole(repository)).damage

    assert damage is not None
    assert damage.kind is DamageKind.INSERTED
    assert damage.audit_id in put_in


async def test_an_act_put_in_is_found_though_everything_else_was_dropped(
    repository: Repository, fleet: Fleet
) -> None:
    old_act(fleet, JANUARY)
    seal(fleet)
    await repository.call(AUDIT_PRUNE, Pruning())
    put_in = fleet.one(PUT_IN, fleet.team_id(), 99)

    damage = (await whole(repository)).damage

    assert damage is not None
    assert (damage.kind, damage.audit_id) == (DamageKind.INSERTED, put_in)


async def test_of_two_acts_of_one_transaction_the_missing_one_is_named(
    repository: Repository, fleet: Fleet
) -> None:
    both = "from (select append_audit(%s, 'human', %s, null, 'Ana', 'job.create', 'job', 'job_' || n) as id"
    acts = fleet.execute(
        f"select id {both} from generate_series(1, 2) as n) as made",
        *(fleet.team_id(), fleet.user_id("ana@example.com")),
    )
    seal(fleet)
    fleet.execute("set session_replication_role = replica")
    fleet.execute("delete from audit_log where id = %s", *acts[1])
    fleet.execute("set session_replication_role = origin")

    damage = (await whole(repository)).damage

    assert damage is not None
    assert (damage.kind, damage.audit_id) == (DamageKind.MISSING, *acts[1])


AWAITED = "select pid from pg_locks where not granted and relation = %s::regclass"


async def test_a_month_whose_checkpoint_comes_while_it_is_looked_at_is_to_be_verified_again(
    repository: Repository, fleet: Fleet
) -> None:
    """First nobody may read the acts, then nobody may read who is who: so the checkpoint can come in between."""
    two_old_months(fleet)
    fleet.execute("drop table audit_log_2020_01")

    async with (
        await psycopg.AsyncConnection.connect(fleet.administration) as of_acts,
        await psycopg.AsyncConnection.connect(fleet.administration) as of_people,
    ):
        await of_acts.execute("lock table audit_log")
        verifying = asyncio.create_task(whole(repository, after=f"0.{bytes(32).hex()}"))
        await until(lambda: bool(fleet.execute(AWAITED, "audit_log")))
        await of_people.execute("lock table users")
        await of_acts.commit()
        await until(lambda: bool(fleet.execute(AWAITED, "users")))
        fleet.execute(FORGED)
        await of_people.commit()

    with pytest.raises(Conflict, match="was dropped while it was proved"):
        await verifying


CHECKPOINT = {
    "team_id": "new_id()",
    "id": "new_id()",
    "month": "'2019-12-01'",
    "first_position": "first_position - 1",
    "last_position": "last_position + 1",
    "last_hash": "sha256('x')",
    "rows": "rows + 1",
    "created_at": "created_at - interval '1 microsecond'",
}


async def test_a_changed_checkpoint_is_found_whatever_was_changed(repository: Repository, fleet: Fleet) -> None:
    two_old_months(fleet)
    await repository.call(AUDIT_PRUNE, Pruning())
    seal(fleet)
    fleet.execute("create table kept as select * from audit_checkpoints")
    before = (await whole(repository)).damage

    unnoticed = []
    for column, value in CHECKPOINT.items():
        fleet.execute("set session_replication_role = replica")
        fleet.execute(f"update audit_checkpoints set {column} = {value}")
        if (await whole(repository)).damage is None:
            unnoticed.append(column)
        fleet.execute("delete from audit_checkpoints")
        fleet.execute("insert into audit_checkpoints select * from kept")
        fleet.execute("set session_replication_role = origin")

    columns = "select attname from pg_attribute where attrelid = 'audit_checkpoints'::regclass and attnum > 0"
    assert (before, unnoticed) == (None, [])
    assert {row[0] for row in fleet.execute(columns)} == CHECKPOINT.keys()


@pytest.mark.rule("R002-120")
async def test_the_duty_drops_what_is_due_and_the_seals_that_nothing_is_left_of(fleet: Fleet) -> None:
    two_old_months(fleet)
    fleet.execute("select pg_advisory_unlock_all()")
    backend = Backend(fleet.working)

    pruned_rows = await PRUNE_AUDIT.round(backend)
    again = await PRUNE_AUDIT.round(backend)
    await backend.close()

    assert (pruned_rows, again) == (2 + 5, 0)
    assert fleet.execute("select position from audit_seals order by position") == [(6,)]
    assert fleet.execute("select distinct actor_type from audit_log where action = 'audit.prune'") == [("system",)]
