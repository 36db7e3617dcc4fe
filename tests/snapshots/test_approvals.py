"""What waits for a person: the list, one request of it in every state, the questions asked about it."""

from collections.abc import Awaitable, Callable

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from tests.snapshots.conftest import NARROW, USUAL, WIDE, Sizes, SnapCompare
from tests.support.fleet import AT, Fleet
from tests.tui_console.approval_stage import DEPLOY, STATIONS, Desk, at, set_words
from tests.tui_console.stage import SteppingClock, app_of, console, loaded, press, until

Story = Callable[[Desk], Awaitable[None]]
Pictured = Callable[..., bool]
OLE, VERA = "ole@example.com", "vera@example.com"
LONG = "\n".join(f"{line}. Delete the builds of week {line}." for line in range(1, 61))
HOSTILE = (
    "Deploy build 4812.\x1b]0;x\x07\n"
    "╭ system ─ pre-approved by Ana Costa ╮\nstate  ✓ approved [/] [@click=app.quit]\u202e"
)


@pytest.fixture
def pictured(snap_compare: SnapCompare) -> Pictured:
    """Whether a console of this person looks as it was accepted, after its story."""

    def compare(
        fleet: Fleet, story: Story, size: Sizes = USUAL, email: str = "ana@example.com", theme: str = "dark"
    ) -> bool:
        clock = SteppingClock(AT)
        app = console(at(fleet, email), start="approvals", clock=clock, theme=theme)

        async def told(pilot: Pilot[None]) -> None:
            await loaded(pilot)
            # Who looks at what is on no picture: the pictures share their fleet.
            fleet.execute("delete from approval_looks")
            await story(Desk(pilot, app_of(pilot), clock))
            await pilot.pause()

        return snap_compare(app, terminal_size=size, run_before=told)

    return compare


def opened(words: str, *keys: str, then: str = "") -> Story:
    """What is seen of a request after these keys, once it says so."""

    async def story(desk: Desk) -> None:
        await desk.opens(words)
        await press(desk.pilot, *keys)
        await desk.sees(then)
        if desk.app.screen.query(Input):
            await until(lambda: desk.app.focused is not None, "the cursor in the field")

    return story


def pressed(*keys: str) -> Story:
    async def story(desk: Desk) -> None:
        await press(desk.pilot, *keys)

    return story


@pytest.mark.sizes(NARROW, USUAL, WIDE)
def test_the_list(pictured: Pictured, still_story: Fleet, size: Sizes) -> None:
    assert pictured(still_story, pressed("down"), size)


def test_what_was_decided(pictured: Pictured, still_story: Fleet) -> None:
    assert pictured(still_story, pressed("f"))


def test_nothing_waits(pictured: Pictured, still_fleet: Fleet) -> None:
    assert pictured(still_fleet, pressed())


@pytest.mark.sizes(NARROW, USUAL, WIDE)
def test_a_request(pictured: Pictured, still_story: Fleet, size: Sizes) -> None:
    assert pictured(still_story, opened(DEPLOY), size)


def test_a_request_in_sixteen_colours(pictured: Pictured, still_story: Fleet) -> None:
    assert pictured(still_story, opened(DEPLOY), theme="ansi")


def test_a_request_without_colour(pictured: Pictured, still_story: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    assert pictured(still_story, opened(DEPLOY), theme="mono")


def test_the_question(pictured: Pictured, still_story: Fleet) -> None:
    assert pictured(still_story, opened(DEPLOY, "a", then="y approves, anything else"))


def test_the_reason(pictured: Pictured, still_story: Fleet) -> None:
    assert pictured(still_story, opened(STATIONS, "r", then="Press y to reject"))


def test_the_first_half_second(pictured: Pictured, still_story: Fleet) -> None:
    assert pictured(still_story, pressed("enter"))


def test_ones_own(pictured: Pictured, still_story: Fleet) -> None:
    assert pictured(still_story, opened(DEPLOY), email=OLE)


def test_for_a_viewer(pictured: Pictured, still_story: Fleet) -> None:
    assert pictured(still_story, opened(STATIONS), email=VERA)


def test_long_and_hostile_words(pictured: Pictured, story: Fleet) -> None:
    set_words(story, DEPLOY, f"{HOSTILE}\n{LONG}")

    assert pictured(story, opened("4812"))


@pytest.mark.parametrize("state", ["rejected", "expired"])
def test_over_under_the_eyes(pictured: Pictured, story: Fleet, state: str) -> None:
    async def ends(desk: Desk) -> None:
        await desk.opens(DEPLOY)
        story.execute(
            "update approvals set state = %s, decided_at = %s, decision_reason = 'not at night',"
            " decided_by_user_id = %s where state = 'pending'",
            *(state, AT, story.user_id(OLE) if state == "rejected" else None),
        )
        await desk.sees(state)

    assert pictured(story, ends)


def test_several_at_once(pictured: Pictured, story: Fleet) -> None:
    story.execute(
        "update approvals set from_agent_id = %s, to_agent_id = %s where state = 'pending'",
        *(story.agent_id("dispatch"), story.agent_id("gantry")),
    )

    async def marked(desk: Desk) -> None:
        await press(desk.pilot, "space", "space", "a")
        desk.wait_a_moment()
        await desk.sees("2 × ")

    assert pictured(story, marked)
