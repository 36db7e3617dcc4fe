"""What holds a chain whose beginning was dropped: checkpoints, the acts that tell of them, a kept seal."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from agent_console.domain.audit_proof import Damage, DamageKind, Pruning
from agent_console.domain.audit_trail import KeptSeal
from agent_console.domain.errors import Invalid
from agent_console.repository.operations.audit_trail import AUDIT_PRUNE
from agent_console.repository.postgres.duties.audit_months import PRUNE_AUDIT
from agent_console.repository.postgres.identify import by_name
from agent_console.repository.postgres.repository import Backend, PostgresRepository
from tests.repository.test_contract_audit_proof import JANUARY, pruned, two_old_months, whole
from tests.support.fleet import Fleet
from tests.support.trail import act, old_act, seal

MARCH = datetime(2020, 3, 10, tzinfo=UTC)
CUT, END = 5, 8
"""The two old months are dropped up to the first; the second is the last of the two acts that tell of it."""
HASHED = """
    update audit_log a set event_hash = audit_event_hash(
        a.form, a.team_id, a.id, a.created_at, a.actor_type, a.actor_user_id, a.actor_agent_id, a.actor_label,
        a.action, a.resource_type, a.resource_id, a.thread_id, a.run_id, a.decision, a.reason, a.ip, a.user_agent,
        a.metadata)
"""
FEBRUARY_FORGED = """
    insert into audit_checkpoints (team_id, id, month, first_position, last_position, last_hash, rows, created_at)
    select team_id, new_id(), '2020-02-01', 3, position, hash, 2, %s from audit_seals where position = 5
"""
THIS_MONTH_OF_ANOTHER_TEAM = """
    insert into audit_checkpoints (team_id, id, month, first_position, last_position, last_hash, rows)
    values (%s, new_id(), date_trunc('month', now() at time zone 'UTC'), 1, 1, sha256('theirs'), 1)
"""


@pytest.fixture
async def backend(fleet: Fleet) -> AsyncIterator[Backend]:
    backend = Backend(fleet.working)
    yield backend
    await backend.close()


@pytest.fixture
def repository(backend: Backend) -> PostgresRepository:
    return PostgresRepository(backend, by_name("example", None))


@pytest.fixture
async def dropped(fleet: Fleet, repository: PostgresRepository) -> None:
    """January and February, by two acts which are sealed."""
    two_old_months(fleet)
    await pruned(repository)
    assert seal(fleet) == END - CUT - 1


def by_the_owner(fleet: Fleet, *changes: str) -> None:
    fleet.execute("set session_replication_role = replica")
    for change in changes:
        fleet.execute(change)
    fleet.execute("set session_replication_role = origin")


async def found(repository: PostgresRepository, kept: KeptSeal | None = None) -> Damage | None:
    return (await whole(repository, seal=None if kept is None else kept.model_dump(mode="json"))).damage


def kept_seal(fleet: Fleet, position: int) -> KeptSeal:
    places = (
        "select position, hash from audit_seals"
        " union select last_position, last_hash from audit_checkpoints where last_position = 5"
    )
    digest = fleet.one(f"select encode(hash, 'hex') from ({places}) as kept where position = %s", position)
    return KeptSeal(team_id=fleet.team_id(), position=position, hash=str(digest))


async def test_a_checkpoint_holds_when_the_act_that_tells_of_it_was_dropped_too(
    fleet: Fleet, repository: PostgresRepository
) -> None:
    """January was dropped in March, and March later on."""
    two_old_months(fleet)
    old_act(fleet, MARCH)
    seal(fleet)
    await repository.call(AUDIT_PRUNE, Pruning())
    by_the_owner(
        fleet,
        f"update audit_log set created_at = '{MARCH}' where action = 'audit.prune'",
        f"update audit_checkpoints set created_at = '{MARCH}'",
        HASHED,
    )
    seal(fleet)
    in_march = await found(repository)

    later = await pruned(repository)
    seal(fleet)

    assert (in_march, later.done, await found(repository)) == (None, 2, None)
    assert fleet.execute("select resource_id from audit_log where action = 'audit.prune' order by seq") == [
        ("2020-02",), ("2020-03",),
    ]  # fmt: skip


async def test_the_newest_checkpoint_is_not_excused_by_a_month_that_was_dropped(
    fleet: Fleet, repository: PostgresRepository
) -> None:
    two_old_months(fleet)
    await repository.call(AUDIT_PRUNE, Pruning())
    seal(fleet)
    fleet.execute("drop table audit_log_2020_02")
    fleet.execute(FEBRUARY_FORGED, JANUARY)

    damage = await found(repository)

    assert damage is not None
    assert (damage.kind, damage.position) == (DamageKind.DROPPED, CUT)
    assert "the checkpoint of 2020-02" in damage.message


@pytest.mark.usefixtures("dropped")
async def test_an_older_checkpoint_is_excused_only_when_its_own_act_was_dropped(
    fleet: Fleet, repository: PostgresRepository
) -> None:
    """Its act was written this month, which only another team has dropped."""
    fleet.execute(THIS_MONTH_OF_ANOTHER_TEAM, fleet.add_team("other"))
    before = await found(repository)

    by_the_owner(fleet, "update audit_checkpoints set rows = rows + 1 where month = '2020-01-01'")

    damage = await found(repository)
    assert before is None
    assert damage is not None
    assert (damage.kind, damage.position) == (DamageKind.DROPPED, 2)
    assert "the checkpoint of 2020-01" in damage.message


@pytest.mark.usefixtures("dropped")
async def test_a_checkpoint_that_was_taken_away_is_missed(fleet: Fleet, repository: PostgresRepository) -> None:
    before = await found(repository)

    by_the_owner(fleet, "delete from audit_checkpoints where month = '2020-01-01'")

    damage = await found(repository)
    assert before is None
    assert damage is not None
    assert (damage.kind, damage.position) == (DamageKind.DROPPED, CUT)
    assert "the checkpoint of 2020-02" in damage.message


async def test_a_chain_does_not_end_before_what_was_dropped(
    fleet: Fleet, backend: Backend, repository: PostgresRepository
) -> None:
    old_act(fleet, JANUARY)
    seal(fleet)
    await PRUNE_AUDIT.round(backend)
    before = await found(repository)

    by_the_owner(fleet, "update audit_heads set position = 0")

    damage = await found(repository)
    assert before is None
    assert damage is not None
    assert (damage.kind, damage.position) == (DamageKind.DROPPED, 1)


@pytest.mark.parametrize(
    "change",
    [
        "team_id = (select id from teams where name = 'other')",
        "action = 'job.create'",
        "resource_type = 'month'",
        "resource_id = '2020-02'",
        "metadata = metadata || '{\"rows\": 4}'",
    ],
)
async def test_what_a_checkpoint_says_has_to_stand_in_the_trail(
    fleet: Fleet, repository: PostgresRepository, change: str
) -> None:
    """Of an act that is not sealed yet the owner can make another that holds."""
    fleet.add_team("other")
    two_old_months(fleet)
    await repository.call(AUDIT_PRUNE, Pruning())
    before = await found(repository)

    by_the_owner(fleet, f"update audit_log set {change} where action = 'audit.prune'", HASHED)

    damage = await found(repository)
    assert before is None
    assert damage is not None
    assert damage.kind is DamageKind.DROPPED
    assert "the checkpoint of 2020-01" in damage.message


@pytest.mark.usefixtures("dropped")
@pytest.mark.parametrize("position", [CUT, END], ids=["where the chain begins now", "the last"])
async def test_a_seal_that_was_kept_proves_the_rest(
    fleet: Fleet, repository: PostgresRepository, position: int
) -> None:
    kept = kept_seal(fleet, position)
    of_another_chain = kept.model_copy(update={"hash": "0" * 64})

    damage = await found(repository, of_another_chain)

    assert await found(repository, kept) is None
    assert damage is not None
    assert (damage.kind, damage.position) == (DamageKind.FORKED, position)


@pytest.mark.usefixtures("dropped")
async def test_a_seal_of_what_was_dropped_proves_nothing_any_more(
    fleet: Fleet, repository: PostgresRepository
) -> None:
    kept = kept_seal(fleet, CUT - 1)

    with pytest.raises(Invalid, match="of position 4; everything up to 5 was dropped since"):
        await found(repository, kept)


@pytest.mark.usefixtures("dropped")
async def test_a_kept_seal_whose_place_is_empty_leaves_it_to_the_proof(
    fleet: Fleet, repository: PostgresRepository
) -> None:
    kept = kept_seal(fleet, END - 1)
    by_the_owner(fleet, f"delete from audit_seals where position = {END - 1}")

    damage = await found(repository, kept)

    assert damage is not None
    assert (damage.kind, damage.position) == (DamageKind.MISSING, END - 1)


async def test_a_kept_seal_is_compared_with_the_chain_of_its_own_team(fleet: Fleet, backend: Backend) -> None:
    teams = {"example": fleet.team_id(), "other": fleet.add_team("other")}
    for team_id in teams.values():
        act(fleet, team_id=team_id)
        seal(fleet, team_id)

    for slug, team_id in teams.items():
        digest = fleet.one("select encode(hash, 'hex') from audit_seals where team_id = %s", team_id)
        kept = KeptSeal(team_id=team_id, position=1, hash=str(digest))
        assert await found(PostgresRepository(backend, by_name(slug, None)), kept) is None
