"""What the tests of the schema may ask for: a PostgreSQL of every version that is supported."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.clusters import Cluster, Version, available_versions, cluster, reachable_folder
from tests.support.one_way import ALL

FOLDER = Path(__file__).parent
NEWEST = max(available_versions())
# Long tests that share nothing.
MANY_PROGRAMS = frozenset({"test_migrations.py", "test_embedded.py"})


# Every version is tried at length by `make prove`; the oldest and the newest differ most.
VERSIONS = available_versions() if ALL else tuple(sorted({min(available_versions()), NEWEST}))


@pytest.fixture(scope="session", params=VERSIONS)
def server(request: pytest.FixtureRequest, postgres: Cluster) -> Iterator[Cluster]:
    """A cluster of every supported version on this machine."""
    version: Version = request.param
    if version == postgres.version:
        yield postgres
        return
    with reachable_folder() as folder, cluster(version, folder) as running:
        yield running


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Who needs the same server, or the same filled database, works in one process: each is made once.

    Before xdist asks for the groups, which it does first of all where only this folder is run.
    """
    for item in items:
        if FOLDER not in item.path.parents or item.get_closest_marker("xdist_group") is not None:
            continue
        asked = getattr(item, "callspec", None)
        version = None if asked is None else asked.params.get("server")
        if version is not None and version != NEWEST:
            item.add_marker(pytest.mark.xdist_group(f"postgres {version}"))
        elif item.path.name not in MANY_PROGRAMS:
            item.add_marker(pytest.mark.xdist_group(f"database {item.path.name}"))
