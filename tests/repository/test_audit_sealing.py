"""Sealing: in the order of transactions, once, by one at a time, and whole whatever happens meanwhile."""

import hashlib
import struct
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from uuid import UUID

import psycopg
import pytest

from agent_console.domain.audit_proof import Verification, Verified
from agent_console.domain.ids import TeamId
from agent_console.repository.operations.audit_trail import AUDIT_VERIFY
from agent_console.repository.postgres.audit.sealing import SEAL_ACTS
from agent_console.repository.postgres.identify import by_name
from agent_console.repository.postgres.repository import Backend, PostgresRepository
from tests.support.fleet import Fleet
from tests.support.trail import act, old_act, seal

CHAIN = (
    "select position, audit_id, audit_created_at, audit_seq, audit_xid::text::bigint, event_hash, prev_hash,"
    " sealed_at, hash from audit_seals where team_id = %s order by position"
)
EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
KINDS = {UUID: 2950, int: 20, datetime: 1184, bytes: 17}
XID = 5069


@pytest.fixture
async def backend(fleet: Fleet) -> AsyncIterator[Backend]:
    backend = Backend(fleet.working)
    yield backend
    await backend.close()


async def verified(backend: Backend) -> Verified:
    repository = PostgresRepository(backend, by_name("example", None))
    return await repository.call(AUDIT_VERIFY, Verification())


def value_sent(value: object) -> bytes:
    match value:
        case UUID():
            return value.bytes
        case int():
            return struct.pack(">q", value)
        case datetime():
            return struct.pack(">q", round((value - EPOCH).total_seconds() * 1_000_000))
    assert isinstance(value, bytes)
    return value


def link_hash(team_id: TeamId, *values: object) -> bytes:
    """The form of a seal, written down a second time."""
    sent = [(KINDS[UUID], team_id.bytes)]
    for place, value in enumerate(values):
        kind = XID if place == 4 else next(kind for known, kind in KINDS.items() if isinstance(value, known))
        sent.append((kind, value_sent(value)))
    parts = [struct.pack(">i", len(sent)), *(struct.pack(">Ii", kind, len(body)) + body for kind, body in sent)]
    return hashlib.sha256(b"".join(parts)).digest()


@pytest.mark.rule("R002-90")
async def test_a_round_seals_every_team_and_each_link_holds_the_one_before(fleet: Fleet, backend: Backend) -> None:
    other = fleet.add_team("other")
    ours = [act(fleet, resource=f"job_{number}") for number in range(4)]
    theirs = [act(fleet, team_id=other) for _ in range(2)]

    sealed = await SEAL_ACTS.round(backend)
    again = await SEAL_ACTS.round(backend)

    assert (sealed, again) == (6, 0)
    for team_id, acts in ((fleet.team_id(), ours), (other, theirs)):
        chain, prev = fleet.execute(CHAIN, team_id), bytes(32)
        assert [seal[1] for seal in chain] == acts
        for number, seal_row in enumerate(chain, start=1):
            assert (seal_row[0], seal_row[6]) == (number, prev)
            assert seal_row[-1] == link_hash(team_id, *seal_row[:-1])
            prev = value_sent(seal_row[-1])
        assert fleet.one("select hash from audit_heads where team_id = %s", team_id) == prev


@pytest.mark.rule("R002-90")
async def test_who_commits_late_is_sealed_before_those_who_began_later(fleet: Fleet, backend: Backend) -> None:
    first = act(fleet)
    with psycopg.connect(fleet.administration) as slow:
        team_id, ana = fleet.team_id(), fleet.user_id("ana@example.com")
        late = slow.execute(
            "select append_audit(%s, 'human', %s, null, 'Ana', 'job.create', 'job', 'job_late')", (team_id, ana)
        ).fetchone()
        quick = act(fleet)
        assert late is not None

        while_open = (await SEAL_ACTS.round(backend), (await verified(backend)).unsealed)
        slow.commit()
    afterwards = await SEAL_ACTS.round(backend)

    assert while_open == (1, 1)
    assert afterwards == 2
    assert [row[1] for row in fleet.execute(CHAIN, team_id)] == [first, late[0], quick]
    assert (await verified(backend)).damage is None


async def test_of_two_sealers_one_seals_and_the_other_yields(fleet: Fleet, backend: Backend) -> None:
    act(fleet)
    with psycopg.connect(fleet.working) as one:
        begun = one.execute("select seal_audit(%s, 10)", (fleet.team_id(),)).fetchone()
        act(fleet)

        meanwhile = await SEAL_ACTS.round(backend)
        one.commit()

    assert (begun, meanwhile) == ((1,), 0)
    assert await SEAL_ACTS.round(backend) == 1
    assert (await verified(backend)).damage is None


async def test_a_sealer_that_is_killed_leaves_nothing_half(fleet: Fleet, backend: Backend) -> None:
    acts = [act(fleet) for _ in range(3)]
    killed = psycopg.connect(fleet.working)
    killed.execute("select seal_audit(%s, 2)", (fleet.team_id(),))

    fleet.execute("select pg_terminate_backend(%s, 10000)", killed.info.backend_pid)
    with pytest.raises(psycopg.OperationalError):
        killed.commit()
    left = fleet.execute("select position from audit_seals union all select position from audit_heads")
    sealed = seal(fleet)

    assert (left, sealed) == ([], 3)
    assert [row[1] for row in fleet.execute(CHAIN, fleet.team_id())] == acts


async def test_sealing_catches_up_in_batches(
    fleet: Fleet, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_console.repository.postgres.audit.sealing.BATCH", 2)
    for _ in range(5):
        act(fleet)

    sealed = await SEAL_ACTS.round(backend)

    assert sealed == 5
    assert (await verified(backend)).position == 5


async def test_an_old_month_is_sealed_like_any_other(fleet: Fleet, backend: Backend) -> None:
    old = old_act(fleet, datetime(2020, 1, 31, 23, 59, tzinfo=UTC))

    sealed = await SEAL_ACTS.round(backend)

    assert sealed == 1
    assert fleet.one("select audit_id from audit_seals") == old
