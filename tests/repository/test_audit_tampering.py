"""Whoever owns the database can change the trail, but is found out: each kind of damage, on each column."""

from collections.abc import Iterator
from uuid import UUID

import pytest
from pytest import param

from agent_console.domain.audit import Fact
from agent_console.domain.audit_proof import Damage, DamageKind, Verification
from agent_console.domain.audit_trail import KeptSeal
from agent_console.domain.ids import AuditId, RunId, ThreadId
from agent_console.repository.operations.audit_trail import AUDIT_VERIFY
from agent_console.repository.postgres.repository import open_direct
from tests.conftest import FLEET_TEMPLATE
from tests.support.clusters import TemplateDatabase
from tests.support.fleet import Fleet
from tests.support.trail import act, seal

# One worker runs them all, so that the trail is made once.
pytestmark = [pytest.mark.xdist_group("tampering"), pytest.mark.rule("R002-90")]

ACTS = 12
VICTIM = 6
TABLES = ("audit_log", "audit_seals", "audit_heads", "audit_checkpoints")
C, M, I, R, F, CUT = (  # noqa: E741
    *(DamageKind.CHANGED, DamageKind.MISSING, DamageKind.INSERTED),
    *(DamageKind.REORDERED, DamageKind.FORKED, DamageKind.CUT),
)


@pytest.fixture(scope="module")
def sealed(templates: TemplateDatabase) -> Iterator[Fleet]:
    """A sealed trail in which every column that may be empty is not, and a copy to mend it from."""
    templates.clone(FLEET_TEMPLATE, "tampering")
    with Fleet(templates.cluster.dsn("tampering")) as fleet:
        for number in range(ACTS):
            told: dict[str, Fact] = {
                "type": "report",
                "priority": number,
                "scheduled": False,
                "collection_id": None,
            }
            act(
                fleet,
                resource=f"job_{number}",
                facts=told,
                thread_id=ThreadId.new(),
                run_id=RunId.new(),
                decision="allow",
                reason="asked for",
            )
        assert seal(fleet) == ACTS
        for table in TABLES:
            fleet.execute(f"create table kept_{table} as select * from {table}")
        yield fleet
    templates.drop("tampering")


@pytest.fixture
def fleet(sealed: Fleet) -> Iterator[Fleet]:
    """Nothing stops whoever has this."""
    sealed.execute("set session_replication_role = replica")
    yield sealed
    for table in TABLES:
        sealed.execute(f"delete from {table}")
        sealed.execute(f"insert into {table} select * from kept_{table}")
    sealed.execute("set session_replication_role = origin")


async def damage(fleet: Fleet, seal: KeptSeal | None = None, batch_size: int = 7) -> Damage | None:
    """Proved in parts, as a long trail is."""
    asked = Verification(batch_size=batch_size, seal=seal)
    async with open_direct(fleet.working, team="example") as repository:
        while True:
            part = await repository.call(AUDIT_VERIFY, asked)
            if part.next is None or part.damage is not None:
                return part.damage
            asked = asked.model_copy(update={"after": part.next})


def victim(fleet: Fleet, position: int = VICTIM) -> AuditId:
    found = fleet.one("select audit_id from kept_audit_seals where position = %s", position)
    assert isinstance(found, UUID)
    return AuditId.of(found)


async def test_an_untouched_trail_holds(fleet: Fleet) -> None:
    assert await damage(fleet) is None
    assert await damage(fleet, batch_size=100) is None


OF_THE_ACT = {
    "team_id": ("new_id()", M),
    "id": ("new_id()", C),
    "seq": ("seq + 1000", C),
    "xid": ("(xid::text::bigint - 1)::text::xid8", C),
    "actor_type": ("'system', actor_user_id = null, ip = null, user_agent = null", C),
    "actor_user_id": ("new_id()", C),
    "actor_agent_id": ("new_id(), actor_user_id = null, actor_type = 'agent', ip = null, user_agent = null", C),
    "actor_label": ("'Ole'", C),
    "action": ("'job.delete'", C),
    "resource_type": ("'agent'", C),
    "resource_id": ("'job_other'", C),
    "thread_id": ("null", C),
    "run_id": ("new_id()", C),
    "decision": ("'block'", C),
    "reason": ("''", C),
    "ip": ("'192.0.2.1'", C),
    "user_agent": ("'curl'", C),
    "metadata": ("jsonb_set(metadata, '{priority}', '\"5\"')", C),
    "form": ("2", C),
    "event_hash": ("sha256('x')", C),
    "created_at": ("created_at - interval '1 microsecond'", C),
}
OF_THE_SEAL = {
    "team_id": ("new_id()", M),
    "position": ("1000", M),
    "audit_id": ("new_id()", C),
    "audit_created_at": ("audit_created_at - interval '1 microsecond'", C),
    "audit_seq": ("audit_seq + 1000", C),
    "audit_xid": ("'7'", C),
    "event_hash": ("sha256('x')", C),
    "prev_hash": ("sha256('x')", C),
    "hash": ("sha256('x')", C),
    "sealed_at": ("sealed_at - interval '1 microsecond'", C),
}


WORDS = {
    "team_id": "it was sealed, and it is gone",
    **dict.fromkeys(("id", "created_at"), "its id or its time was changed after it was sealed"),
    **dict.fromkeys(("seq", "xid"), "its number or its transaction was changed after it was sealed"),
    "event_hash": "its hash is not the one that was sealed",
}
ANYTHING_ELSE = "it was changed after it was written: its hash does not fit"


@pytest.mark.parametrize("column", OF_THE_ACT)
async def test_a_changed_act_is_found(fleet: Fleet, column: str) -> None:
    value, kind = OF_THE_ACT[column]
    fleet.execute(f"update audit_log set {column} = {value} where id = %s", victim(fleet))

    found = await damage(fleet)

    assert found is not None
    assert (found.kind, found.position, found.audit_id) == (kind, VICTIM, victim(fleet)), found.message
    assert found.message == f"{victim(fleet)}: {WORDS.get(column, ANYTHING_ELSE)}"


NESTED = """('{"type": ' || repeat('[', 5000) || repeat(']', 5000) || '}')::jsonb"""


async def test_facts_too_deep_to_be_read_are_found(fleet: Fleet) -> None:
    fleet.execute(f"update audit_log set metadata = {NESTED} where id = %s", victim(fleet))

    found = await damage(fleet)

    assert found is not None
    assert (found.kind, found.position, found.audit_id) == (C, VICTIM, victim(fleet)), found.message


@pytest.mark.parametrize("column", OF_THE_SEAL)
async def test_a_changed_seal_is_found(fleet: Fleet, column: str) -> None:
    value, kind = OF_THE_SEAL[column]
    fleet.execute(f"update audit_seals set {column} = {value} where position = %s", VICTIM)

    found = await damage(fleet)

    assert found is not None
    assert (found.kind, found.position) == (kind, VICTIM), found.message


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        param("update audit_heads set position = position + 1", CUT, id="position up"),
        param("update audit_heads set position = position - 1", C, id="position down"),
        param("update audit_heads set hash = sha256('x')", C, id="hash"),
        param("update audit_heads set team_id = new_id()", C, id="team_id"),
        param("delete from audit_heads", C, id="gone"),
    ],
)
async def test_a_changed_end_is_found(fleet: Fleet, change: str, kind: DamageKind) -> None:
    fleet.execute(change)

    found = await damage(fleet)

    assert found is not None
    assert found.kind is kind, found.message


def test_every_column_is_tried(fleet: Fleet) -> None:
    columns = "select attname from pg_attribute where attrelid = %s::regclass and attnum > 0"

    assert {row[0] for row in fleet.execute(columns, "audit_log")} == OF_THE_ACT.keys()
    assert {row[0] for row in fleet.execute(columns, "audit_seals")} == OF_THE_SEAL.keys()


@pytest.mark.parametrize("place", [1, VICTIM, ACTS], ids=["first", "middle", "last"])
async def test_a_deleted_act_is_found(fleet: Fleet, place: int) -> None:
    fleet.execute("delete from audit_log where id = %s", victim(fleet, place))

    found = await damage(fleet)

    assert found is not None
    assert (found.kind, found.position, found.audit_id) == (M, place, victim(fleet, place))


@pytest.mark.parametrize(
    ("place", "kind"),
    [param(1, M, id="first"), param(VICTIM, M, id="middle"), param(ACTS, CUT, id="last")],
)
async def test_an_act_deleted_together_with_its_seal_is_found(fleet: Fleet, place: int, kind: DamageKind) -> None:
    fleet.execute("delete from audit_log where id = %s", victim(fleet, place))
    fleet.execute("delete from audit_seals where position = %s", place)

    found = await damage(fleet)

    assert found is not None
    assert (found.kind, found.position) == (kind, place)
    assert ("and everything after it" in found.message) is (kind is CUT)


SWAPPED = {
    "acts": """
        update audit_log a set seq = b.seq, xid = b.xid from audit_log b, kept_audit_seals s, kept_audit_seals t
         where a.id = s.audit_id and b.id = t.audit_id and s.position + t.position = 15
           and s.position between 6 and 9""",
    "seals": "update audit_seals set position = 1000 + 15 - position where position in (6, 9)",
}


@pytest.mark.parametrize("what", SWAPPED)
async def test_a_swap_is_found(fleet: Fleet, what: str) -> None:
    fleet.execute(SWAPPED[what])
    fleet.execute("update audit_seals set position = position - 1000 where position > 1000")

    found = await damage(fleet)

    assert found is not None
    assert (found.kind, found.position) == (R, VICTIM), found.message


FORGE = """
    update audit_seals s
       set prev_hash = sha256('elsewhere'),
           hash = sha256(record_send(row(s.team_id, s.position, s.audit_id, s.audit_created_at, s.audit_seq,
                                         s.audit_xid, s.event_hash, sha256('elsewhere'), s.sealed_at)))
     where position = %s
"""


async def test_a_link_of_another_chain_is_found(fleet: Fleet) -> None:
    fleet.execute(FORGE, VICTIM)

    found = await damage(fleet)

    assert found is not None
    assert (found.kind, found.position) == (F, VICTIM)


def put_in(fleet: Fleet, place: int = VICTIM, xid: str = "xid", seq: str = "seq") -> AuditId:
    """An act beside a sealed one, or where its transaction and its number say."""
    copied = "actor_type, actor_label, action, resource_type, resource_id, event_hash, created_at, team_id"
    made = fleet.one(
        f"insert into audit_log ({copied}, id, xid, seq)"
        f" select 'system', {copied.removeprefix('actor_type, ')}, new_id(), {xid}, {seq} from audit_log"
        " where id = %s returning id",
        victim(fleet, place),
    )
    assert isinstance(made, UUID)
    return AuditId.of(made)


@pytest.mark.parametrize("seq", ["seq", "-5"], ids=["numbered like another", "below all numbers"])
@pytest.mark.parametrize(
    "xid",
    [
        param("xid", id="between sealed ones"),
        param("'4'::xid8", id="before all"),
        param("'0'::xid8", id="of no transaction"),
        param("'9000000000'::xid8", id="of a transaction still to come"),
    ],
)
async def test_an_act_put_in_later_is_found(fleet: Fleet, xid: str, seq: str) -> None:
    inserted = put_in(fleet, xid=xid, seq=seq)

    found = await damage(fleet)

    assert found is not None
    assert (found.kind, found.audit_id, found.position) == (I, inserted, None)


SECOND = "jsonb_build_object('action', 'job.delete', 'created_at', a.created_at + interval '1 microsecond')"
FRESH = f"{SECOND} || jsonb_build_object('xid', pg_current_xact_id()::text, 'seq', a.seq + 1000)"


@pytest.mark.parametrize("second", [SECOND, FRESH], ids=["among the old", "behind the last"])
async def test_an_act_put_in_under_a_sealed_id_is_found_and_stops_no_seal(fleet: Fleet, second: str) -> None:
    put_in = f"select (jsonb_populate_record(a, {second})).* from audit_log a where a.id = %s"
    fleet.execute(f"insert into audit_log {put_in}", victim(fleet))
    act(fleet)

    sealed, found = seal(fleet), await damage(fleet)
    assert sealed == 1
    assert found is not None
    assert (found.kind, found.audit_id) == (I, victim(fleet))


async def test_as_many_acts_put_in_as_a_wrong_count_would_hide_are_found(fleet: Fleet) -> None:
    """In parts of one act: the second part begins at position 1."""
    inserted = {put_in(fleet, 2) for _ in range(2)}

    found = await damage(fleet, batch_size=1)

    assert found is not None
    assert found.kind is I
    assert found.audit_id in inserted


async def test_a_changed_act_is_not_taken_for_one_that_bears_its_number(fleet: Fleet) -> None:
    put_in(fleet)
    fleet.execute("delete from audit_log where id = %s", victim(fleet))
    fleet.execute("insert into audit_log select * from kept_audit_log where id = %s", victim(fleet))
    fleet.execute("update audit_log set actor_label = 'Ole' where id = %s", victim(fleet))

    found = await damage(fleet)

    assert found is not None
    assert (found.kind, found.position, found.audit_id) == (C, VICTIM, victim(fleet)), found.message


async def kept_seal(fleet: Fleet, position: int = ACTS) -> KeptSeal:
    [(digest,)] = fleet.execute("select encode(hash, 'hex') from kept_audit_seals where position = %s", position)
    return KeptSeal(team_id=fleet.team_id(), position=position, hash=str(digest))


CUT_AND_HIDDEN = (
    "delete from audit_log a using audit_seals s where a.id = s.audit_id and s.position > 8",
    "delete from audit_seals where position > 8",
    "update audit_heads h set position = 8, hash = s.hash, audit_xid = s.audit_xid, audit_seq = s.audit_seq"
    " from audit_seals s where s.position = 8",
)


async def test_a_tail_cut_off_without_a_trace_is_found_by_a_seal_that_was_kept(fleet: Fleet) -> None:
    kept = await kept_seal(fleet)
    for change in CUT_AND_HIDDEN:
        fleet.execute(change)

    found, without_it = await damage(fleet, kept), await damage(fleet)

    assert found is not None
    assert (found.kind, found.position) == (CUT, 9)
    assert without_it is None, "nothing in the database itself can tell"


async def test_a_chain_sealed_anew_is_found_by_a_seal_that_was_kept(fleet: Fleet) -> None:
    kept = await kept_seal(fleet, 10)
    for change in (*CUT_AND_HIDDEN, "update audit_heads set position = 0, hash = decode(repeat('00', 32), 'hex')"):
        fleet.execute(change.replace("position > 8", "position > 0"))
    fleet.execute("update audit_heads set audit_xid = '0', audit_seq = 0")
    for number in range(ACTS):
        act(fleet, resource=f"job_{number}")
    assert seal(fleet) == ACTS

    found, without_it = await damage(fleet, kept), await damage(fleet)

    assert found is not None
    assert (found.kind, found.position) == (F, 10)
    assert without_it is None, "nothing in the database itself can tell"


async def test_a_seal_that_was_kept_and_still_fits_proves_the_trail(fleet: Fleet) -> None:
    assert await damage(fleet, await kept_seal(fleet, 10)) is None


async def test_a_change_before_the_seal_is_found_too(fleet: Fleet) -> None:
    fresh = act(fleet)
    fleet.execute("update audit_log set actor_label = 'Ole' where id = %s", fresh)

    found = await damage(fleet)

    assert found is not None
    assert (found.kind, found.audit_id, found.position) == (C, fresh, None)


async def test_what_the_database_says_of_its_own_hashing_is_not_believed(fleet: Fleet) -> None:
    """An owner may give the stored function another meaning; the proof does not ask it."""
    fleet.execute("update audit_log set actor_label = 'Ole' where id = %s", victim(fleet))
    [(function,)] = fleet.execute("select pg_get_functiondef('audit_event_hash'::regproc)")
    head = str(function).partition("RETURN sha256")[0]
    fleet.execute(f"{head} return sha256('anything')")

    found = await damage(fleet)
    fleet.execute(str(function))

    assert found is not None
    assert (found.kind, found.position) == (C, VICTIM)
