"""A trail restored into another cluster, which counts its transactions anew: it is sealed on, and still proved."""

from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from agent_console.domain.audit_proof import DamageKind, Verification, Verified
from agent_console.domain.ids import AuditId
from agent_console.repository.operations.audit_trail import AUDIT_VERIFY
from agent_console.repository.postgres.audit.sealing import SEAL_ACTS
from agent_console.repository.postgres.identify import by_name
from agent_console.repository.postgres.repository import Backend, PostgresRepository
from tests.repository.test_audit_sealing_turns import another_at_it
from tests.support.fleet import Fleet
from tests.support.trail import act, moved_from_another_cluster, seal

AHEAD = 5_000
PARTS = (1, 2, 3, 100)
EARLIER, LATER = ("(xid::text::bigint - 1)::text::xid8", "(xid::text::bigint + 1)::text::xid8")
AGAIN = """
    insert into audit_log (team_id, id, xid, seq, actor_type, actor_label, action, resource_type, resource_id,
                           event_hash, created_at)
    select team_id, new_id(), {xid}, seq, 'system', 'agent-console', action, resource_type, resource_id,
           event_hash, created_at
      from audit_log where id = %s returning id
"""


@pytest.fixture
async def backend(fleet: Fleet) -> AsyncIterator[Backend]:
    backend = Backend(fleet.working)
    yield backend
    await backend.close()


@pytest.fixture
def acts(fleet: Fleet) -> list[AuditId]:
    """Five were written there and three here; all are sealed."""
    old = [act(fleet) for _ in range(5)]
    moved_from_another_cluster(fleet, AHEAD)
    assert seal(fleet) == 5
    new = [act(fleet) for _ in range(3)]
    assert seal(fleet) == 3
    return old + new


async def verified(backend: Backend, part: int = 100, after: str | None = None) -> Verified:
    """In parts of this size, up to the first damage."""
    repository = PostgresRepository(backend, by_name("example", None))
    while True:
        found = await repository.call(AUDIT_VERIFY, Verification(batch_size=part, after=after))
        if found.next is None:
            return found
        after = found.next


def put_in(fleet: Fleet, beside: AuditId, xid: str = "xid") -> AuditId:
    made = fleet.one(AGAIN.format(xid=xid), beside)
    assert isinstance(made, UUID)
    return AuditId.of(made)


async def test_what_was_written_there_is_sealed_before_what_is_written_here(
    fleet: Fleet, backend: Backend
) -> None:
    old = [act(fleet) for _ in range(3)]
    moved_from_another_cluster(fleet, AHEAD)
    before = seal(fleet, at_most=2)
    new = [act(fleet) for _ in range(2)]

    at_once = await verified(backend)
    rounds = [await SEAL_ACTS.round(backend) for _ in range(3)]
    at_last = await verified(backend)

    assert (before, at_once.damage, rounds) == (2, None, [1, 2, 0])
    sealed = fleet.execute("select audit_id from audit_seals order by position")
    assert [audit_id for (audit_id,) in sealed] == old + new
    assert (at_last.damage, at_last.position, at_last.unsealed) == (None, 5, 0)


async def test_who_committed_late_there_may_still_be_sealed_here(fleet: Fleet, backend: Backend) -> None:
    """The last number is of the first transaction: what is sealed first has a higher number than what follows."""
    for _ in range(3):
        act(fleet)
    fleet.execute("set session_replication_role = replica")
    fleet.execute("update audit_log set seq = 4 - seq")
    fleet.execute("set session_replication_role = origin")
    moved_from_another_cluster(fleet, AHEAD)
    assert seal(fleet, at_most=1) == 1

    at_once = await found_by(backend)

    assert (at_once, seal(fleet), await found_by(backend)) == ({None}, 2, {None})


async def test_it_is_not_sealed_again_when_its_transactions_come_round(
    fleet: Fleet, backend: Backend, acts: list[AuditId]
) -> None:
    fleet.execute(f"""
        do $$ begin
            for _ in 1 .. {AHEAD} loop perform pg_current_xact_id(); commit; end loop;
        end $$
    """)
    passed = "select max(xid) < pg_snapshot_xmin(pg_current_snapshot()) from audit_log"
    assert fleet.one(passed), "what was still to come lies in the past now"

    with another_at_it(fleet):
        assert await SEAL_ACTS.round(backend) == 0, "there is nothing to seal"
    assert seal(fleet) == 0
    proved = await verified(backend)
    assert (proved.damage, proved.unsealed) == (None, 0)


async def found_by(backend: Backend) -> set[tuple[DamageKind, AuditId | None] | None]:
    """What is found, in parts of whatever size: the same, one hopes."""
    damages = [(await verified(backend, part)).damage for part in PARTS]
    return {None if damage is None else (damage.kind, damage.audit_id) for damage in damages}


async def test_what_is_not_sealed_yet_is_no_damage(fleet: Fleet, backend: Backend, acts: list[AuditId]) -> None:
    act(fleet)

    proved = await verified(backend)
    from_the_end = await verified(backend, after=f"{proved.position}.{proved.hash}")

    assert await found_by(backend) == {None}
    assert (proved.position, proved.unsealed) == (len(acts), 1)
    assert (from_the_end.damage, from_the_end.unsealed) == (None, 1)


async def test_a_trail_of_one_act_may_be_moved_too(fleet: Fleet, backend: Backend) -> None:
    act(fleet)
    moved_from_another_cluster(fleet, AHEAD)
    act(fleet)
    assert [seal(fleet) for _ in range(2)] == [1, 1]
    assert fleet.one("select since_seq from audit_heads") == 1
    act(fleet)

    assert await found_by(backend) == {None}


@pytest.mark.parametrize(("beside", "xid"), [*((n, "xid") for n in (0, 2, 4, 5, 6, 7)), (4, LATER)])
async def test_an_act_put_in_later_is_found_on_either_side(
    fleet: Fleet, backend: Backend, acts: list[AuditId], beside: int, xid: str
) -> None:
    slipped = put_in(fleet, acts[beside], xid)

    assert await found_by(backend) == {(DamageKind.INSERTED, slipped)}


@pytest.mark.parametrize("number", ["seq", "-5"], ids=["numbered as one from there", "below all numbers"])
async def test_an_act_put_in_before_all_others_is_found(
    fleet: Fleet, backend: Backend, acts: list[AuditId], number: str
) -> None:
    slipped = put_in(fleet, acts[0], xid="'7'::xid8")
    fleet.execute("set session_replication_role = replica")
    fleet.execute(f"update audit_log set seq = {number} where id = %s", slipped)
    fleet.execute("set session_replication_role = origin")

    assert await found_by(backend) == {(DamageKind.INSERTED, slipped)}


@pytest.mark.parametrize(("beside", "xid"), [*((n, "xid") for n in (None, 0, 1, 2, 3, 5)), (1, LATER), (3, LATER)])
async def test_a_trail_that_was_moved_twice_is_proved_too(
    fleet: Fleet, backend: Backend, beside: int | None, xid: str
) -> None:
    acts = moved_twice(fleet)
    acts += [act(fleet) for _ in range(2)]
    assert seal(fleet) == 2
    act(fleet)

    found = None if beside is None else (DamageKind.INSERTED, put_in(fleet, acts[beside], xid))

    assert await found_by(backend) == {found}


async def test_as_many_acts_put_in_as_lie_elsewhere_in_a_trail_moved_twice_are_found(
    fleet: Fleet, backend: Backend
) -> None:
    """The first two acts are of later transactions than the third: up to the third lie as many as there should."""
    acts = moved_twice(fleet)
    acts += [act(fleet) for _ in range(2)]
    assert seal(fleet) == 2
    slipped = {put_in(fleet, acts[2], EARLIER) for _ in range(2)}

    assert await found_by(backend) <= {(DamageKind.INSERTED, one) for one in slipped}


async def test_a_trail_that_was_moved_twice_is_proved_before_anything_is_written_here(
    fleet: Fleet, backend: Backend
) -> None:
    acts = moved_twice(fleet)
    whole = await found_by(backend)

    slipped = put_in(fleet, acts[1], LATER)

    assert (whole, await found_by(backend)) == ({None}, {(DamageKind.INSERTED, slipped)})


def moved_twice(fleet: Fleet) -> list[AuditId]:
    acts: list[AuditId] = []
    for ahead in (2 * AHEAD, AHEAD):
        acts += [act(fleet) for _ in range(2)]
        moved_from_another_cluster(fleet, ahead)
        assert seal(fleet) == 2
    return acts
