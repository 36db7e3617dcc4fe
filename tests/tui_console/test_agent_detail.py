"""One agent, whole: how it is, what it does, what it did, what belongs to it."""

import pytest

from agent_console.domain.ids import CollectionId, SessionId
from agent_console.repository.port import Topic
from agent_console.tui.link import Opening
from tests.attacks.hostile_strings import HOSTILE, dangers
from tests.support.fleet import AT, Fleet
from tests.tui_console.stage import (
    ADMIN,
    announce,
    cells,
    console,
    directly,
    list_of,
    loaded,
    press,
    row_ids,
    shown_text,
    until,
)

OPERATOR = "ole@example.com"
TALL = (80, 60)
IDLE = "It works on nothing."
END_ALL_WORK = """
    update jobs
       set status = 'succeeded', finished_at = now(), claimed_by = null, lease_expires_at = null,
           lease_seconds = null, look_at = null
     where status in ('assigned', 'running')
"""


def add_collection(fleet: Fleet, name: str, agent: str) -> None:
    fleet.execute(
        "insert into collections (team_id, id, name, type, bound_agent_id, created_by_user_id)"
        " values (%s, %s, %s, 'local', %s, %s)",
        *(fleet.team_id(), CollectionId.new(), name, fleet.agent_id(agent), fleet.user_id(ADMIN)),
    )


def open_session(fleet: Fleet, agent: str, session_id: SessionId) -> None:
    fleet.execute(
        "insert into sessions (team_id, id, agent_id, user_id, created_at) values (%s, %s, %s, %s, %s)",
        *(fleet.team_id(), session_id, fleet.agent_id(agent), fleet.user_id(ADMIN), AT),
    )


def section(text: str, title: str) -> str:
    """From a title to the next blank line."""
    return text.partition(f"\n {title}")[2].partition("\n\n")[0]


@pytest.mark.rule("U000-38")
async def test_everything_about_an_agent_is_in_its_detail(opening: Opening, fleet: Fleet) -> None:
    add_collection(fleet, "Photos of 2021", "atlas")
    session_id = SessionId.new()
    open_session(fleet, "atlas", session_id)
    app = console(opening)
    async with app.run_test(size=TALL) as pilot:
        await loaded(pilot)

        await press(pilot, "enter")

        shown = shown_text(app)
        assert "● online" in shown
        assert "cpu 31%, memory 54%" in shown
        assert "local_filesystem, tool:photostats:1.2.3" in shown
        assert "● running" in section(shown, "current jobs")
        assert "✓ succeeded" not in section(shown, "current jobs")
        assert "2,741 files" in section(shown, "recent jobs")
        assert str(session_id) in section(shown, "open sessions")
        assert "Photos of 2021" in section(shown, "bound collections")


@pytest.mark.rule("U000-38")
async def test_the_last_ten_jobs_are_shown_newest_first(fleet: Fleet) -> None:
    fleet.add_jobs(12, status="failed", since="2100-01-01")
    fleet.execute("update jobs set agent_id = %s where type = 'bulk'", fleet.agent_id("atlas"))
    fleet.execute("update jobs set error_message = 'no. ' || right(id::text, 1) where type = 'bulk'")
    app = console(directly(fleet.working))
    async with app.run_test(size=TALL) as pilot:
        await loaded(pilot)

        await press(pilot, "enter")

        numbers = [line.split()[-1] for line in section(shown_text(app), "recent jobs").splitlines()[1:11]]
        assert numbers == ["c", "b", "a", "9", "8", "7", "6", "5", "4", "3"]


async def test_a_part_that_cannot_be_loaded_says_so_and_the_rest_is_there(opening: Opening, fleet: Fleet) -> None:
    open_session(fleet, "atlas", SessionId.new())
    fleet.execute("update agents set owner_user_id = %s where name = 'atlas'", fleet.user_id(OPERATOR))
    app = console(opening)
    async with app.run_test(size=TALL) as pilot:
        await loaded(pilot)

        await press(pilot, "enter")

        shown = shown_text(app)
        assert "✗ Could not be loaded: Only the owner" in section(shown, "open sessions")
        assert "● running" in section(shown, "current jobs")
        assert "None is bound to it." in section(shown, "bound collections")


async def test_it_follows_what_happens_to_its_jobs(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=TALL) as pilot:
        await loaded(pilot)
        await press(pilot, "enter")

        fleet.execute(END_ALL_WORK)
        announce(fleet, Topic.JOBS)

        await until(lambda: IDLE in section(shown_text(app), "current jobs"), "the end of its work")


async def test_its_jobs_are_one_key_away_and_so_is_the_way_back(opening: Opening, fleet: Fleet) -> None:
    app = console(opening)
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "enter", "w")
        await until(lambda: list_of(app).kind.name.startswith("jobs-"), "the jobs of the agent")
        await press(pilot, "r")

        assert "Jobs of atlas" in shown_text(app)
        assert {cells(list_of(app), job)[2] for job in row_ids(list_of(app))} == {"atlas"}

        await press(pilot, "escape")
        assert list_of(app).kind.name == "agents"


async def test_a_key_pressed_twice_opens_one_list(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)

        list_of(app).action_below("jobs")
        list_of(app).action_below("jobs")

        await until(lambda: list_of(app).kind.name.startswith("jobs-"), "the jobs of the agent")
        await press(pilot, "r")
        assert len(row_ids(list_of(app))) == 2


async def test_what_others_wrote_is_harmless_in_every_part(fleet: Fleet) -> None:
    words = HOSTILE["csi clear screen"][:60]
    add_collection(fleet, words, "atlas")
    fleet.execute("update jobs set type = %s where agent_id = %s", words, fleet.agent_id("atlas"))
    fleet.execute("update jobs set result_summary = %s where status = 'succeeded'", HOSTILE["click action"][:60])
    app = console(directly(fleet.working))
    async with app.run_test(size=(160, 60)) as pilot:
        await loaded(pilot)

        await press(pilot, "enter")

        shown = shown_text(app)
        assert r"\x1b[" in section(shown, "current jobs")
        assert "[@click=" in section(shown, "recent jobs")
        assert r"\x1b[" in section(shown, "bound collections")
        assert dangers(shown.replace("\n", "")) == []
