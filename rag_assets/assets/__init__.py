"""The assets, one module for each stage of the data."""
