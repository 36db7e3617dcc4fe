"""The hostile world, made once for a run and cloned for each test."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.attacks.hostile_world import make_hostile
from tests.attacks.two_teams import furnish
from tests.support.act_stage import ANA, Stage
from tests.support.asking import callers
from tests.support.clusters import Cluster, TemplateDatabase
from tests.support.fleet import Fleet
from tests.support.lending import Lending
from tests.support.trail import seal

HOSTILE_TEMPLATE = "template_hostile"


async def _furnished(fleet: Fleet) -> None:
    with pytest.MonkeyPatch.context() as keys:
        async with callers(fleet, "direct") as crew:
            await furnish(Stage(fleet, crew, await crew.person(ANA), keys))


@pytest.fixture(scope="session")
def hostile_template(templates: TemplateDatabase, postgres: Cluster, story_template: str) -> str:
    templates.clone(story_template, HOSTILE_TEMPLATE)
    with Fleet(postgres.dsn(HOSTILE_TEMPLATE)) as fleet:
        asyncio.run(_furnished(fleet))
        seal(fleet)
        make_hostile(fleet)
    return HOSTILE_TEMPLATE


@pytest.fixture
def hostile(lending: Lending, postgres: Cluster, hostile_template: str) -> Iterator[Fleet]:
    """The story of the fleet, in which everything that can be written is hostile; and one of everything else."""
    with lending.lent(hostile_template) as name, Fleet(postgres.dsn(name)) as fleet:
        yield fleet
