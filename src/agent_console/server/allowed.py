"""How much one server takes from one caller: what an operator may set, and what is fixed."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Allowed:
    """Limits that hold whatever is asked for; 0 requests a minute is no limit. An address is counted as in
    `bad_credentials`, and callers from this machine are not counted by address: behind a proxy that nobody named,
    that is everybody."""

    requests_per_minute: int = 6_000
    """For each credential."""
    address_requests_per_minute: int = 12_000
    """For each address."""
    streams: int = 20
    """Open at once, for each credential."""
    address_streams: int = 1_000
    """Open at once, for each address."""
    waiting: int = 100
    """Long polls that wait at once, for each credential."""


BODY_BYTES = 1_000_000
BODY_SECONDS = 30.0
BODY_DEPTH = 64
# Faults of one body that are named, and fields of one query that are read: both take more than they cost to send.
MOST_FAULTS = 100
MOST_FIELDS = 1_000
HEAD_BYTES = 65_536
# For the end of what a client has begun to send, and for its next step; so much of its answer it takes meanwhile.
OWED_SECONDS = 30.0
TAKEN_BYTES = 65_536
# Requests that came on one connection before the answer to an earlier one.
MOST_IN_LINE = 100
# On top of what an operation declares to wait. Whoever asks PostgreSQL is told after ten.
ANSWER_SECONDS = 30.0
