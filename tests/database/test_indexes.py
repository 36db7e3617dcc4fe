"""Each list and each look-up the rules name has an index that serves it, in the order it is asked for."""

from collections.abc import Iterator
from uuid import UUID

import pytest
from pytest import mark, param

from agent_console.domain.ids import AgentId, RunId, ThreadId, UserId
from tests.database import rows
from tests.database.rows import ADD, LATER
from tests.database.team import Row, Team
from tests.support.clusters import TemplateDatabase

TEAM = "<team>"
MINE = f"team_id = '{TEAM}'"
ONE = "'01890a5d-ac96-774b-bcce-b302099a8058'"
DIGEST = "0" * 64
ROWS = 40
FILLED = (
    "agent_runtime", "registration_tokens", "worker_tokens", "operator_tokens", "sessions", "thread_participants",
    "messages", "runs", "a2a_routes", "approvals", "job_events", "queue_counts",
)  # fmt: skip


@pytest.fixture(scope="module")
def settled(templates: TemplateDatabase) -> Iterator[Team]:
    with rows.settled_team(templates, "indexes") as team:
        for number in range(ROWS):
            _fill(team, number)
        team.execute("analyze")
        yield team


def _fill(team: Team, number: int) -> None:
    """A row of every table, different in each column that a list is filtered by."""
    agent = rows.agent_id(team)
    for table in FILLED:
        ADD[table](team)
    rows.add_lane(team, bound_agent_id=agent)
    rows.add_collection(team, type="local", bound_agent_id=agent)
    rows.add_participant(team, participant_type="agent", user_id=None, agent_id=agent)
    rows.add_participant(team, user_id=rows.add_user(team)["id"])
    rows.add_message(team, run_id=rows.run_id)
    rows.add_run(team, parent_run_id=rows.run_id, target_agent_id=agent, trace_id=AgentId.new())
    rows.add_run(team, status="failed", ended_at=LATER, request_digest=f"{number:064x}")
    rows.add_approval(team, state="expired", decided_at=LATER, request_digest=f"{number:064x}")
    rows.add_job(team, type=f"type{number}", tool=f"tool{number}", collection_id=rows.collection_id)
    rows.add_job(team, status="failed", finished_at=LATER, agent_id=agent)
    rows.add_job(team, parent_job_id=rows.job_id, parent_kind="retry", next_attempt_at=LATER)
    for ahead in range(4):
        told: Row = {"action": f"job.a{number}", "resource_id": str(number), "actor_user_id": UserId.new()}
        told |= {"thread_id": ThreadId.new(), "run_id": RunId.new()}
        (month,) = team.execute("select now() + make_interval(months => %s) as at", ahead)
        rows.add_audit_row(team, created_at=month["at"], **told)


@pytest.fixture
def team(settled: Team) -> Iterator[Team]:
    with settled.connection.transaction(force_rollback=True):
        yield settled


def served_by(team: Team, question: str) -> set[str]:
    """The indexes of the plan. The tables are small, so the ways around an index are closed first."""
    for way in ("seqscan", "bitmapscan", "sort"):
        team.execute(f"set local enable_{way} = off")
    asked = question.replace(TEAM, str(UUID(int=team.team_id.int)))
    (plan,) = team.execute(f"explain (format json, costs off) {asked}")
    assert isinstance(plan["QUERY PLAN"], list)
    return set(_index_names(plan["QUERY PLAN"][0]["Plan"]))


def _index_names(node: dict[str, object]) -> Iterator[str]:
    assert "Sort" not in str(node["Node Type"]), "the index does not give the order"
    if name := node.get("Index Name"):
        yield str(name)
    children = node.get("Plans", [])
    assert isinstance(children, list)
    for child in children:
        yield from _index_names(child)


LISTS = (
    param(
        f"agents where {MINE} and deleted_at is null order by id", "agents_team_idx", marks=mark.rule("R000-37")
    ),
    param(
        f"agents where {MINE} and owner_user_id = {ONE} and deleted_at is null order by id", "agents_owner_idx",
        marks=mark.rule("R004-2", "R004-5", "R004-7", "R004-9"),
    ),
    param(f"agents where {MINE} and api_key_hash = 'x'", "agents_api_key_hash_uq", marks=mark.rule("R000-39")),
    param(f"agents where {MINE} and lower(name) = 'x' and deleted_at is null", "agents_name_uq"),
    param(
        f"agent_runtime where {MINE} and presence = 'online' order by agent_id", "agent_runtime_presence_idx",
        marks=mark.rule("R000-38", "R002-95"),
    ),
    param(
        f"agent_runtime where {MINE} and presence in ('online', 'error') and heard_minute < now()"
        " order by heard_minute",
        "agent_runtime_heard_idx",
    ),
    param(
        f"agent_runtime where {MINE} and lifecycle = 2 order by agent_id", "agent_runtime_lifecycle_idx",
        marks=mark.rule("R000-38", "R004-17", "R004-61", "R004-62"),
    ),
    param(
        f"registration_tokens where {MINE} and expires_at > now() and not is_used order by expires_at",
        "registration_tokens_expires_idx", marks=mark.rule("R000-61"),
    ),
    param(
        f"registration_tokens where {MINE} and token_hash = 'x'", "registration_tokens_hash_uq",
        marks=mark.rule("R000-60"),
    ),
    param(f"worker_tokens where {MINE} and token_hash = 'x'", "worker_tokens_hash_uq"),
    param(f"operator_tokens where {MINE} and token_hash = 'x'", "operator_tokens_hash_uq"),
    param(
        f"collections where {MINE} and bound_agent_id = {ONE} order by id", "collections_agent_idx",
        marks=mark.rule("R000-43", "R000-109"),
    ),
    param(
        f"sessions where {MINE} and agent_id = {ONE} order by id", "sessions_agent_idx",
        marks=mark.rule("R004-12", "R004-19", "R004-69", "R004-71"),
    ),
    param(
        f"sessions where {MINE} and agent_id = {ONE} and status = 1", "sessions_open_idx",
        marks=mark.rule("R004-3"),
    ),
    param(f"jobs where {MINE} and agent_id = {ONE} order by id", "jobs_agent_idx", marks=mark.rule("R000-44")),
    param(
        f"jobs where {MINE} and status = 'scheduled' order by scheduled_for", "jobs_claimable_idx",
        marks=mark.rule("R000-82"),
    ),
    param(
        f"jobs where {MINE} and lane_id = {ONE} and look_at = '-infinity' order by (- priority), id",
        "jobs_claim_order_idx",
    ),
    param(
        "jobs where look_at > '-infinity' and look_at <= now() order by look_at", "jobs_look_idx",
        marks=mark.rule("R000-84"),
    ),
    param(f"jobs where {MINE} and agent_id = {ONE} and status in ('assigned', 'running')", "jobs_held_idx"),
    param(f"lanes where {MINE} and bound_agent_id > {ONE} order by bound_agent_id", "lanes_bound_idx"),
    param("queue_moves where id > 7 order by id", "queue_moves_pkey"),
    param(f"queue_counts where {MINE} and lane_id = {ONE}", "queue_counts_pkey"),
    param(f"queue_tallies where {MINE} and came_from = 'lease'", "queue_tallies_pkey"),
    param(f"jobs where {MINE} and status = 'failed' order by id desc", "jobs_status_idx"),
    param(f"jobs where {MINE} and type = 'report' order by id desc", "jobs_type_idx"),
    param(f"jobs where {MINE} and tool = 'report' order by id desc", "jobs_tool_idx"),
    param(f"jobs where {MINE} and collection_id = {ONE} order by id desc", "jobs_collection_idx"),
    param(f"jobs where {MINE} and parent_job_id = {ONE}", "jobs_parent_idx"),
    param(f"job_events where {MINE} and job_id = {ONE} and seq > 7 order by seq", "job_events_pkey"),
    param(
        f"job_events where {MINE} and job_id = {ONE} and level <> 'info' and level = 'error' order by seq",
        "job_events_worse_idx",
    ),
    param(
        f"threads where {MINE} and created_by_user_id = {ONE} order by id", "threads_created_by_idx",
        marks=mark.rule("R002-96"),
    ),
    param(f"threads where {MINE} order by created_at desc", "threads_created_at_idx", marks=mark.rule("R002-97")),
    param(
        f"threads where {MINE} and archived_at < now() order by archived_at", "threads_archived_at_idx",
        marks=mark.rule("R002-98"),
    ),
    param(f"threads where {MINE} and archived_at is null order by id desc", "threads_open_idx"),
    param(f"threads where {MINE} and archived_at is not null order by id desc", "threads_archived_idx"),
    param(
        f"threads where {MINE} and visibility = 'shared' and archived_at is null order by id desc",
        "threads_shared_open_idx",
    ),
    param(
        f"threads where {MINE} and visibility = 'shared' and archived_at is not null order by id desc",
        "threads_shared_archived_idx",
    ),
    param(
        f"thread_participants where {MINE} and thread_id = {ONE} order by id", "thread_participants_thread_idx",
        marks=mark.rule("R002-101"),
    ),
    param(
        f"thread_participants where {MINE} and user_id = {ONE} and participant_type = 'human' order by thread_id",
        "thread_participants_user_idx", marks=mark.rule("R002-102"),
    ),
    param(
        f"thread_participants where {MINE} and agent_id = {ONE} and participant_type = 'agent' order by thread_id",
        "thread_participants_agent_idx", marks=mark.rule("R002-103"),
    ),
    param(
        f"messages where {MINE} and thread_id = {ONE} and seq < 7 order by seq desc", "messages_thread_seq_idx",
        marks=mark.rule("R002-104"),
    ),
    param(
        f"messages where {MINE} and thread_id = {ONE} order by created_at desc", "messages_thread_created_idx",
        marks=mark.rule("R002-105"),
    ),
    param(
        f"messages where {MINE} and run_id = {ONE} order by seq desc", "messages_run_idx",
        marks=mark.rule("R002-106"),
    ),
    param(
        f"runs where {MINE} and thread_id = {ONE} and seq < 7 order by seq desc", "runs_thread_seq_idx",
        marks=mark.rule("R002-108"),
    ),
    param(
        f"runs where {MINE} and target_agent_id = {ONE} and status = 'queued'", "runs_target_status_idx",
        marks=mark.rule("R002-109"),
    ),
    param(f"runs where {MINE} and parent_run_id = {ONE}", "runs_parent_idx", marks=mark.rule("R002-110")),
    param(f"runs where {MINE} and trace_id = {ONE} order by seq", "runs_trace_idx"),
    param(f"runs where {MINE} and ended_at is null order by deadline_at", "runs_unfinished_idx"),
    param(f"runs where {MINE} order by seq desc", "runs_seq_idx"),
    param(f"runs where {MINE} and status = 'failed' order by seq desc", "runs_status_idx"),
    param(f"runs where {MINE} and thread_id = {ONE} and ended_at is null", "runs_open_idx"),
    param(
        f"runs where {MINE} and thread_id = {ONE} and request_digest = '{DIGEST}' order by seq desc",
        "runs_request_idx", marks=mark.rule("U002-13"),
    ),
    param(
        f"a2a_routes where {MINE} and to_agent_id = {ONE} order by id", "a2a_routes_to_idx",
        marks=mark.rule("R002-113"),
    ),
    param(f"a2a_routes where {MINE} and from_agent_id = {ONE} order by id", "a2a_routes_from_idx"),
    param(f"a2a_routes where {MINE} and policy = 'allowed' order by id", "a2a_routes_policy_idx"),
    param(
        f"a2a_route_versions where {MINE} and from_agent_id = {ONE} and to_agent_id = {ONE}"
        " order by version desc",
        "a2a_route_versions_pair_uq",
    ),
    param(f"approvals where {MINE} and state = 'pending' order by expires_at, id", "approvals_pending_idx"),
    param(f"approvals where {MINE} and thread_id = {ONE} order by id", "approvals_thread_idx"),
    param(
        f"approvals where {MINE} and state <> 'pending' order by decided_at desc, id desc", "approvals_decided_idx"
    ),
    param(
        f"approvals where {MINE} and from_agent_id = {ONE} and to_agent_id = {ONE} and state = 'pending'",
        "approvals_pair_idx",
    ),
    param(f"approvals where {MINE} and trace_id = {ONE} and state = 'pending'", "approvals_trace_idx"),
    param(
        f"approvals where {MINE} and state = 'pending' order by thread_id desc", "approvals_pending_thread_idx"
    ),
    param(
        f"approvals where {MINE} and thread_id = {ONE} and request_digest = '{DIGEST}' order by id desc",
        "approvals_request_idx", marks=mark.rule("U002-13"),
    ),
)  # fmt: skip


@mark.parametrize(("question", "index"), LISTS)
def test_the_query_uses_the_index(team: Team, question: str, index: str) -> None:
    assert served_by(team, f"select * from {question}") == {index}


TRAIL = (
    param("true", "audit_log_seq_idx", "(team_id, seq DESC)", marks=mark.rule("R002-114")),
    param(
        f"thread_id = {ONE}", "audit_log_thread_idx", "(team_id, thread_id, seq DESC)",
        marks=mark.rule("R002-115"),
    ),
    param(f"run_id = {ONE}", "audit_log_run_idx", "(team_id, run_id, seq DESC)", marks=mark.rule("R002-116")),
    param(
        "action = 'job.create'", "audit_log_action_idx", "(team_id, action, seq DESC)",
        marks=mark.rule("R002-117"),
    ),
    param(f"actor_user_id = {ONE}", "audit_log_actor_idx", "(team_id, actor_user_id, seq DESC)"),
    param(f"actor_agent_id = {ONE}", "audit_log_agent_idx", "(team_id, actor_agent_id, seq DESC)"),
    param(
        "resource_type = 'job' and resource_id = 'x'", "audit_log_resource_idx",
        "(team_id, resource_type, resource_id, seq DESC)",
    ),
)  # fmt: skip


@mark.parametrize(("filtered", "index", "columns"), TRAIL)
def test_the_trail_is_read_newest_first_through_the_index_of_every_month(
    team: Team, filtered: str, index: str, columns: str
) -> None:
    (definition,) = team.execute("select pg_get_indexdef(%s::regclass) as told", index)
    of_months = team.execute(
        "select inhrelid::regclass::text as name from pg_inherits where inhparent = %s::regclass", index
    )

    used = served_by(team, f"select * from audit_log where {MINE} and {filtered} order by seq desc limit 100")

    assert columns in str(definition["told"])
    assert used == {row["name"] for row in of_months}


@mark.rule("R004-60", "R004-61")
def test_an_agent_is_listed_under_its_new_lifecycle_only(team: Team) -> None:
    agent = rows.add_agent_runtime(team, lifecycle=2)["agent_id"]
    listing = "select agent_id from agent_runtime where team_id = %s and lifecycle = %s"

    team.execute("update agent_runtime set lifecycle = 3 where agent_id = %s", agent)

    assert team.execute(listing, team.team_id, 2) == []
    assert team.execute(listing, team.team_id, 3) == [{"agent_id": agent}]


def test_a_heartbeat_touches_no_index_but_that_of_the_minute(team: Team) -> None:
    """Else each beat would write to every index of the table."""
    indexed = team.execute(
        "select distinct a.attname from pg_index as i join pg_attribute as a"
        " on a.attrelid = i.indrelid and a.attnum = any(i.indkey::smallint[])"
        " where i.indrelid = 'agent_runtime'::regclass"
    )

    assert {row["attname"] for row in indexed} == {"team_id", "agent_id", "presence", "lifecycle", "heard_minute"}
