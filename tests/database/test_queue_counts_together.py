"""Counting while others work: nobody waits for anybody, and at no moment is a count wrong."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.database import rows
from tests.database.queue_counted import fold, same_as_counted
from tests.database.team import Team

WRITERS = 4
ROUNDS = 15
ADD = (
    "insert into jobs (team_id, id, lane_id, type, payload)"
    " select team_id, new_id(), id, 'report', '{}' from lanes, generate_series(1, 3)"
)
# What others hold is left to them, as a claim does.
END = """
    update jobs set status = 'cancelled', finished_at = now(), look_at = null
     where id in (select id from jobs where status = 'queued' limit 2 for update skip locked)
"""
REMOVE = """
    delete from jobs
     where id in (select id from jobs where status = 'cancelled' limit 1 for update skip locked)
"""


@pytest.fixture
def impatient(database: str) -> str:
    """Who waits for another's lock fails instead of hanging."""
    return make_conninfo(database, options="-c lock_timeout=10s")


@pytest.fixture
def team(impatient: str) -> Iterator[Team]:
    with psycopg.connect(impatient, autocommit=True) as connection:
        team = rows.make_team(connection)
        for _ in range(2):
            rows.add_lane(team)
        yield team


def test_many_writers_and_one_who_folds_never_miscount(impatient: str, team: Team) -> None:
    together = Barrier(WRITERS + 1)

    with ThreadPoolExecutor(WRITERS) as others:
        writing = [others.submit(partial(_write, impatient, together)) for _ in range(WRITERS)]
        together.wait(timeout=60)
        seen = [_look(team)]
        while not all(writer.done() for writer in writing):
            seen.append(_look(team))
        for writer in writing:
            writer.result(timeout=60)

    assert all(seen)
    while fold(team)[1]:
        pass
    (counted,) = team.execute("select sum(jobs)::integer as jobs from queue_counts")
    assert counted["jobs"] == len(team.execute("select id from jobs")) == WRITERS * ROUNDS * 6 - _removed(team)


def _write(dsn: str, together: Barrier) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        together.wait(timeout=60)
        for _ in range(ROUNDS):
            for statement in (ADD, END, REMOVE):
                connection.execute(statement)


def _look(team: Team) -> bool:
    before = same_as_counted(team)
    fold(team, at_most=10)
    after = same_as_counted(team)
    return before and after


def _removed(team: Team) -> int:
    (told,) = team.execute("select jobs from queue_tallies where came_from = 'cancelled' and went_to = ''")
    return int(str(told["jobs"]))


def test_whoever_folds_does_not_wait_for_whoever_writes(impatient: str, team: Team) -> None:
    """What is committed late has a low number: it is found by who looks from the beginning."""
    with psycopg.connect(impatient) as slow:
        slow.execute(ADD)
        team.execute(ADD)
        last, folded = fold(team)

    assert (folded, same_as_counted(team)) == (2, True)
    assert fold(team, after=int(str(last))) == (None, 0)
    assert fold(team)[1] == 2
    assert same_as_counted(team)


def test_whoever_writes_does_not_wait_for_whoever_folds(impatient: str, team: Team) -> None:
    team.execute(ADD)
    with psycopg.connect(impatient) as folding:
        folding.execute("select fold_queue_moves(0, 100)")
        team.execute(ADD)
        team.execute(END)
        meanwhile = same_as_counted(team)

    assert meanwhile
    assert same_as_counted(team)


def test_a_fold_that_is_taken_back_counts_nothing(impatient: str, team: Team) -> None:
    team.execute(ADD)
    with psycopg.connect(impatient) as folding:
        folding.execute("select fold_queue_moves(0, 100)")
        folding.rollback()

    assert team.execute("select * from queue_counts") == []
    assert same_as_counted(team)
