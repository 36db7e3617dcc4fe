"""The trail of a team is proved by itself: whatever another team's trail in the same database looks like."""

import pytest

from agent_console.domain.audit_proof import DamageKind, Verification
from agent_console.domain.ids import TeamId
from agent_console.repository.operations.audit_trail import AUDIT_VERIFY
from agent_console.repository.port import Repository
from tests.support.fleet import Fleet
from tests.support.trail import act, seal

CHECKPOINT = """
    insert into audit_checkpoints (team_id, id, month, first_position, last_position, last_hash, rows)
    values (%s, new_id(), '2020-01-01', 1, 2, sha256('theirs'), 2)
"""
AGAIN = """
    insert into audit_log (team_id, id, xid, seq, actor_type, actor_label, action, resource_type, resource_id,
                           event_hash, created_at)
    select team_id, new_id(), {xid}, seq, 'system', 'agent-console', action, resource_type, resource_id,
           event_hash, created_at
      from audit_log where team_id = %s order by seq limit 1 returning id
"""
TO_COME = AGAIN.format(xid="'9000000000'::xid8")
LATER = AGAIN.format(xid="xid")
BESIDE = LATER.replace("where team_id = %s order by seq limit 1", "where id = %s")


@pytest.fixture
def theirs(fleet: Fleet) -> TeamId:
    """Nobody seals theirs: acts beside ours, one of a transaction still to come; and a month was dropped."""
    neighbours = fleet.add_team("neighbours")
    for team_id in (neighbours, fleet.team_id(), neighbours, fleet.team_id(), neighbours, fleet.team_id()):
        act(fleet, team_id=team_id)
    assert seal(fleet) == 3
    longest = fleet.add_team("longest")
    for _ in range(5):
        act(fleet, team_id=longest)
    assert seal(fleet, longest) == 5
    fleet.execute(CHECKPOINT, neighbours)
    fleet.execute(TO_COME, neighbours)
    return neighbours


async def test_ours_holds_whatever_theirs_looks_like(repository: Repository, fleet: Fleet, theirs: TeamId) -> None:
    proved = await repository.call(AUDIT_VERIFY, Verification())

    assert (proved.damage, proved.done, proved.position, proved.unsealed) == (None, 3, 3, 0)


async def test_what_was_put_into_ours_is_named_and_not_what_lies_in_theirs(
    repository: Repository, fleet: Fleet, theirs: TeamId
) -> None:
    put_in = fleet.one(LATER, fleet.team_id())

    proved = await repository.call(AUDIT_VERIFY, Verification())

    assert proved.damage is not None
    assert (proved.damage.kind, proved.damage.audit_id) == (DamageKind.INSERTED, put_in)


async def test_a_first_seal_that_was_changed_is_not_taken_for_theirs(
    repository: Repository, fleet: Fleet, theirs: TeamId
) -> None:
    """Every chain begins with the same hash, so a first seal of theirs follows from where ours begins too."""
    by_the_owner(fleet, "update audit_seals set prev_hash = sha256('x') where position = 1")

    damage = (await repository.call(AUDIT_VERIFY, Verification())).damage

    assert damage is not None
    assert (damage.kind, damage.position) == (DamageKind.CHANGED, 1)


async def test_a_cut_tail_is_one_though_theirs_is_longer(
    repository: Repository, fleet: Fleet, theirs: TeamId
) -> None:
    by_the_owner(fleet, "delete from audit_seals where position = 3")

    damage = (await repository.call(AUDIT_VERIFY, Verification())).damage

    assert damage is not None
    assert (damage.kind, damage.position) == (DamageKind.CUT, 3)


async def test_a_proof_goes_on_from_our_own_act_and_not_from_theirs(repository: Repository, fleet: Fleet) -> None:
    """Theirs at the same position came later: what was put in between the two would be passed over."""
    ours, neighbours = fleet.team_id(), fleet.add_team("neighbours")
    acts = [act(fleet, team_id=team) for team in (ours, ours, ours, neighbours, neighbours, ours)]
    assert (seal(fleet, neighbours), seal(fleet)) == (2, 4)
    put_in = fleet.one(BESIDE, acts[2])

    first = await repository.call(AUDIT_VERIFY, Verification(batch_size=2))
    second = await repository.call(AUDIT_VERIFY, Verification(batch_size=2, after=first.next))

    assert first.damage is None
    assert second.damage is not None
    assert (second.damage.kind, second.damage.audit_id) == (DamageKind.INSERTED, put_in)


def by_the_owner(fleet: Fleet, change: str) -> None:
    """Of our own chain."""
    fleet.execute("set session_replication_role = replica")
    fleet.execute(f"{change} and team_id = %s", fleet.team_id())
    fleet.execute("set session_replication_role = origin")
