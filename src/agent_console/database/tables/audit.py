"""The audit trail: what happened, the chain that seals it, and where a dropped month was cut off.

No row here has a foreign key: an action on one would change what is sealed. Ids are plain, with a label that
outlives the thing they name.
"""

from sqlalchemy import (
    BigInteger,
    Column,
    Date,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Sequence,
    SmallInteger,
    Table,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import INET
from sqlalchemy.types import UserDefinedType

from agent_console.database.tables.columns import (
    check,
    created,
    is_object,
    json_object,
    key,
    metadata,
    moment,
    one_of,
    primary,
    ref,
    team,
    user_ref,
    words,
)
from agent_console.domain.ids import AgentId, AuditId, CheckpointId, RunId, ThreadId
from agent_console.domain.kinds import ActorType, Decision


class TransactionId(UserDefinedType[int]):
    """PostgreSQL's 64-bit transaction number; the sealer orders by it."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        return "xid8"


audit_log_seq = Sequence("audit_log_seq", metadata=metadata, data_type=BigInteger)

audit_log = Table(
    "audit_log",
    metadata,
    team(),
    key(AuditId),
    Column("seq", BigInteger, nullable=False, server_default=audit_log_seq.next_value()),
    Column("xid", TransactionId, nullable=False, server_default=text("pg_current_xact_id()")),
    words("actor_type", required=True),
    user_ref("actor_user_id"),
    ref("actor_agent_id", AgentId),
    words("actor_label", required=True),
    words("action", required=True),
    words("resource_type", required=True),
    words("resource_id", required=True),
    ref("thread_id", ThreadId),
    ref("run_id", RunId),
    words("decision"),
    words("reason"),
    Column("ip", INET),
    words("user_agent"),
    json_object("metadata"),
    Column("form", SmallInteger, nullable=False, server_default=text("1")),
    Column("event_hash", LargeBinary, nullable=False),
    created(),
    PrimaryKeyConstraint("team_id", "id", "created_at", name="audit_log_pkey"),
    check("audit_log_id_v7", "get_byte(uuid_send(id), 6) >> 4 = 7"),
    one_of("audit_log", "actor_type", ActorType),
    check(
        "audit_log_actor_fits",
        "(actor_type = 'human' and actor_user_id is not null and actor_agent_id is null)"
        " or (actor_type = 'agent' and actor_agent_id is not null and actor_user_id is null)"
        " or (actor_type = 'system' and actor_user_id is null and actor_agent_id is null)",
    ),
    check("audit_log_action_form", "action ~ '^[a-z0-9_]+(\\.[a-z0-9_]+)+$'"),
    check("audit_log_resource_given", "btrim(resource_type) <> '' and btrim(resource_id) <> ''"),
    one_of("audit_log", "decision", Decision),
    is_object("audit_log", "metadata"),
    check("audit_log_place_of_humans", "actor_type = 'human' or (ip is null and user_agent is null)"),
    check("audit_log_event_hash_sha256", "octet_length(event_hash) = 32"),
    Index("audit_log_seq_idx", "team_id", text("seq desc")),
    Index(
        "audit_log_thread_idx",
        "team_id",
        "thread_id",
        text("seq desc"),
        postgresql_where=text("thread_id is not null"),
    ),
    Index(
        "audit_log_run_idx",
        "team_id",
        "run_id",
        text("seq desc"),
        postgresql_where=text("run_id is not null"),
    ),
    Index("audit_log_action_idx", "team_id", "action", text("seq desc")),
    Index(
        "audit_log_actor_idx",
        "team_id",
        "actor_user_id",
        text("seq desc"),
        postgresql_where=text("actor_user_id is not null"),
    ),
    Index(
        "audit_log_agent_idx",
        "team_id",
        "actor_agent_id",
        text("seq desc"),
        postgresql_where=text("actor_agent_id is not null"),
    ),
    Index("audit_log_order_idx", "team_id", "xid", "seq"),
    Index("audit_log_resource_idx", "team_id", "resource_type", "resource_id", text("seq desc")),
    postgresql_partition_by="RANGE (created_at)",
)

# One link per audit row, written by the one sealer. The two unique rules make a fork an error.
audit_seals = Table(
    "audit_seals",
    metadata,
    team(),
    Column("position", BigInteger, nullable=False),
    ref("audit_id", AuditId, required=True),
    moment("audit_created_at", required=True),
    Column("audit_seq", BigInteger, nullable=False),
    Column("audit_xid", TransactionId, nullable=False),
    Column("event_hash", LargeBinary, nullable=False),
    Column("prev_hash", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    moment("sealed_at", required=True, default="now()"),
    PrimaryKeyConstraint("team_id", "position", name="audit_seals_pkey"),
    UniqueConstraint("team_id", "audit_id", name="audit_seals_audit_uq"),
    UniqueConstraint("team_id", "prev_hash", name="audit_seals_prev_uq"),
    check("audit_seals_position_positive", "position >= 1"),
    check(
        "audit_seals_hashes_sha256",
        "octet_length(event_hash) = 32 and octet_length(prev_hash) = 32 and octet_length(hash) = 32",
    ),
)

# Where a team's chain ends, and up to which act in the order of transactions everything is sealed.
audit_heads = Table(
    "audit_heads",
    metadata,
    team(),
    Column("position", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("audit_xid", TransactionId, nullable=False),
    Column("audit_seq", BigInteger, nullable=False),
    Column("highest_seq", BigInteger, nullable=False),
    Column("since_seq", BigInteger, nullable=False, server_default=text("0")),
    moment("sealed_at", required=True, default="now()"),
    PrimaryKeyConstraint("team_id", name="audit_heads_pkey"),
    check("audit_heads_order", "position >= 0 and highest_seq >= since_seq and since_seq >= 0"),
    check("audit_heads_hash_sha256", "octet_length(hash) = 32"),
)

audit_checkpoints = Table(
    "audit_checkpoints",
    metadata,
    team(),
    key(CheckpointId),
    Column("month", Date, nullable=False),
    Column("first_position", BigInteger, nullable=False),
    Column("last_position", BigInteger, nullable=False),
    Column("last_hash", LargeBinary, nullable=False),
    Column("rows", Integer, nullable=False),
    created(),
    *primary("audit_checkpoints"),
    UniqueConstraint("team_id", "month", name="audit_checkpoints_month_uq"),
    check("audit_checkpoints_month_start", "extract(day from month) = 1"),
    check("audit_checkpoints_last_hash_sha256", "octet_length(last_hash) = 32"),
    check("audit_checkpoints_order", "last_position >= first_position - 1 and rows >= 0"),
)
