"""What a picture needs: a fleet that nobody changes, and a comparison that waits for the data."""

import itertools
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol, TypeAlias

import pytest
from pytest_textual_snapshot import SVGImageExtension
from syrupy.assertion import SnapshotAssertion
from textual._doc import take_svg_screenshot
from textual.app import App
from textual.pilot import Pilot

from tests.conftest import FLEET_TEMPLATE
from tests.support.clusters import TemplateDatabase
from tests.support.fleet import Fleet
from tests.tui_console.stage import app_of, has_detail, has_list, loaded, press, story_of, until

Size: TypeAlias = tuple[int, int]
Sizes: TypeAlias = Size | tuple[Size, ...]
Story: TypeAlias = Callable[[Pilot[None]], Awaitable[None]]

NARROW: Size = (60, 20)
USUAL: Size = (80, 24)
ROOMY: Size = (120, 40)
WIDE: Size = (200, 60)


def dimensions(size: Size) -> str:
    """A size as it stands in a picture's name."""
    return "{}x{}".format(*size)


@pytest.fixture
def size(request: pytest.FixtureRequest) -> Sizes:
    """The sizes of the test's mark: one console is drawn out to each in turn."""
    mark = request.node.get_closest_marker("sizes")
    assert mark is not None, "say which: @pytest.mark.sizes(USUAL, WIDE)"
    sizes: tuple[Size, ...] = mark.args
    return sizes


class OneSize(Protocol):
    """The fixture of pytest-textual-snapshot, as far as it is used here."""

    def __call__(
        self,
        app: App[None],
        press: Iterable[str] = (),
        terminal_size: Size = USUAL,
        run_before: Story | None = None,
    ) -> bool: ...


class SnapCompare(Protocol):
    """Whether the app, after its story, looks as it was accepted, at every one of these sizes."""

    def __call__(self, app: App[None], *, terminal_size: Sizes = USUAL, run_before: Story) -> bool: ...


class LooksRight(Protocol):
    """Whether the app, after its data has come and these keys were pressed, looks as it was accepted."""

    def __call__(self, app: App[None], size: Sizes, *keys: str) -> bool: ...


class LooksRightInTurn(Protocol):
    """The same for one console that is led from place to place: by a picture's name, the keys that lead there."""

    def __call__(self, app: App[None], sizes: Sizes, places: Mapping[str, tuple[str, ...]]) -> bool: ...


def _several(sizes: Sizes) -> tuple[Size, ...]:
    return tuple(size for size in sizes if isinstance(size, tuple))


async def _resize(pilot: Pilot[None], size: Size) -> None:
    """Draw the terminal out, and wait for what a larger one shows more."""
    app = app_of(pilot)
    had_list = has_list(app)
    await pilot.resize_terminal(*size)
    await pilot.pause()
    await until(lambda: (has_list(app) or not had_list) and has_detail(app), f"everything at {dimensions(size)}")
    await _settle(pilot)


async def _settle(pilot: Pilot[None]) -> None:
    """Everybody has heard of their new size, and of what others made of theirs."""
    for _ in range(2):
        await pilot._wait_for_screen()
        await pilot.pause()


def _settled(story: Story) -> Story:
    async def tell(pilot: Pilot[None]) -> None:
        await story(pilot)
        await _settle(pilot)

    return tell


async def _picture(pilot: Pilot[None]) -> str:
    await _settle(pilot)
    await pilot.wait_for_scheduled_animations()
    await pilot.pause()
    return pilot.app.export_screenshot(title=pilot.app.title, simplify=True)


def _taken(app: App[None], sizes: tuple[Size, ...], story: Story) -> dict[str, str]:
    """The pictures of one console, by the names of their sizes."""
    pictures: dict[str, str] = {}

    async def all_but_the_last(pilot: Pilot[None]) -> None:
        await story(pilot)
        for here, there in itertools.pairwise(sizes):
            pictures[dimensions(here)] = await _picture(pilot)
            await _resize(pilot, there)

    last = take_svg_screenshot(app=app, terminal_size=sizes[0], run_before=all_but_the_last)
    return pictures | {dimensions(sizes[-1]): last}


def _taken_in_turn(
    app: App[None], sizes: tuple[Size, ...], places: Mapping[str, tuple[str, ...]]
) -> dict[str, str]:
    """The pictures of one console, by the names of their places and sizes."""
    pictures: dict[str, str] = {}

    async def everywhere(pilot: Pilot[None]) -> None:
        await loaded(pilot)
        for place, keys in places.items():
            await press(pilot, *keys)
            for size, next_size in itertools.pairwise((*sizes, sizes[0])):
                pictures[f"{place}][{dimensions(size)}"] = await _picture(pilot)
                await _resize(pilot, next_size)

    take_svg_screenshot(app=app, terminal_size=sizes[0], run_before=everywhere)
    return pictures


class Accepted:
    """The pictures of a test as somebody has looked at them."""

    def __init__(self, accepted: SnapshotAssertion, folder: Path) -> None:
        self._accepted = accepted
        self._folder = folder

    def are(self, pictures: Mapping[str, str]) -> bool:
        differing = []
        for name, picture in pictures.items():
            if self._accepted(name=name) != picture:
                (self._folder / f"{name}.svg").write_text(picture)
                differing.append(f"{self._folder / name}.svg")
        if differing:
            pytest.fail(f"it looks otherwise than it was accepted: {', '.join(differing)}", pytrace=False)
        return True


@pytest.fixture
def accepted(snapshot: SnapshotAssertion, tmp_path: Path) -> Accepted:
    return Accepted(snapshot.use_extension(SVGImageExtension), tmp_path)


@pytest.fixture
def snap_compare(snap_compare: OneSize, accepted: Accepted) -> SnapCompare:
    def compare(app: App[None], *, terminal_size: Sizes = USUAL, run_before: Story) -> bool:
        if isinstance(terminal_size[0], int):
            width, height = terminal_size
            assert isinstance(width, int)
            assert isinstance(height, int)
            return snap_compare(app, terminal_size=(width, height), run_before=_settled(run_before))
        return accepted.are(_taken(app, _several(terminal_size), run_before))

    return compare


@pytest.fixture
def looks_right(snap_compare: SnapCompare) -> LooksRight:
    def compare(app: App[None], size: Sizes, *keys: str) -> bool:
        return snap_compare(app, terminal_size=size, run_before=story_of(*keys))

    return compare


@pytest.fixture
def looks_right_in_turn(accepted: Accepted) -> LooksRightInTurn:
    def compare(app: App[None], sizes: Sizes, places: Mapping[str, tuple[str, ...]]) -> bool:
        return accepted.are(_taken_in_turn(app, _several(sizes), places))

    return compare


@pytest.fixture(scope="session")
def still_fleet(templates: TemplateDatabase) -> Iterator[Fleet]:
    """The fixed fleet, shared by every picture that does not change it."""
    name = "still_fleet"
    templates.clone(FLEET_TEMPLATE, name)
    with Fleet(templates.cluster.dsn(name)) as fleet:
        yield fleet
    templates.drop(name)


@pytest.fixture(scope="session")
def still_story(templates: TemplateDatabase, story_template: str) -> Iterator[Fleet]:
    """The fixed fleet with its conversations, shared by every picture that does not change them."""
    name = "still_story"
    templates.clone(story_template, name)
    with Fleet(templates.cluster.dsn(name)) as fleet:
        yield fleet
    templates.drop(name)
