"""The queue beside its peers, in one run on one PostgreSQL; exit code 1 when a limit is not met.

    python -m bench.queue [--quick] [--parts throughput,snapshot,...]

This folder has no __init__.py: the programs beside it would take it for the queue of the standard library.
"""

import sys
from collections.abc import Callable, Sequence

from bench.queue import disturbed, enqueueing, over_http, throughput
from bench.queue.machine import facts
from bench.queue.plan import CONSOLES, ENQUEUE, FINISHED, HTTP, SNAPSHOT, THROUGHPUT, Plan, plan_of
from bench.queue.results import render
from bench.queue.told import Found, limits_table
from tests.support.clusters import reachable_folder

from agent_console.database.embedded import EmbeddedServer, embedded_postgres

MEASURES: dict[str, Callable[[EmbeddedServer, Plan], Found]] = {
    THROUGHPUT: throughput.measure,
    SNAPSHOT: disturbed.snapshot,
    FINISHED: disturbed.finished,
    CONSOLES: disturbed.consoles,
    ENQUEUE: enqueueing.measure,
    HTTP: over_http.measure,
}


def measure(server: EmbeddedServer, plan: Plan) -> Sequence[Found]:
    """The file is written after every part, so that a part that fails takes nothing with it."""
    machine = tuple(facts(server, plan))
    found: list[Found] = []
    for part in plan.parts:
        print(f"\n{part}", flush=True)
        found.append(MEASURES[part](server, plan))
        for table in found[-1].tables:
            print(f"\n{table.as_text()}", flush=True)
        plan.results.write_text(render(machine, found, plan))
    return found


def main() -> int:
    plan = plan_of()
    with reachable_folder(in_memory=False) as folder, embedded_postgres(folder / "data") as server:
        found = measure(server, plan)
    limits = [limit for part in found for limit in part.limits]
    print(limits_table(limits).as_text())
    print(f"{sum(limit.is_met for limit in limits)} of {len(limits)} limits met; written to {plan.results.name}")
    return 0 if all(limit.is_met for limit in limits) else 1


if __name__ == "__main__":
    sys.exit(main())
