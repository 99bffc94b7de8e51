"""Rows in and out, one module per family of tables; every statement is a named query of `sql/`."""
