"""What every test may ask for: a PostgreSQL, a database of its own, a fleet in it."""

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from agent_console.database.migrate import migrate
from tests.support import example_fleet, example_story
from tests.support.clusters import Cluster, TemplateDatabase, cluster, reachable_folder, template_database
from tests.support.compiled_once import compile_once
from tests.support.fleet import AT, Fleet
from tests.support.lending import Lending
from tests.support.long_first import turn
from tests.support.one_way import kept
from tests.support.parsed_once import parse_once

EMPTY_TEMPLATE = "template_empty"
FLEET_TEMPLATE = "template_fleet"
STORY_TEMPLATE = "template_story"

# A run that was started in the background ignores these, and so would every program that a test starts.
for ignored, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(ignored) is signal.SIG_IGN:
        signal.signal(ignored, default)

# They change what Textual paints; a picture must not depend on who runs the tests.
for name in ("NO_COLOR", "TEXTUAL_THEME", "COLORTERM", "FORCE_COLOR"):
    os.environ.pop(name, None)

# No test speaks TLS, and reading the machine's root certificates takes every HTTP client 50 ms.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = str(Path(__file__).parent)


compile_once()
parse_once()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    going = set(kept(items))
    staying = [item for item in items if item not in going]
    if staying:
        config.hook.pytest_deselected(items=staying)
        items[:] = [item for item in items if item in going]
    items.sort(key=turn)


def pytest_collection_finish() -> None:
    """What was imported stays until the end: no garbage is in it, so nobody need look there again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """PostgreSQL 18 for the whole run."""
    with reachable_folder() as folder, cluster(18, folder) as running:
        yield running


@pytest.fixture(scope="session")
def templates(postgres: Cluster) -> Iterator[TemplateDatabase]:
    """Two databases to clone: one migrated and empty, one with the fixed fleet."""
    with template_database(postgres) as databases:
        databases.clone("template0", EMPTY_TEMPLATE)
        migrate(postgres.dsn(EMPTY_TEMPLATE))
        databases.clone(EMPTY_TEMPLATE, FLEET_TEMPLATE)
        example_fleet.fill(postgres.dsn(FLEET_TEMPLATE), AT)
        everybody_was_just_seen(postgres.dsn(FLEET_TEMPLATE))
        yield databases


def everybody_was_just_seen(dsn: str) -> None:
    """So nobody who only reads has anything to write down, and their database is as good as new afterwards."""
    with psycopg.connect(dsn) as administration:
        administration.execute("update users set last_seen_at = %s", (AT,))


@pytest.fixture(scope="session")
def lending(templates: TemplateDatabase) -> Lending:
    return Lending(templates)


@pytest.fixture
def database(lending: Lending, postgres: Cluster) -> Iterator[str]:
    """A migrated, empty database of the test's own; the value is an administrator's DSN."""
    with lending.lent(EMPTY_TEMPLATE) as name:
        yield postgres.dsn(name)


@pytest.fixture
def fleet(lending: Lending, postgres: Cluster) -> Iterator[Fleet]:
    """The fixed fleet in a database of the test's own."""
    with lending.lent(FLEET_TEMPLATE) as name, Fleet(postgres.dsn(name)) as fleet:
        yield fleet


@pytest.fixture(scope="session")
def story_template(templates: TemplateDatabase, postgres: Cluster) -> str:
    """Made when the first test asks for it; most never do."""
    templates.clone(FLEET_TEMPLATE, STORY_TEMPLATE)
    example_story.fill(postgres.dsn(STORY_TEMPLATE), AT)
    return STORY_TEMPLATE


@pytest.fixture
def story(lending: Lending, postgres: Cluster, story_template: str) -> Iterator[Fleet]:
    """The fixed fleet with its conversations, runs, routes and approvals, in a database of the test's own."""
    with lending.lent(story_template) as name, Fleet(postgres.dsn(name)) as fleet:
        yield fleet
