"""The filter language on the command line: the same text as in the console."""

from pathlib import Path

import pytest

from agent_console.repository.postgres.walked_pages import WALKED_AT_MOST
from tests.cli.program import agent_console
from tests.support.fleet import Fleet
from tests.support.warm_start import PROGRAMS
from tests.tui_console.stage import ADMIN

pytestmark = pytest.mark.xdist_group(PROGRAMS)


def listed(fleet: Fleet, home: Path, noun: str, *filter: str) -> list[str]:
    where = ("--dsn", fleet.working, "--team", "example", "--user", ADMIN)
    ended = agent_console(*where, noun, "list", "-o", "ids", *filter, home=home)
    assert ended.code == 0, ended.err
    return ended.out.split()


def test_jobs_and_agents_are_filtered_and_a_page_is_filled_however_rare_they_are(
    tmp_path: Path, fleet: Fleet
) -> None:
    fleet.add_jobs(2, type="needle", since="2030-01-01")
    fleet.add_jobs(WALKED_AT_MOST + 10, since="2031-01-01")

    needles = listed(fleet, tmp_path, "jobs", "--filter", "needle !status:succeeded")
    atlas = listed(fleet, tmp_path, "agents", "--filter", "atl")

    assert len(needles) == 2
    assert atlas == [str(fleet.agent_id("atlas"))]


def test_a_mistake_names_its_place_and_help_names_the_qualifiers(tmp_path: Path) -> None:
    refused = agent_console("jobs", "list", "--filter", "stauts:failed", home=tmp_path)
    told = agent_console("jobs", "list", "--help", home=tmp_path, COLUMNS="200")

    assert refused.code != 0
    assert "did you mean status:?" in refused.err
    assert "status: its state" in " ".join(told.out.split())
