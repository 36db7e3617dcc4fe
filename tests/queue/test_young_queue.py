"""A queue that was just filled: nothing is known yet of how its jobs lie, and every plan must be right already."""

from dataclasses import replace

from agent_console.domain.ids import JobId, LaneId
from agent_console.repository.postgres.queue.lane_book import BEFORE_ALL, Routing
from agent_console.repository.postgres.queue.turns import TAKE_TURNS, Finish, Turn, facts_of
from tests.queue.more_agents import crowd
from tests.queue.plans import Measured
from tests.queue.test_queue_together import ADD_JOBS
from tests.support.fleet import Fleet

TOGETHER = 64
JOBS = 1_000


def test_ending_many_at_once_does_not_read_the_whole_queue_for_each_of_them(quiet: Fleet) -> None:
    agents = crowd(quiet, TOGETHER)
    quiet.execute(ADD_JOBS, quiet.team_id(), JOBS)
    floors = {LaneId(str(lane)): BEFORE_ALL for (lane,) in quiet.execute("select id from lanes")}
    measured = Measured(quiet.administration)
    turns = [Turn(agent.id, agent.secret.hash, wants=1, lease=120, starts=True) for agent in agents]
    first, _ = measured.reads(TAKE_TURNS, facts_of(Routing(quiet.team_id()), turns, floors))
    for row in first:
        if row["job_id"] is not None:
            finish = Finish(JobId.of(row["job_id"]), row["attempt"], "succeeded", result={})
            turns[row["turn"] - 1] = replace(turns[row["turn"] - 1], finish=finish)

    second, reads = measured.reads(TAKE_TURNS, facts_of(Routing(quiet.team_id()), turns, floors))
    measured.close()

    assert [row["finish"] for row in second] == ["ok"] * TOGETHER
    assert sum(read for index, read in reads.entries.items() if index.startswith("jobs_")) <= 10 * JOBS
