"""Output of every kind reaches the job's story: cut, cleaned, without secrets, in batches, and bounded."""

import sys

import pytest
from pydantic import JsonValue

from agent_console.agent import JobContext
from agent_console.agent.hiding import MOST_LINES, HiddenSecrets
from agent_console.agent.lines import LINE_BYTES, Lines
from agent_console.agent.said import NotUnderstood, Words, said_in
from agent_console.server.allowed import BODY_DEPTH
from tests.agent.stage import Stage, until

PEM = ("-----BEGIN RSA PRIVATE KEY-----", "MIIEpAIBAAKCAQEA7", "q83vEjRWeJA=", "-----END RSA PRIVATE KEY-----")


async def test_a_line_of_a_megabyte_is_cut_and_says_so(stage: Stage) -> None:
    job_id = await stage.enqueue()
    script = "import sys; sys.stdout.write('x' * 1_000_000 + '\\nafter\\n')"

    async with stage.working(stage.command(sys.executable, "-c", script)):
        became = await stage.ended(job_id)

    words = [str(words) for _, words in stage.lines(job_id)]
    cut = "".join(words[:-1])
    assert (became, words[-1]) == ("succeeded", "after")
    assert cut == "x" * LINE_BYTES + f"… +{1_000_000 - LINE_BYTES} bytes"


@pytest.mark.rule("U001-10", "U001-21")
async def test_strange_bytes_are_replaced_and_secrets_taken_out(stage: Stage) -> None:
    job_id = await stage.enqueue()
    script = (
        r"printf 'caf\303 \000 end\r\n'; echo; echo 'token=abcdef'; "
        rf"printf '%s\n' {' '.join(repr(line) for line in PEM)} after; echo 'Bearer abc123def456ghi789' >&2; "
        "printf 'no line break'"
    )

    async with stage.working(stage.shell(script)):
        became = await stage.ended(job_id)

    lines = stage.lines(job_id)
    assert became == "succeeded"
    assert [words for level, words in lines if level == "info"] == [
        "caf\N{REPLACEMENT CHARACTER} \N{REPLACEMENT CHARACTER} end",
        "token=«redacted»",
        *(["«redacted»"] * 4),
        "after",
        "no line break",
    ]
    assert [words for level, words in lines if level == "warn"] == ["Bearer «redacted»"]


async def test_lines_that_the_server_does_not_take_are_left_out_and_counted(stage: Stage) -> None:
    """While nobody takes them a job says three times of what there is room for."""
    job_id = await stage.enqueue()
    said = []

    async def talks(job: JobContext) -> None:
        await stage.stop_server()
        for number in range(3_000):
            job.event(f"{number} " + "x" * 1_000)
        said.append(3_000)
        await stage.start_server()

    async with stage.working(talks):
        await until(lambda: bool(said))
        await stage.ended(job_id)

    words = [str(words) for _, words in stage.lines(job_id)]
    *told, marker = words
    assert 0 < len(told) < 1_000
    assert [int(line.partition(" ")[0]) for line in told] == list(range(len(told)))
    expected = (
        f"{3_000 - len(told):,} lines were left out here: the server did not take them as fast as they came."
    )
    assert marker == expected


async def test_many_lines_go_in_few_calls(stage: Stage) -> None:
    job_id = await stage.enqueue()

    async with stage.working(stage.shell("seq 1 2000")):
        await stage.ended(job_id)

    assert [words for _, words in stage.lines(job_id)] == [str(number) for number in range(1, 2001)]
    # Every call is one statement, and every statement one moment.
    calls = "select count(distinct created_at) from job_events where job_id = %s and message ~ '^[0-9]+$'"
    assert int(str(stage.fleet.one(calls, job_id))) < 40


async def test_a_line_that_costs_more_than_a_call_goes_alone_and_nothing_stands_still(stage: Stage) -> None:
    job_id = await stage.enqueue()

    async def talks(job: JobContext) -> None:
        job.event("before")
        job.event("large", payload={"sizes": [1] * 60_000})
        job.event("after")

    async with stage.working(talks):
        became = await stage.ended(job_id)

    assert (became, [words for _, words in stage.lines(job_id)]) == ("succeeded", ["before", "large", "after"])
    length = "select jsonb_array_length(payload->'sizes') from job_events where job_id = %s and message = 'large'"
    assert stage.fleet.one(length, job_id) == 60_000


async def test_a_line_that_the_server_refuses_costs_none_of_its_neighbours(stage: Stage) -> None:
    job_id = await stage.enqueue()
    deep: JsonValue = "the bottom"
    for _ in range(BODY_DEPTH):
        deep = [deep]

    async def talks(job: JobContext) -> None:
        for number in range(5):
            job.event(f"{number}", payload={"deep": deep} if number == 3 else None)

    async with stage.working(talks):
        became = await stage.ended(job_id)

    refused = f"A line was refused here: The body is nested more than {BODY_DEPTH} levels deep."
    told = [(level, str(words)[: len(refused)]) for level, words in stage.lines(job_id)]
    assert (became, told) == (
        "succeeded",
        [("info", "0"), ("info", "1"), ("info", "2"), ("warn", refused), ("info", "4")],
    )


async def test_a_payload_that_is_no_json_costs_its_line_nothing_else(stage: Stage) -> None:
    job_id = await stage.enqueue()
    facts: dict[str, JsonValue] = {}
    facts["again"] = [facts]

    async def talks(job: JobContext) -> None:
        job.event("words", payload=facts)

    async with stage.working(talks):
        became = await stage.ended(job_id)

    left_out = (
        "The payload of the next line was left out: it is nested more than 100 levels deep, or holds itself."
    )
    assert (became, stage.lines(job_id)) == ("succeeded", [("warn", left_out), ("info", "words")])


async def test_whoever_wants_no_output_told_still_hears_of_progress_and_results(stage: Stage) -> None:
    from dataclasses import replace

    job_id = await stage.enqueue()
    command = stage.shell(
        """echo secret words; echo loud >&2; echo '{"agent_console": "result", "summary": "ok"}'"""
    )

    async with stage.working(replace(command, tells_output=False)):
        await stage.ended(job_id)

    assert (stage.lines(job_id), stage.column(job_id, "result_summary")) == ([], "ok")


def test_lines_are_the_same_however_the_bytes_come() -> None:
    data = "eins\nzwei ä\r\n\ndrei".encode()

    whole = Lines()
    at_once = [*whole.feed(data), *whole.last()]
    single = Lines()
    one_by_one = [line for byte in data for line in single.feed(bytes([byte]))] + list(single.last())

    assert at_once == one_by_one == ["eins", "zwei ä", "", "drei"]


def test_a_text_that_only_mentions_a_private_key_hides_a_bounded_number_of_lines() -> None:
    secrets = HiddenSecrets()

    first = secrets.line("-----BEGIN PRIVATE KEY----- is how it begins")
    hidden = [secrets.line("words") for _ in range(MOST_LINES)]
    after = secrets.line("words")

    assert (first.startswith("«redacted»"), set(hidden), after) == (True, {"«redacted»"}, "words")


@pytest.mark.parametrize(
    "line",
    [
        '{"agent_console": ' + "[" * 60_000,
        '{"agent_console": "progress", "percentage": NaN}',
        '["agent_console"]',
        '{"a": "agent_console", "b": "\\"agent_console\\""}',
    ],
    ids=["deep", "nan", "list", "elsewhere"],
)
def test_what_only_looks_like_a_form_is_plain_words(line: str) -> None:
    assert said_in(line) == Words(line)


@pytest.mark.parametrize("levels", [101, 300, 700])
def test_a_form_that_is_nested_too_deep_says_so(levels: int) -> None:
    line = '{"agent_console": "event", "message": "deep", "payload": {"a": ' + "[" * levels + "]" * levels + "}}"

    assert said_in(line) == NotUnderstood(line, "it is nested more than 100 levels deep, or holds itself")
