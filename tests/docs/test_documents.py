"""What README and docs tell the reader to type is typed here, by a real shell, at a real server and database."""

import re
import shlex
from pathlib import Path

import pytest

from tests.docs.blocks import REPOSITORY, documents, read
from tests.docs.command_line import accepted
from tests.docs.stage import Stage
from tests.support.warm_start import PROGRAMS

pytestmark = pytest.mark.xdist_group(PROGRAMS)
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(#[^)]*)?\)")
TEST = re.compile(r"\b(\w+/test_\w+\.py)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
WITH_COMMANDS = [path for path in documents() if read(path).commands]


@pytest.mark.parametrize("path", WITH_COMMANDS, ids=lambda path: path.name)
def test_every_command_works_as_it_is_written(path: Path, documented: Stage) -> None:
    documented.run(read(path))


@pytest.mark.parametrize("path", [REPOSITORY / "examples" / "README.md"], ids=lambda path: path.parent.name)
def test_commands_that_wait_for_a_person_would_at_least_be_taken(path: Path) -> None:
    words = [shlex.split(command.words, comments=True) for command in read(path).commands]

    ours = [given[1:] for given in words if given[0] == "agent-console"]
    assert len(ours) >= 10
    assert all(accepted(given) for given in ours)


def test_few_commands_are_left_out_and_each_says_why() -> None:
    read_ones = [read(path) for path in documents()]

    assert sum(len(document.commands) for document in read_ones) >= 70
    assert sum(len(document.not_run) for document in read_ones) <= 6


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.name)
def test_every_link_inside_the_repository_leads_somewhere(path: Path) -> None:
    for target, anchor in LINK.findall(path.read_text(encoding="utf-8")):
        led_to = (path.parent / target).resolve() if target else path
        assert led_to.exists(), f"{path.name} leads to {target}"
        assert REPOSITORY in led_to.parents
        if anchor:
            assert anchor.removeprefix("#") in anchors(led_to), f"{path.name} leads to {target}{anchor}"


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.name)
def test_every_test_that_a_page_names_is_there(path: Path) -> None:
    named = TEST.findall(path.read_text(encoding="utf-8"))

    assert [name for name in named if not (REPOSITORY / "tests" / name).exists()] == []


def anchors(path: Path) -> set[str]:
    headings = HEADING.findall(path.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
