"""Threads, runs and approvals by the filter language, through both repositories."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from agent_console.domain.approvals import ApprovalHistoryQuery, ApprovalQuery
from agent_console.domain.errors import Invalid, NotFound
from agent_console.domain.ids import ApprovalId, RunId, ThreadId
from agent_console.domain.records import PageRequest
from agent_console.domain.runs import RunQuery, ThreadRunQuery
from agent_console.domain.threads import ThreadAsked, ThreadQuery
from agent_console.repository.operations import AnyOperation
from agent_console.repository.operations.approvals import APPROVALS_HISTORY, APPROVALS_LIST
from agent_console.repository.operations.runs import RUNS_IN_THREAD, RUNS_LIST
from agent_console.repository.operations.threads import THREADS_ARCHIVE, THREADS_LIST
from agent_console.repository.port import Repository
from agent_console.repository.postgres import walked_pages
from tests.support.asking import ANA, OLE, Callers
from tests.support.conversations import OTHER, add_person, add_run, add_thread, let_in
from tests.support.fleet import Fleet
from tests.support.requests_made import add_approval


async def found(
    repository: Repository, operation: AnyOperation, query: PageRequest, names: Mapping[Any, str]
) -> list[str]:
    """What the list holds, page by page to its end, each by the name that the test gave it."""
    items: list[str] = []
    while True:
        page = await repository.call(operation, query)
        items += [names[item.id] for item in page.items]
        if page.next is None:
            return items
        query = query.model_copy(update={"after": page.next})


def set_run(fleet: Fleet, run_id: RunId, status: str, error: str | None = None) -> RunId:
    fleet.execute(
        "update runs set status = %s, ended_at = case when %s then now() end, error_code = %s, error_message = %s"
        " where id = %s",
        *(status, status not in ("queued", "running"), "agent_failed" if error else None, error, run_id),
    )
    return run_id


def aged(fleet: Fleet, table: str, row_id: UUID, hours: float) -> UUID:
    """The row as if it had been made so long ago, by its time and by its id; nothing refers to it yet."""
    then = datetime.now(UTC) - timedelta(hours=hours)
    milliseconds = int(then.timestamp() * 1000)
    made = UUID(int=(milliseconds << 80) | (row_id.int & ((1 << 80) - 1)))
    fleet.execute(f"update {table} set id = %s, created_at = %s where id = %s", made, then, row_id)
    return made


async def test_threads_by_every_qualifier(crew: Callers, fleet: Fleet) -> None:
    ole, ana = await crew.person(OLE), await crew.person(ANA)
    add_person(fleet)
    plan, stock, old = (
        add_thread(fleet, title="launch plan"),
        add_thread(fleet, title="Stock count", visibility="shared"),
        add_thread(fleet, title="launch of last year"),
    )
    hidden = add_thread(fleet, OTHER, title="launch in secret")
    for thread_id in (plan, old, hidden):
        let_in(fleet, thread_id, "atlas")
    add_run(fleet, stock)
    add_run(fleet, stock, "beacon")
    add_run(fleet, hidden)
    add_run(fleet, plan, ended=True)
    add_approval(fleet, plan)
    add_approval(fleet, hidden)
    add_approval(fleet, stock, state="approved")
    await ole.call(THREADS_ARCHIVE, ThreadAsked(thread_id=old))
    names = {plan: "plan", stock: "stock", old: "old", hidden: "hidden"}

    async def finds(filter: str, *wanted: str, who: Repository = ole, **more: object) -> None:
        for limit in (200, 1):
            query = ThreadQuery.model_validate({"filter": filter, "limit": limit, **more})
            assert await found(who, THREADS_LIST, query, names) == list(wanted), filter

    await finds("LAUNCH", "plan")
    await finds("!launch", "stock")
    await finds("status:archived", "old")
    await finds("state:archived state:open launch", "old", "plan")
    await finds("!status:open", "old")
    await finds("status:open", archived="only")
    await finds("launch", "old", archived="only")
    await finds("visibility:shared", "stock")
    await finds("agent:ATLAS", "plan")
    await finds("agent:atlas agent:beacon status:open", "plan")
    await finds("!agent:atlas", "stock")
    await finds("waiting:run", "stock")
    await finds("waiting:approval", "plan")
    await finds("waiting:approval waiting:run", "stock", "plan")
    await finds("!waiting:approval !waiting:run")
    await finds("waiting:run", which="mine", who=ana)
    await finds("waiting:run", "stock", which="shared")
    await finds(f"{plan}", "plan")
    await finds(f"{hidden}")
    await finds("age:<1h launch", "plan")
    await finds("age:>1h")
    # An administrator reads everything; others are not told of it by any way a filter goes.
    await finds("waiting:run", "hidden", "stock", who=ana)
    await finds("agent:atlas", "hidden", "plan", who=ana)
    with pytest.raises(NotFound, match="no agent nobody"):
        await finds("agent:nobody")


@pytest.mark.rule("R002-111")
async def test_runs_by_every_qualifier(crew: Callers, fleet: Fleet) -> None:
    ole = await crew.person(OLE)
    add_person(fleet)
    here, there, hidden = add_thread(fleet), add_thread(fleet), add_thread(fleet, OTHER)
    names: dict[UUID, str] = {
        aged(fleet, "runs", add_run(fleet, there, "beacon", ended=True), hours=50): "ancient",
        aged(fleet, "runs", set_run(fleet, add_run(fleet, here), "failed", "No ROUTE to host"), hours=5): "failed",
        add_run(fleet, here, "beacon"): "running",
        set_run(fleet, add_run(fleet, there), "queued"): "queued",
        set_run(fleet, add_run(fleet, hidden), "failed", "no route, in secret"): "hidden",
    }
    running = next(run_id for run_id, name in names.items() if name == "running")

    async def finds(filter: str, *wanted: str, **more: object) -> None:
        for limit in (200, 1):
            query = RunQuery.model_validate({"filter": filter, "limit": limit, **more})
            assert await found(ole, RUNS_LIST, query, names) == list(wanted), filter

    await finds("status:failed", "failed")
    await finds("status:queued status:running", "queued", "running")
    await finds("!status:queued !status:succeeded", "running", "failed")
    await finds("status:running", status=["failed"])
    await finds("agent:BEACON", "running", "ancient")
    await finds("!agent:beacon", "queued", "failed")
    await finds("agent:beacon agent:atlas status:succeeded", "ancient")
    await finds(f"thread:{here}", "running", "failed")
    await finds(f"!thread:{here}", "queued", "ancient")
    await finds("bEaC", "running", "ancient")
    await finds("route agent_", "failed")
    await finds("!atlas !nothing", "running", "ancient")
    await finds("age:<1h", "queued", "running")
    await finds("age:>1h age:<1d", "failed")
    await finds("age:>2d", "ancient")
    await finds(str(RunId.of(running)), "running")
    await finds(str(RunId.of(running)), thread_id=there)
    with pytest.raises(NotFound, match="no thread"):
        await finds(f"thread:{hidden}")
    with pytest.raises(NotFound, match="no agent nobody"):
        await finds("!agent:nobody")

    of_thread = ThreadRunQuery(thread_id=here, filter="agent:beacon")
    assert await found(ole, RUNS_IN_THREAD, of_thread, names) == ["running"]


async def test_approvals_by_every_qualifier(crew: Callers, fleet: Fleet) -> None:
    ole = await crew.person(OLE)
    add_person(fleet)
    here, there, hidden = add_thread(fleet), add_thread(fleet), add_thread(fleet, OTHER)
    long_ago = datetime.now(UTC) - timedelta(hours=5)
    back = ("beacon", "atlas")
    names: dict[ApprovalId, str] = {
        add_approval(fleet, here, made_at=long_ago): "early",
        add_approval(fleet, there, pair=back): "back",
        add_approval(fleet, there): "late",
        add_approval(fleet, hidden): "hidden",
        add_approval(fleet, here, state="rejected", made_at=long_ago): "rejected",
        add_approval(fleet, here, pair=back, state="approved"): "approved",
        add_approval(fleet, hidden, state="rejected"): "hidden no",
    }
    early = next(iter(names))

    async def finds(filter: str, *wanted: str, decided: bool = False, **more: object) -> None:
        for limit in (200, 1):
            asked = {"filter": filter, "limit": limit, **more}
            query = ApprovalHistoryQuery.model_validate(asked) if decided else ApprovalQuery.model_validate(asked)
            operation = APPROVALS_HISTORY if decided else APPROVALS_LIST
            assert await found(ole, operation, query, names) == list(wanted), filter

    await finds("from:atlas", "early", "late")
    await finds("from:BEACON to:atlas", "back")
    await finds("!to:beacon", "back")
    await finds("beacon", "early", "back", "late")
    await finds("age:>1h", "early")
    await finds("age:<1h !from:beacon", "late")
    await finds(f"thread:{there}", "back", "late")
    await finds(f"!thread:{there} status:pending", "early")
    await finds(str(early), "early")
    await finds("status:rejected", "rejected", decided=True)
    await finds("!state:rejected", "approved", decided=True)
    await finds("from:atlas", "rejected", decided=True)
    await finds("age:<1h", "approved", decided=True)
    await finds("age:>1h", "rejected", decided=True)
    await finds("to:atlas", "approved", state="approved")
    with pytest.raises(NotFound, match="no agent nobody"):
        await finds("from:nobody")
    with pytest.raises(Invalid, match=r"status:rejected finds nothing in this list, where all are pending\."):
        await finds("status:rejected")


async def test_a_page_that_found_nothing_tells_where_to_go_on(
    crew: Callers, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("walked_pages", "threads.lists", "runs.lists"):
        monkeypatch.setattr(f"agent_console.repository.postgres.{module}.WALKED_AT_MOST", 3)
    assert walked_pages.WALKED_AT_MOST == 3
    ole = await crew.person(OLE)
    needle = add_thread(fleet, title="needle")
    run_id, approval_id = add_run(fleet, needle, "beacon"), add_approval(fleet, needle, pair=("beacon", "atlas"))
    for _ in range(7):
        other = add_thread(fleet)
        add_run(fleet, other)
        add_approval(fleet, other)
    names: dict[Any, str] = {needle: "thread", run_id: "run", approval_id: "approval"}
    asked: tuple[tuple[AnyOperation, PageRequest, str], ...] = (
        (THREADS_LIST, ThreadQuery(filter="needle"), "thread"),
        (THREADS_LIST, ThreadQuery(filter="needle waiting:run"), "thread"),
        (RUNS_LIST, RunQuery(filter="beacon"), "run"),
        (APPROVALS_LIST, ApprovalQuery(filter="!from:atlas"), "approval"),
    )

    for operation, query, wanted in asked:
        first = await ole.call(operation, query)

        assert wanted == "approval" or first.items == ()
        assert await found(ole, operation, query, names) == [wanted]


@pytest.mark.parametrize(
    ("query", "filter", "says"),
    [
        (ThreadQuery, "stauts:open", r"did you mean status:\?"),
        (ThreadQuery, "waiting:rain", "waiting is one of: approval, run"),
        (RunQuery, "thread:job_1", "starts with thr_"),
        (ThreadRunQuery, "thread:thr_1", "there is no thread: here"),
        (ApprovalQuery, "form:atlas", r"did you mean from:\?"),
        (ApprovalHistoryQuery, "status:maybe", "status is one of: pending, approved"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(query: type[PageRequest], filter: str, says: str) -> None:
    thread = {"thread_id": str(ThreadId.new())} if query is ThreadRunQuery else {}

    with pytest.raises(ValidationError, match=f"{says}.*at character"):
        query.model_validate({"filter": filter, **thread})
