"""What every test may ask for: a PostgreSQL, a database of its own, a fleet in it."""

import itertools
import os
import signal
from collections.abc import Iterator

import pytest

from agent_console.database import example_fleet
from agent_console.database.migrate import migrate
from tests.support.clusters import Cluster, TemplateDatabase, cluster, reachable_folder
from tests.support.fleet import AT, Fleet

EMPTY_TEMPLATE = "template_empty"
FLEET_TEMPLATE = "template_fleet"
_numbers = itertools.count(1)

# A run that was started in the background ignores these, and so would every program that a test starts.
for ignored, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(ignored) is signal.SIG_IGN:
        signal.signal(ignored, default)

# They change what Textual paints; a picture must not depend on who runs the tests.
for name in ("NO_COLOR", "TEXTUAL_THEME", "COLORTERM", "FORCE_COLOR"):
    os.environ.pop(name, None)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """PostgreSQL 18 for the whole run."""
    with reachable_folder() as folder, cluster(18, folder) as running:
        yield running


@pytest.fixture(scope="session")
def templates(postgres: Cluster) -> TemplateDatabase:
    """Two databases to clone: one migrated and empty, one with the fixed fleet."""
    databases = TemplateDatabase(postgres)
    databases.clone("template0", EMPTY_TEMPLATE)
    migrate(postgres.dsn(EMPTY_TEMPLATE))
    databases.clone(EMPTY_TEMPLATE, FLEET_TEMPLATE)
    example_fleet.fill(postgres.dsn(FLEET_TEMPLATE), AT)
    return databases


def _cloned(databases: TemplateDatabase, template: str) -> Iterator[str]:
    name = f"test_{next(_numbers)}"
    databases.clone(template, name)
    yield databases.cluster.dsn(name)
    databases.drop(name)


@pytest.fixture
def database(templates: TemplateDatabase) -> Iterator[str]:
    """A migrated, empty database of the test's own; the value is an administrator's DSN."""
    yield from _cloned(templates, EMPTY_TEMPLATE)


@pytest.fixture
def fleet(templates: TemplateDatabase) -> Iterator[Fleet]:
    """The fixed fleet in a database of the test's own."""
    for dsn in _cloned(templates, FLEET_TEMPLATE):
        yield Fleet(dsn)
