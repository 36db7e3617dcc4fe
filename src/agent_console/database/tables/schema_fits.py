"""Which programs the schema serves. It belongs to no team, as the schema does."""

from sqlalchemy import PrimaryKeyConstraint, Table

from agent_console.database.tables.columns import check, metadata, moment, words

schema_fits = Table(
    "schema_fits",
    metadata,
    words("revision", required=True),
    moment("since", required=True, default="now()"),
    PrimaryKeyConstraint("revision", name="schema_fits_pkey"),
    check("schema_fits_revision_numbered", "revision ~ '^[0-9]{4}$'"),
)
