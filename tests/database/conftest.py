"""What the tests of the schema may ask for: a PostgreSQL of every version that is supported."""

from collections.abc import Iterator

import pytest

from tests.support.clusters import Cluster, Version, available_versions, cluster, reachable_folder


@pytest.fixture(scope="session", params=available_versions())
def server(request: pytest.FixtureRequest, postgres: Cluster) -> Iterator[Cluster]:
    """A cluster of every supported version on this machine."""
    version: Version = request.param
    if version == postgres.version:
        yield postgres
        return
    with reachable_folder() as folder, cluster(version, folder) as running:
        yield running
