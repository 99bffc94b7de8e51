"""The assets, a module per group."""
