"""How the duties go. They are done for all teams at once, so this table belongs to none of them."""

from sqlalchemy import BigInteger, Column, Double, PrimaryKeyConstraint, Table, text

from agent_console.database.tables.columns import check, metadata, moment, not_blank, words

duty_rounds = Table(
    "duty_rounds",
    metadata,
    words("duty", required=True),
    moment("done_at"),
    words("done_by"),
    Column("seconds", Double),
    Column("rounds", BigInteger, nullable=False, server_default=text("0")),
    Column("rows", BigInteger, nullable=False, server_default=text("0")),
    Column("failures", BigInteger, nullable=False, server_default=text("0")),
    moment("failed_at"),
    words("error"),
    PrimaryKeyConstraint("duty", name="duty_rounds_pkey"),
    not_blank("duty_rounds", "duty", 50),
    check("duty_rounds_counts_whole", "rounds >= 0 and rows >= 0 and failures >= 0"),
    check(
        "duty_rounds_done_whole",
        "(done_at is null) = (done_by is null) and (done_at is null) = (seconds is null)",
    ),
    check("duty_rounds_failed_whole", "(failed_at is null) = (error is null)"),
    postgresql_with={"fillfactor": 50},
)
