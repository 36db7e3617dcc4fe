"""Two at once on one row, in two processes, begun in any order and at any distance.

A few of each with every test run, hundreds of each with HYPOTHESIS_PROFILE=prove. What is true afterwards is asked
of the database itself.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_console.domain.errors import ConsoleError
from tests.faults.invariants import DECIDED_TWICE, ENDED_TWICE, RESULTS_TWICE, TWO_OWNERS, UNEVEN_DECISIONS
from tests.faults.pairs import PAIRS, Ground
from tests.queue.crew import EMPTY
from tests.queue.lengths import PHASES, PROVING
from tests.support.fleet import Fleet

EXAMPLES = 400 if PROVING else 3
MOST_STEPS = 60

# Looked at when it is committed: by then nobody may have taken away what it was allowed by.
WATCH = """
    create table too_late (what text);
    create function note_too_late() returns trigger language plpgsql security definer as $$
    begin
        insert into too_late
        select 'said in an archived thread' from threads t
         where tg_table_name = 'messages' and t.team_id = new.team_id
           and t.id = (to_jsonb(new) ->> 'thread_id')::uuid and t.archived_at is not null
        union all
        select 'approved on a closed route' from a2a_routes r
         where tg_table_name = 'approvals' and r.team_id = new.team_id and r.policy = 'blocked'
           and r.from_agent_id = (to_jsonb(new) ->> 'from_agent_id')::uuid
           and r.to_agent_id = (to_jsonb(new) ->> 'to_agent_id')::uuid
        union all
        select 'approved by who may not' from users u
         where tg_table_name = 'approvals' and u.team_id = new.team_id
           and u.id = (to_jsonb(new) ->> 'decided_by_user_id')::uuid
           and (u.role not in ('operator', 'admin') or not u.is_active)
        union all
        select 'a job for a deleted agent' from agents a
         where tg_table_name = 'jobs' and a.team_id = new.team_id
           and a.id = (to_jsonb(new) ->> 'bound_agent_id')::uuid and a.deleted_at is not null;
        return null;
    end $$;
    create constraint trigger too_late after insert on messages deferrable initially deferred
        for each row execute function note_too_late();
    create constraint trigger too_late after insert on jobs deferrable initially deferred
        for each row when (new.bound_agent_id is not null) execute function note_too_late();
    create constraint trigger too_late after update on approvals deferrable initially deferred
        for each row when (new.state = 'approved') execute function note_too_late();
"""
NEVER = {
    "decided twice": DECIDED_TWICE,
    "decided without its run": UNEVEN_DECISIONS,
    "ended twice": ENDED_TWICE,
    "two results": RESULTS_TWICE,
    "two owners": TWO_OWNERS,
    "done too late": "select count(*) from too_late",
    "approved after its time": """
        select count(*) from approvals where state = 'approved' and decided_at >= expires_at
    """,
    "held by a revoked agent": """
        select count(*) from jobs j join agents a on a.team_id = j.team_id and a.id = j.agent_id
         where j.status in ('assigned', 'running') and a.revoked_at is not null
    """,
    "bound to a deleted agent": """
        select count(*) from collections c join agents a on a.team_id = c.team_id and a.id = c.bound_agent_id
         where c.deleted_at is null and a.deleted_at is not null
    """,
    "a route without its history": """
        select count(*) from a2a_routes r
         where r.created_by_user_id is not null
           and r.version <> (select count(*) from a2a_route_versions v
                              where v.team_id = r.team_id and v.route_id = r.id)
    """,
    "one key, two jobs": """
        select count(*) from (select from jobs where idempotency_key is not null
                               group by team_id, idempotency_key having count(*) > 1) as twice
    """,
    "a token that was used and revoked": """
        select count(*) from registration_tokens where is_used and revoked_at is not null
    """,
    "a token used twice": """
        select count(*) from (select from audit_log where action = 'agent.register'
                               group by metadata ->> 'registration_token_id' having count(*) > 1) as twice
    """,
}


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def ground(fleet: Fleet, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    monkeypatch.setenv("AGENT_CONSOLE_SERVER_KEY", "A" * 43)
    fleet.execute(EMPTY)
    fleet.execute(WATCH)

    async def made() -> Ground:
        return Ground(fleet)

    ground = runner.run(made())
    yield ground
    runner.run(ground.close())


async def after(steps: int, asked: Callable[[], Awaitable[object]]) -> object:
    """As so many turns of the event loop later; a refusal is an answer, anything else is a fault."""
    for _ in range(steps):
        await asyncio.sleep(0)
    try:
        return await asked()
    except ConsoleError as refused:
        assert refused.status < 500, refused
        return None


async def run_together(ground: Ground, name: str, steps: tuple[int, int]) -> None:
    pair = await PAIRS[name](ground)
    answers = await asyncio.gather(after(steps[0], pair.first), after(steps[1], pair.second))
    winners = sum(answer is not None and pair.won(answer) for answer in answers)
    assert winners in pair.winners, f"{name}: {answers}"


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_two_at_once_leave_what_one_after_the_other_would(
    name: str, ground: Ground, runner: asyncio.Runner, record_property: Callable[[str, object], None]
) -> None:
    tried = count(1)

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        phases=PHASES,
        database=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(steps=st.tuples(st.integers(0, MOST_STEPS), st.integers(0, MOST_STEPS)))
    def together(steps: tuple[int, int]) -> None:
        runner.run(run_together(ground, name, steps))
        next(tried)

    together()
    record_property("tried", next(tried) - 1)

    found = {what: ground.fleet.one(question) for what, question in NEVER.items()}
    assert found == dict.fromkeys(NEVER, 0)
