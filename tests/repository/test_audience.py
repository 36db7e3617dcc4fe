"""What of a notice each kind of reader is told."""

import pytest

from agent_console.domain.identity import AuthSource, Caller
from agent_console.domain.ids import (
    AgentId,
    ApprovalId,
    Id,
    JobId,
    LaneId,
    OperatorTokenId,
    RunId,
    TeamId,
    ThreadId,
    UserId,
    WorkerTokenId,
)
from agent_console.domain.permissions import Role
from agent_console.repository.port import REFETCH, Change, Topic
from agent_console.repository.postgres.live.audience import OF_THREADS, Told, told_to
from agent_console.repository.postgres.live.notices import NAMED_AT_MOST, Notice, spoken, understood
from agent_console.repository.postgres.live.stream_reader import WAITING_AT_MOST, StreamReader
from agent_console.repository.postgres.threads.readers import ThreadReaders

TEAM, THREAD, ME, MY_AGENT = TeamId.new(), ThreadId.new(), UserId.new(), AgentId.new()
OTHER_AGENT = AgentId.new()

NOBODY = ThreadReaders()
ME_TOO = ThreadReaders(people=frozenset({ME}))
SHARED = ThreadReaders(shared=True)
MY_AGENT_TOO = ThreadReaders(agents=frozenset({MY_AGENT}))


def person(role: Role = Role.OPERATOR) -> Caller:
    return Caller(
        team_id=TEAM, team="example", user_id=ME, name="Me", role=role, auth_source=AuthSource.OPERATOR_TOKEN
    )


AGENT = Caller(
    team_id=TEAM,
    team="example",
    user_id=UserId.new(),
    name="atlas",
    role=Role.AGENT,
    auth_source=AuthSource.API_KEY,
    agent_id=MY_AGENT,
)


def of_thread(topic: Topic, row: Id, asked_by: AgentId | None = None) -> Notice:
    return Notice.of(topic, row, thread_id=THREAD, agent_id=asked_by)


RUN, APPROVAL = of_thread(Topic.RUNS, RunId.new()), of_thread(Topic.APPROVALS, ApprovalId.new())
MESSAGE, RIGHTS = Notice.of(Topic.MESSAGES, THREAD), Notice.of(Topic.THREADS, THREAD)


@pytest.mark.rule("U002-22", "R002-133")
@pytest.mark.parametrize("notice", [RUN, APPROVAL, MESSAGE, RIGHTS], ids=lambda notice: notice.topic.value)
@pytest.mark.parametrize(
    ("role", "thread", "told"),
    [
        (Role.OPERATOR, NOBODY, Told.NOTHING),
        (Role.OPERATOR, MY_AGENT_TOO, Told.NOTHING),
        (Role.OPERATOR, ME_TOO, Told.NAMED),
        (Role.VIEWER, SHARED, Told.NAMED),
        (Role.ADMIN, NOBODY, Told.NAMED),
        (Role.ADMIN, None, Told.UNNAMED),
    ],
)
def test_a_person_hears_of_threads_they_may_read(
    notice: Notice, role: Role, thread: ThreadReaders | None, told: Told
) -> None:
    assert told_to(person(role), notice, thread) is told


@pytest.mark.rule("U002-22")
@pytest.mark.parametrize(
    ("notice", "thread", "told"),
    [
        (MESSAGE, MY_AGENT_TOO, Told.NAMED),
        (MESSAGE, SHARED, Told.NOTHING),
        (RUN, NOBODY, Told.NOTHING),
        (of_thread(Topic.RUNS, RunId.new(), MY_AGENT), NOBODY, Told.NAMED),
        (of_thread(Topic.APPROVALS, ApprovalId.new(), MY_AGENT), NOBODY, Told.NAMED),
        (of_thread(Topic.APPROVALS, ApprovalId.new(), OTHER_AGENT), MY_AGENT_TOO, Told.NOTHING),
        (Notice.of(Topic.WORK, MY_AGENT), None, Told.NAMED),
        (Notice.of(Topic.WORK, TEAM), None, Told.UNNAMED),
        (Notice.of(Topic.WORK, OTHER_AGENT), None, Told.NOTHING),
        (Notice.of(Topic.WORK, LaneId.new()), None, Told.NOTHING),
        (Notice.of(Topic.JOBS, JobId.new()), None, Told.NOTHING),
        (Notice.of(Topic.AGENTS, MY_AGENT), None, Told.NOTHING),
        (Notice.of(Topic.AUDIT, TEAM), None, Told.NOTHING),
        (Notice.of(Topic.EVERYTHING, TEAM), None, Told.NOTHING),
    ],
)
def test_an_agent_hears_of_its_own(notice: Notice, thread: ThreadReaders | None, told: Told) -> None:
    assert told_to(AGENT, notice, thread) is told


@pytest.mark.parametrize(
    ("role", "token", "told"),
    [
        (Role.ADMIN, WorkerTokenId.new(), Told.NAMED),
        (Role.VIEWER, WorkerTokenId.new(), Told.NOTHING),
        (Role.VIEWER, OperatorTokenId.new(), Told.UNNAMED),
    ],
)
def test_tokens_are_named_to_administrators_only(role: Role, token: Id, told: Told) -> None:
    assert told_to(person(role), Notice.of(Topic.TOKENS, token), None) is told


def test_work_and_the_names_of_audit_rows_are_not_for_people() -> None:
    assert told_to(person(), Notice.of(Topic.WORK, MY_AGENT), None) is Told.NOTHING
    assert told_to(person(), Notice.of(Topic.AUDIT, TEAM), None) is Told.UNNAMED


@pytest.mark.parametrize("topic", sorted(OF_THREADS))
def test_what_was_too_much_to_name_names_nothing(topic: Topic) -> None:
    many = [of_thread(topic, RunId.new()) for _ in range(NAMED_AT_MOST + 1)]

    heard = understood(spoken("voice", TEAM, topic, many))

    assert heard is not None
    assert heard.notices == (Notice(topic),)
    assert told_to(person(), heard.notices[0], None) is Told.UNNAMED


def test_a_notice_comes_out_as_it_went_in() -> None:
    said = [of_thread(Topic.RUNS, RunId.new(), MY_AGENT), of_thread(Topic.RUNS, RunId.new())]

    heard = understood(spoken("voice", TEAM, Topic.RUNS, said))

    assert heard is not None
    assert (heard.team_id, heard.voice, list(heard.notices)) == (TEAM, "voice", said)


async def test_a_reader_that_can_not_keep_up_is_told_to_fetch_again() -> None:
    reader = StreamReader(TEAM, person())
    reader.give(REFETCH)
    await reader.next()

    for _ in range(WAITING_AT_MOST + 2):
        reader.give(Change(topic=Topic.JOBS, id=str(JobId.new())))

    heard = await reader.next()
    assert heard is not None
    assert (heard[0], len(heard)) == (REFETCH, 2)


async def test_nothing_is_told_while_it_is_not_known_who_reads() -> None:
    reader = StreamReader(TEAM, person(Role.ADMIN))
    reader.give(REFETCH)
    reader.doubt()
    reader.give(Change(topic=Topic.JOBS, id=str(JobId.new())))

    assert await reader.next() is None
    assert reader.settle(person(Role.VIEWER))

    reader.give(told := Change(topic=Topic.JOBS, id=str(JobId.new())))
    assert await reader.next() == (told,)
