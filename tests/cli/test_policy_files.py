"""Policy files from the command line, as somebody keeps them in a repository."""

import json
from pathlib import Path

import pytest

from agent_console.cli.policy_files import text_of
from agent_console.domain.errors import ConsoleError, Invalid, TooLarge
from agent_console.domain.policy_plans import POLICY_FILE_BYTES
from tests.cli.program import Ended, agent_console
from tests.support.fleet import Fleet
from tests.support.warm_start import PROGRAMS

pytestmark = pytest.mark.xdist_group(PROGRAMS)

POLICY = """\
# reviewed by two people
format: 1
routes:
  - from: atlas
    to: beacon
    policy: allowed
    notes: nightly reports
  - {from: ember, to: atlas, policy: requires_human_approval}
"""


def test_a_policy_is_planned_applied_exported_and_applied_again(tmp_path: Path, fleet: Fleet) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)

    def routes(*words: str, stdin: str = "") -> Ended:
        return agent_console("routes", *words, home=tmp_path, stdin=stdin, AGENT_CONSOLE_DSN=fleet.working)

    plan = routes("apply", str(file), "--dry-run")
    planned = fleet.one("select count(*) from a2a_routes")
    digest = plan.err.split()[-1]
    done = routes("apply", str(file), "--expect-digest", digest, "--reason", "first policy", "-o", "json")
    exported = routes("export")
    again = routes("apply", "-", stdin=exported.out)

    assert (plan.code, planned) == (0, 0), plan.err
    assert [line.split() for line in plan.out.splitlines()] == [
        ["CHANGE", "FROM", "TO", "WAS", "BECOMES", "NEW", "NOTES"],
        ["+", "create", "atlas", "beacon", "-", "allowed", "nightly", "reports"],
        ["+", "create", "ember", "atlas", "-", "requires_human_approval"],
    ]
    assert "Plan: 2 to create, 0 to update, 0 to delete, 0 routes unchanged." in plan.err
    assert (done.code, json.loads(done.out)["created"]) == (0, 2), done.err
    assert fleet.execute("select distinct reason from a2a_route_versions") == [("first policy",)]
    assert (exported.code, exported.err) == (0, "")
    assert "  to: beacon\n  policy: allowed\n  notes: nightly reports\n" in exported.out
    assert (again.code, again.out) == (0, "")
    assert again.err == "The policy is what the file says; 2 routes unchanged.\n"


def test_a_file_that_cannot_be_applied_ends_with_two_and_its_lines(tmp_path: Path, fleet: Fleet) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY.replace("beacon", "b\\u202eacon\\n").replace("to: atlas", "too: atlas"))

    words = ("routes", "apply", str(file), "--dry-run")
    wrong = agent_console(*words, home=tmp_path, AGENT_CONSOLE_DSN=fleet.working)

    assert (wrong.code, wrong.out) == (2, "")
    assert 'line 8: "too" is no key of a route; there are: from, to, policy, notes' in wrong.err


@pytest.mark.parametrize(
    ("content", "refusal", "said"),
    [
        (b"format: 1\nroutes: \xff\n", Invalid, "Line 2 of .* is not UTF-8"),
        (b"#" * (POLICY_FILE_BYTES + 1), TooLarge, "at most 1,000,000 bytes"),
        (None, Invalid, "can't be read: No such file"),
    ],
)
def test_a_file_that_is_no_text_is_refused_with_exit_code_two(
    tmp_path: Path, content: bytes | None, refusal: type[ConsoleError], said: str
) -> None:
    file = tmp_path / "policy.yaml"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(refusal, match=said) as refused:
        text_of(str(file))

    assert refused.value.exit_code == 2


def test_a_mark_at_the_beginning_of_a_file_is_no_word(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + POLICY.encode())

    assert text_of(str(file)) == POLICY


def test_who_said_that_nothing_may_be_changed_is_named(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)

    ended = agent_console("--read-only", "routes", "apply", str(file), home=tmp_path)

    assert ended.code == 2
    assert "it is read-only, says command line --read-only." in ended.err
