"""The endpoints, one module per kind."""
