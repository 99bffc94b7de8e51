"""The promoted configuration, and the ad hoc jobs that retrieve and answer."""
