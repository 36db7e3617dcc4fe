"""What the demo is made of fits together: nobody asks for what nobody can do."""

from agent_console.demo.asking import WISHES
from agent_console.demo.cast import AGENTS, ROUTES
from agent_console.demo.pausing import rest
from agent_console.demo.stories import Stories
from agent_console.demo.workload import HOSTILE, ORDER, TASKS, program, seconds_of, task_of
from agent_console.domain.kinds import RoutePolicy

NAMES = {agent.name for agent in AGENTS}


def test_a_dozen_agents_can_do_every_job_that_is_asked_for() -> None:
    tools = {":".join(able.split(":")[:2]) for agent in AGENTS for able in agent.capabilities}

    undone = [task.type for task in TASKS if not set(task.needs) <= tools]

    assert (len(NAMES), undone) == (12, [])
    assert tools >= {"tool:deploy"}


def test_nobody_is_kept_from_work_by_what_waits_for_a_person() -> None:
    """Else the queue fills up and stands still when nobody decides."""
    stories = [wish.first for wish in WISHES]

    stuck = [agent.name for agent in AGENTS if stories.count(agent.name) >= agent.concurrency]

    assert stuck == []


def test_whoever_is_asked_or_asks_is_there_and_takes_part() -> None:
    named = {name for route in ROUTES for name in (route.asks, route.asked)}
    named |= {name for wish in WISHES for name in (wish.first, *wish.agents)}
    named |= set(Stories({}, rest).parts())

    assert named <= NAMES
    assert {route.policy for route in ROUTES} == set(RoutePolicy)
    for wish in WISHES:
        assert wish.first in wish.agents


def test_jobs_fail_are_tried_again_and_given_up() -> None:
    again = [task for task in TASKS if 0 < len(task.fails) < task.max_attempts and not task.is_final]
    final = [task for task in TASKS if task.is_final]
    dead = [task for task in TASKS if len(task.fails) >= task.max_attempts and not task.is_final]

    assert all((again, final, dead))


def test_the_seldom_ones_come_at_first_and_then_seldom() -> None:
    (dead,) = [task for task in TASKS if task.every == 8]
    jobs = program()

    first = [next(jobs) for _ in TASKS]
    later = [next(jobs) for _ in range(3 * len(TASKS))]

    assert dead in first
    assert dead not in later


def test_a_job_is_known_by_its_payload_and_one_made_up_by_an_operator_ends_well() -> None:
    task = TASKS[-1]

    assert task_of(task.type, {**task.payload, ORDER: 7}) is task
    assert task_of("report", {"month": "1999-01"}).type == "report"
    assert task_of("dance", {}).fails == ()


def test_no_job_is_shorter_than_two_seconds_or_longer_than_twenty() -> None:
    lengths = [seconds_of(task, {ORDER: order}) for task in TASKS for order in range(60)]

    assert min(lengths) >= 2
    assert max(lengths) <= 20


def test_the_hostile_words_hold_what_a_terminal_would_obey() -> None:
    assert "\x1b[" in HOSTILE
    assert "\u202e" in HOSTILE
