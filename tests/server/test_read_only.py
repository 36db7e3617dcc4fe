"""A session that must not change anything is kept to its word by the server, whatever its caller may do."""

import pytest

from agent_console.domain.errors import Forbidden
from agent_console.domain.jobs import JobQuery, NewJob
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.operations import JOBS_CREATE, JOBS_LIST, OPERATIONS
from tests.support.fleet import Fleet
from tests.support.serving import serving

NEW = NewJob(type="report", payload={"month": "2026-10"})


@pytest.mark.parametrize("read_only", [True, False])
async def test_an_administrator_s_read_only_session_reads_and_is_refused_every_act(
    fleet: Fleet, read_only: bool
) -> None:
    ((before,),) = fleet.execute("select count(*) from jobs")
    async with (
        serving(fleet.working) as url,
        HttpRepository(url, fleet.token("ana@example.com"), read_only=read_only) as session,
    ):
        page = await session.call(JOBS_LIST, JobQuery())
        if read_only:
            with pytest.raises(Forbidden, match="read-only"):
                await session.call(JOBS_CREATE, NEW)
        else:
            await session.call(JOBS_CREATE, NEW)

    ((after,),) = fleet.execute("select count(*) from jobs")
    assert page.items
    assert int(str(after)) == int(str(before)) + (not read_only)


def test_every_act_of_a_person_is_one_that_is_refused_so() -> None:
    unaudited = {operation.name for operation in OPERATIONS if operation.changes and operation.audit is None}

    assert unaudited - {"approvals.look"} == {
        *("heartbeat.send", "heartbeat.disconnect", "claims.take"),
        *(
            "jobs.start",
            "jobs.renew",
            "jobs.progress",
            "jobs.log",
            "jobs.complete",
            "jobs.fail",
            "jobs.acknowledge",
        ),
    }, "what only agents do, and that somebody looks, are no acts"
