"""The pure core: values in, values out; no Dagster, no I/O, no clock, no randomness of its own."""
