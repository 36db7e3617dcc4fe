"""The line a proof comes by: whatever the address or the surroundings say of it, the same is proved."""

import asyncio

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from agent_console.domain.audit_proof import Verification
from agent_console.domain.audit_trail import AuditQuery
from agent_console.repository.operations.audit_trail import AUDIT_LIST, AUDIT_VERIFY
from agent_console.repository.postgres.audit.links import GENESIS, Link, Stretch, prove
from agent_console.repository.postgres.repository import open_direct
from tests.support.fleet import Fleet
from tests.support.locks import somebody_waits_for_a_lock
from tests.support.trail import act, seal


def with_options(dsn: str, setting: str) -> str:
    return make_conninfo(dsn, options=f"{conninfo_to_dict(dsn)['options']} -c {setting}")


@pytest.mark.parametrize("said_by", ["the surroundings", "the address", "its options"])
async def test_words_are_read_and_proved_as_they_were_written_whatever_encoding_is_asked_for(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, said_by: str
) -> None:
    words, dsn = "déjà vu, 馬", fleet.working
    act(fleet, resource="job_é", reason=words, facts={"type": "é"})
    seal(fleet)
    act(fleet, resource="job_é", reason=words, facts={"type": "é"})
    if said_by == "the surroundings":
        monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    elif said_by == "the address":
        dsn = make_conninfo(dsn, client_encoding="LATIN1")
    else:
        dsn = with_options(dsn, "client_encoding=LATIN1")

    async with open_direct(dsn, team="example") as repository:
        read = await repository.call(AUDIT_LIST, AuditQuery())
        proved = await repository.call(AUDIT_VERIFY, Verification())

    assert [row.reason for row in read.items] == [words, words]
    assert (proved.damage, proved.done, proved.unsealed) == (None, 1, 1)


async def test_a_proof_has_its_own_patience_whatever_others_are_granted(fleet: Fleet) -> None:
    act(fleet)
    seal(fleet)
    hasty, beginning = with_options(fleet.working, "statement_timeout=1ms"), Link(0, GENESIS)

    async def proving() -> Stretch:
        return await asyncio.to_thread(prove, hasty, fleet.team_id(), beginning, 1)

    async with await psycopg.AsyncConnection.connect(fleet.administration) as somebody:
        await somebody.execute("lock table audit_log")
        begun = asyncio.create_task(proving())
        await somebody_waits_for_a_lock(fleet, task=begun)
        await somebody.commit()

    assert (await begun).last.position == 1
