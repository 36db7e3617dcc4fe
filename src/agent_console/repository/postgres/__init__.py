"""The repository on PostgreSQL: `answering` lists who answers which operation, `repository` asks them."""
