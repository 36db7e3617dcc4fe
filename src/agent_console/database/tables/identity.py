"""Teams, the people in them, how those prove who they are, and what the team has set."""

from sqlalchemy import Boolean, Column, Index, PrimaryKeyConstraint, Table, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB

from agent_console.database.tables.columns import (
    at_most,
    check,
    created,
    in_team,
    key,
    metadata,
    moment,
    not_blank,
    one_of,
    points,
    primary,
    ref,
    sha256_hex,
    team,
    updated,
    user_ref,
    words,
)
from agent_console.domain.ids import OperatorTokenId, TeamId, UserId
from agent_console.domain.kinds import HumanRole, PauseMode, UserKind

teams = Table(
    "teams",
    metadata,
    key(TeamId),
    words("slug", required=True),
    words("name", required=True),
    words("pause_mode"),
    words("pause_reason"),
    moment("paused_at"),
    user_ref("paused_by_user_id"),
    created(),
    updated(),
    PrimaryKeyConstraint("id", name="teams_pkey"),
    UniqueConstraint("slug", name="teams_slug_key"),
    check("teams_id_v7", "get_byte(uuid_send(id), 6) >> 4 = 7"),
    check("teams_slug_form", "slug ~ '^[a-z0-9][a-z0-9-]{0,62}$'"),
    not_blank("teams", "name", 255),
    one_of("teams", "pause_mode", PauseMode),
    check(
        "teams_pause_whole",
        "(paused_at is null) = (pause_mode is null)"
        " and (paused_at is null or btrim(coalesce(pause_reason, '')) <> '')",
    ),
)

users = Table(
    "users",
    metadata,
    team(),
    key(UserId),
    words("kind", required=True, default="human"),
    words("role"),
    words("subject"),
    words("email"),
    words("full_name", required=True),
    Column("is_active", Boolean, nullable=False, server_default=text("true")),
    moment("last_seen_at"),
    user_ref("created_by_user_id"),
    user_ref("updated_by_user_id"),
    created(),
    updated(),
    *primary("users"),
    in_team("users"),
    points("users", "created_by_user_id", "users"),
    points("users", "updated_by_user_id", "users"),
    UniqueConstraint("team_id", "id", "kind", name="users_kind_uq"),
    one_of("users", "kind", UserKind),
    one_of("users", "role", HumanRole),
    check(
        "users_kind_fits",
        "(kind = 'human' and email is not null and role is not null)"
        " or (kind = 'system' and role is null and subject is null)",
    ),
    not_blank("users", "email", 320),
    not_blank("users", "full_name", 300),
    # People are few among the system users of many agents.
    Index("users_people_idx", "team_id", "id", postgresql_where=text("kind = 'human'")),
    Index("users_subject_uq", "team_id", "subject", unique=True, postgresql_where=text("subject is not null")),
    Index(
        "users_email_uq",
        "team_id",
        text("lower(email)"),
        unique=True,
        postgresql_where=text("email is not null"),
    ),
)

operator_tokens = Table(
    "operator_tokens",
    metadata,
    team(),
    key(OperatorTokenId),
    ref("user_id", UserId, required=True),
    words("name"),
    words("token_hash", required=True),
    words("token_prefix", required=True),
    moment("expires_at"),
    moment("revoked_at"),
    moment("last_used_at"),
    user_ref("created_by_user_id", required=True),
    created(),
    *primary("operator_tokens"),
    in_team("operator_tokens"),
    points("operator_tokens", "user_id", "users"),
    points("operator_tokens", "created_by_user_id", "users"),
    UniqueConstraint("team_id", "token_hash", name="operator_tokens_hash_uq"),
    sha256_hex("operator_tokens", "token_hash"),
    at_most("operator_tokens", "name", 100),
    at_most("operator_tokens", "token_prefix", 20),
    Index("operator_tokens_user_idx", "team_id", "user_id", "id"),
)

settings = Table(
    "settings",
    metadata,
    team(),
    words("name", required=True),
    Column("value", JSONB, nullable=False),
    user_ref("updated_by_user_id"),
    updated(),
    PrimaryKeyConstraint("team_id", "name", name="settings_pkey"),
    in_team("settings"),
    points("settings", "updated_by_user_id", "users"),
    not_blank("settings", "name", 100),
)
