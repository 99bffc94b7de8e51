"""PostgreSQL: the embedded server, the pool, the migrations and the named queries of `sql/`."""
