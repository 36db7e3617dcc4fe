"""Many people decide the same request at the same moment: one of them does, and everybody else is told who."""

import asyncio
from contextlib import AsyncExitStack

from agent_console.domain.approvals import Approval, ApprovalAsked, Approving, Rejecting
from agent_console.domain.errors import Conflict
from agent_console.domain.ids import UserId
from agent_console.repository.operations.approvals import APPROVALS_APPROVE, APPROVALS_GET, APPROVALS_REJECT
from agent_console.repository.port import Repository
from tests.support.asking import ANA, add_route, asks, callers, count, trail
from tests.support.conversations import add_thread, let_in
from tests.support.fleet import Fleet

DECIDERS = 100
REVIEWERS = 5


def add_reviewers(fleet: Fleet) -> list[str]:
    """Operators besides those of the fleet."""
    emails = [f"reviewer{number}@example.com" for number in range(REVIEWERS)]
    for number, email in enumerate(emails):
        fleet.execute(
            "insert into users (team_id, id, email, full_name, role) values (%s, %s, %s, %s, 'operator')",
            *(fleet.team_id(), UserId.new(), email, f"Reviewer {number}"),
        )
    return emails


async def request_of(fleet: Fleet, stack: AsyncExitStack) -> Approval:
    thread_id = add_thread(fleet, ANA, visibility="shared")
    let_in(fleet, thread_id, "atlas", write=True)
    add_route(fleet, "atlas", "beacon", "requires_human_approval")
    crew = await stack.enter_async_context(callers(fleet, "direct"))
    made = await asks(await crew.agent("atlas"), fleet, thread_id)
    assert made.approval is not None
    return await (await crew.person(ANA)).call(APPROVALS_GET, ApprovalAsked(approval_id=made.approval.id))


async def decide(person: Repository, asked: Approval, *, approves: bool) -> Approval:
    if approves:
        return await person.call(
            APPROVALS_APPROVE, Approving(approval_id=asked.id, digest_seen=asked.digest, reason="fine")
        )
    return await person.call(
        APPROVALS_REJECT, Rejecting(approval_id=asked.id, digest_seen=asked.digest, reason="not today")
    )


async def test_one_of_a_hundred_deciders_wins_and_the_others_are_told_who(fleet: Fleet) -> None:
    """Over a server and directly at once, on all connections that each has, half of them for it, half against."""
    async with AsyncExitStack() as stack:
        asked = await request_of(fleet, stack)
        ways = [await stack.enter_async_context(callers(fleet, kind)) for kind in ("direct", "http")]
        people = [await way.person(email) for email in add_reviewers(fleet) for way in ways]

        answers = await asyncio.gather(
            *(decide(people[n % len(people)], asked, approves=n % 2 == 0) for n in range(DECIDERS)),
            return_exceptions=True,
        )
        kept = await people[0].call(APPROVALS_GET, ApprovalAsked(approval_id=asked.id))

    won = [answer for answer in answers if isinstance(answer, Approval)]
    told = [answer for answer in answers if isinstance(answer, Conflict)]
    assert (len(won), len(told)) == (1, DECIDERS - 1), [answer for answer in answers if answer not in told]
    assert [(one.state, one.decided_by, one.run_id) for one in won] == [(kept.state, kept.decided_by, kept.run_id)]
    assert kept.decided_at is not None
    at = kept.decided_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert {answer.message for answer in told} == {f"{kept.decided_by} {kept.state.value} it at {at}."}
    assert {answer.details["decided_by"] for answer in told} == {kept.decided_by}
    assert {(answer.details["state"], answer.details["decided_at"]) for answer in told} == {(kept.state.value, at)}
    approved = int(kept.run_id is not None)
    said = "messages where author_type = 'agent'"
    assert count(fleet, "runs", said, "jobs where run_id is not null") == [approved] * 3
    assert count(fleet, "messages where author_type = 'system'") == [1]
    assert [row[1] for row in trail(fleet, "approval.%")] == [kept.decided_by]
