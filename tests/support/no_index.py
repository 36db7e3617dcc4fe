"""A database in which no index gives rows in their order: whoever wants one has to ask for it."""

from tests.support.fleet import Fleet


def no_index_helps(fleet: Fleet) -> None:
    """From the next connection on."""
    name = fleet.one("select quote_ident(current_database())")
    for setting in ("seqscan = on", "indexscan = off", "bitmapscan = off"):
        fleet.execute(f"alter database {name} set enable_{setting}")
