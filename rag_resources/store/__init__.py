"""Reads and writes rows, one module per family of tables; every statement is a named query."""
