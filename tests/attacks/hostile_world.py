"""A world in which everything that anybody could ever write is hostile.

What the program itself would refuse is written as an older program or a foreign hand would write it: with SQL, and
as far as the constraints of the database let it.
"""

from collections.abc import Iterator, Sequence

from psycopg.types.json import Jsonb

from agent_console.domain.delegation import digest_of
from tests.attacks.hostile_strings import HOSTILE
from tests.support.fleet import Fleet

ANA = "ana@example.com"
SHORT = 40
MOUTHFUL = 5

# Chosen by the program from its own words, or made by it: no place for anybody's text.
OURS = frozenset(
    {
        *("actor_type", "author_type", "came_from", "credential_location", "decision", "duty", "kind", "level"),
        *("parent_kind", "participant_type", "pause_mode", "policy", "presence", "requested_by_type", "role"),
        *("slug", "state", "status", "system_user_kind", "visibility", "went_to", "key"),
        *("collections.type", "connectors.type"),
        *("digest", "request_digest", "credentials_key_id", "signing_nonce", "signing_secret_hash"),
        *("api_key_hash", "previous_key_hash", "token_hash", "client_nonce_hash"),
    }
)
# Lists of ids, and what the program reads again: a hand that wrote there would break more than a screen.
READ_AGAIN = frozenset({"delegation_path", "to_agent_ids", "envelope", "value", "progress", "metrics"})

WRITE = """
create or replace function pg_temp.written(place regclass, cell name, words text[], turn int) returns int
language plpgsql as $$
declare
    here tid; at int := turn; taken int := 0; is_json boolean; wrap text; tries int;
begin
    select atttypid = 'jsonb'::regtype into is_json from pg_attribute where attrelid = place and attname = cell;
    wrap := case when not is_json then '$1'
                 else format('case jsonb_typeof(%%I) when ''array'' then jsonb_build_array($1)'
                             || ' else jsonb_build_object(left($1, 200), $1, ''words'', $1) end', cell) end;
    for here in execute format('select ctid from %%s', place) loop
        tries := 0;
        while tries < cardinality(words) loop
            begin
                execute format('update %%s set %%I = %%s where ctid = $2', place, cell, wrap)
                  using words[1 + (at + tries) %% cardinality(words)], here;
                taken := taken + 1;
                exit;
            exception when check_violation or unique_violation or program_limit_exceeded then
                tries := tries + 1;
            end;
        end loop;
        at := at + 1;
    end loop;
    return taken;
end $$
"""
COLUMNS = """
select c.relname, a.attname
  from pg_attribute a
  join pg_class c on c.oid = a.attrelid
 where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace and a.attnum > 0 and not a.attisdropped
   and a.atttypid in ('text'::regtype, 'jsonb'::regtype)
   and c.relname not like 'queue_%%' and c.relname not in ('lanes', 'settings', 'alembic_version', 'duty_rounds')
 order by 1, 2
"""


def storable(text: str) -> str:
    """PostgreSQL itself refuses NUL and lone surrogates."""
    return text.encode("utf-8", "ignore").decode().replace("\x00", "")


def mouthfuls() -> tuple[str, ...]:
    """The whole catalogue, the short ones several at a time, so that few rows say all of it."""
    stored = [storable(text) for text in HOSTILE.values()]
    short = [text for text in stored if len(text) <= SHORT]
    together = ["".join(short[start : start + MOUTHFUL]) for start in range(0, len(short), MOUTHFUL)]
    return (*together, *(text[:100_000] for text in stored if len(text) > SHORT))


def make_hostile(fleet: Fleet, turn: int = 0) -> dict[str, int]:
    """How many cells of each column took something. `turn` says which text comes first."""
    words = list(mouthfuls())
    ana = fleet.user_id(ANA)
    fleet.execute(WRITE)
    fleet.execute("set session_replication_role = replica")
    taken = {}
    for number, (table, column) in enumerate(_columns(fleet)):
        written = fleet.one(
            "select pg_temp.written(%s::regclass, %s, %s, %s)", table, column, words, turn + number
        )
        assert isinstance(written, int)
        taken[f"{table}.{column}"] = written
    fleet.execute("update users set email = %s where id = %s", ANA, ana)
    _in_requests(fleet, words)
    fleet.execute("set session_replication_role = origin")
    return taken


def _columns(fleet: Fleet) -> Iterator[tuple[str, str]]:
    for table, column in fleet.execute(COLUMNS):
        if not {str(column), f"{table}.{column}"} & (OURS | READ_AGAIN):
            yield str(table), str(column)


def _in_requests(fleet: Fleet, words: Sequence[str]) -> None:
    """What an agent asks of another, in the form that people decide about, with a digest that fits."""
    for number, (id_, envelope) in enumerate(fleet.execute("select id, envelope from approvals order by id")):
        assert isinstance(envelope, dict)
        said = words[number % len(words)]
        changed = envelope | {"input": said, "payload": {"words": said}}
        fleet.execute(
            "update approvals set envelope = %s, digest = %s where id = %s",
            *(Jsonb(changed), digest_of(changed), id_),
        )
