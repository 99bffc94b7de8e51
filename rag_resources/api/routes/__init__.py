"""The endpoints, a module per kind."""
