"""Claims that bring nothing say why; claims that ask for too much are refused, and the field is named."""

from datetime import timedelta

import pytest
from pydantic import ValidationError

from agent_console.domain.errors import Forbidden, Invalid
from agent_console.domain.working import WHY_NOTHING, Claim, WhyNothing
from tests.queue.crew import Crew, claim, take


@pytest.mark.rule("R003-43", "U003-3")
async def test_nothing_queued_is_an_answer_and_no_mistake(crew: Crew) -> None:
    atlas = await crew.agent("atlas")

    claimed = await claim(atlas)

    assert (claimed.job, claimed.jobs, claimed.pause) == (None, (), None)
    assert (claimed.reason, claimed.message) == ("nothing_queued", "Nothing is waiting in the queue.")


async def test_a_drained_agent_is_told_so_and_gets_nothing(crew: Crew) -> None:
    fathom = await crew.agent("fathom")
    made = await crew.enqueue(bound_agent_id=crew.id_of("fathom"))

    claimed = await claim(fathom, wait_seconds=30)

    assert (claimed.jobs, claimed.reason) == ((), "drained")
    assert claimed.message == WHY_NOTHING[WhyNothing.DRAINED]
    assert crew.status(made.id) == "queued"


@pytest.mark.rule("U001-18")
@pytest.mark.parametrize("mode", ["drain", "quiesce"])
async def test_while_the_queue_is_paused_a_claim_brings_the_pause_instead_of_a_job(crew: Crew, mode: str) -> None:
    atlas = await crew.agent("atlas")
    made = await crew.enqueue()
    crew.fleet.execute(
        "update teams set paused_at = now(), pause_mode = %s, pause_reason = 'disk swap' where slug = 'example'",
        mode,
    )

    paused = await claim(atlas)
    crew.fleet.execute(
        "update teams set paused_at = null, pause_mode = null, pause_reason = null, paused_by_user_id = null"
    )
    resumed = await take(atlas)

    assert (paused.jobs, paused.reason) == ((), "paused")
    assert paused.pause is not None
    assert (paused.pause.mode, paused.pause.reason) == (mode, "disk swap")
    assert resumed.id == made.id


@pytest.mark.rule("U000-27", "R000-32")
async def test_a_revoked_agent_is_refused_even_if_it_was_known_before(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    await claim(atlas)
    made = await crew.enqueue()
    crew.fleet.execute("update agents set revoked_at = now(), revocation_reason = 'x' where name = 'atlas'")

    with pytest.raises(Forbidden) as refused:
        await claim(atlas)

    assert refused.value.details["reason"] == "revoked"
    assert crew.status(made.id) == "queued"


async def test_only_agents_claim(crew: Crew) -> None:
    made = await crew.enqueue()

    with pytest.raises(Forbidden):
        await claim(crew.operator)

    assert crew.status(made.id) == "queued"


@pytest.mark.rule("R003-20", "R001-31", "U001-1")
async def test_a_worker_id_is_checked_when_it_is_given(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    made = await crew.enqueue()

    with pytest.raises(Forbidden) as refused:
        await claim(atlas, worker_id="beacon")
    left = crew.status(made.id)
    mine = await take(atlas, worker_id="atlas")

    assert refused.value.details["field"] == "worker_id"
    assert crew.fleet.execute(
        "select actor_type, decision, metadata from audit_log where action = 'worker.refused'"
    ) == [("agent", "block", {"operation": "claims.take", "asked_as": "beacon"})]
    assert (left, mine.id) == ("queued", made.id)


@pytest.mark.rule("R003-39")
@pytest.mark.parametrize("bound", [False, True], ids=["anybody's", "bound"])
@pytest.mark.parametrize(("setting", "longest"), [(None, 3600), (60, 60)])
async def test_a_lease_longer_than_the_team_allows_is_refused(
    crew: Crew, setting: int | None, longest: int, bound: bool
) -> None:
    if setting is not None:
        crew.fleet.execute(
            "insert into settings (team_id, name, value) values (%s, 'lease_max_seconds', %s::text::jsonb)",
            *(crew.fleet.team_id(), setting),
        )
    atlas = await crew.agent("atlas")
    made = await crew.enqueue(bound_agent_id=crew.id_of("atlas") if bound else None)

    with pytest.raises(Invalid) as refused:
        await claim(atlas, lease_seconds=longest + 1)
    left = crew.status(made.id)
    await take(atlas, lease_seconds=longest)

    assert refused.value.details["fields"] == [{"field": "lease_seconds", "problem": f"must be at most {longest}"}]
    assert left == "queued"


@pytest.mark.rule("R003-39")
async def test_a_longest_lease_that_was_changed_counts_for_the_next_claim(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    await crew.enqueue()
    with pytest.raises(Invalid):
        await claim(atlas, lease_seconds=7200)

    crew.fleet.execute(
        "insert into settings (team_id, name, value) values (%s, 'lease_max_seconds', '7200')",
        crew.fleet.team_id(),
    )
    job = await take(atlas, lease_seconds=7200)

    assert job.lease_expires_at - job.assigned_at == timedelta(seconds=7200)


OUTSIDE = [
    ("worker_id", ""),
    ("worker_id", "  "),
    ("worker_id", "x" * 256),
    ("worker_id", "a\0b"),
    ("lease_seconds", 0),
    ("lease_seconds", -5),
    ("lease_seconds", 9),
    ("lease_seconds", 86_401),
    ("lease_seconds", "long"),
    ("count", 0),
    ("count", 51),
    ("wait_seconds", -1),
    ("wait_seconds", 31),
    ("wait_seconds", float("nan")),
    ("allowed_types", [""]),
    ("allowed_types", ["a\0b"]),
    ("allowed_types", ["x"] * 101),
    ("auto_start", "perhaps"),
    ("leaseSeconds", 60),
]


@pytest.mark.rule("R003-20", "R003-38", "R003-39")
@pytest.mark.parametrize(("field", "value"), OUTSIDE)
def test_what_no_claim_can_ask_for_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(ValidationError) as refused:
        Claim.model_validate({field: value})

    assert {error["loc"][0] for error in refused.value.errors()} == {field}
