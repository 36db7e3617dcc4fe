"""Everything that can break is broken under a running fleet: nothing acknowledged is lost, nobody needs a hand.

Nearly every kind once, several in a row, in one world; `python -m bench.faults` does the same two hundred times.
"""

import random

import pytest

from tests.faults.inflicted import FAULTS, Inflicting
from tests.faults.invariants import looked_at
from tests.faults.life import Life
from tests.faults.recovery import everybody_is_back, everything_is_done, proved
from tests.faults.world import faulty_world
from tests.support.clusters import reachable_folder
from tests.support.warm_start import PROGRAMS

pytestmark = pytest.mark.xdist_group(PROGRAMS)

SECONDS = 0.6
AT_ONCE = 5
# Names that are not found: there a server is killed as well, and is away for a while.
TRIED = sorted(set(FAULTS) - {"a server is killed", "a port is gone"})


async def test_nothing_is_lost_whatever_breaks_and_everybody_comes_back() -> None:
    chance = random.Random(20261116)
    names = chance.sample(TRIED, len(TRIED))
    with reachable_folder() as folder, faulty_world(folder, crew_size=1) as world:
        async with Life(world) as life:
            inflicting = Inflicting(world, life, chance, SECONDS)
            await everybody_is_back(world, life)
            for some in (names[begin : begin + AT_ONCE] for begin in range(0, len(names), AT_ONCE)):
                for name in some:
                    await FAULTS[name](inflicting)
                await everybody_is_back(world, life)
                found = looked_at(world, life.told)
                assert found.total == 0, f"after {some}: {found}"
            await everything_is_done(world, life)
            damage, unsealed = await proved(world)
        found = looked_at(world, life.told)

    assert (found.total, damage, unsealed) == (0, None, 0), str(found)
    assert min(len(life.told.jobs), len(life.told.messages), len(life.told.decided)) > 0
