"""What a picture needs: a fleet that nobody changes, and a comparison that waits for the data."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Protocol

import pytest
from textual.app import App
from textual.pilot import Pilot

from tests.conftest import FLEET_TEMPLATE
from tests.support.clusters import TemplateDatabase
from tests.support.fleet import Fleet
from tests.tui_console.stage import story_of

Size = tuple[int, int]
Story = Callable[[Pilot[None]], Awaitable[None]]

NARROW: Size = (60, 20)
USUAL: Size = (80, 24)
ROOMY: Size = (120, 40)
WIDE: Size = (200, 60)


def dimensions(size: Size) -> str:
    """A size as it stands in a test's name."""
    return "{}x{}".format(*size)


class SnapCompare(Protocol):
    """The fixture of pytest-textual-snapshot, as far as it is used here."""

    def __call__(
        self,
        app: App[None],
        press: Iterable[str] = (),
        terminal_size: Size = USUAL,
        run_before: Story | None = None,
    ) -> bool: ...


class LooksRight(Protocol):
    """Whether the app, after its data has come and these keys were pressed, looks as it was accepted."""

    def __call__(self, app: App[None], size: Size, *keys: str) -> bool: ...


@pytest.fixture
def looks_right(snap_compare: SnapCompare) -> LooksRight:
    def compare(app: App[None], size: Size, *keys: str) -> bool:
        return snap_compare(app, terminal_size=size, run_before=story_of(*keys))

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
