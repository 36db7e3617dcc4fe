"""Everything about PostgreSQL that is not an operation: its tables, migrations, roles, and the embedded server."""
