"""The one stage that all documents are run on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.stage import Stage, stage
from tests.support.clusters import Cluster, cluster, reachable_folder
from tests.support.fleet import Fleet
from tests.support.lending import Lending


@pytest.fixture(scope="module")
def documented(lending: Lending, postgres: Cluster, story_template: str) -> Iterator[Stage]:
    """The fleet with its conversations and requests, a server, and another PostgreSQL that is still empty."""
    with (
        lending.lent(story_template) as name,
        Fleet(postgres.dsn(name)) as fleet,
        reachable_folder() as empty,
        cluster(18, empty) as other,
        reachable_folder() as folder,
        stage(fleet, other, Path(folder)) as ready,
    ):
        yield ready
