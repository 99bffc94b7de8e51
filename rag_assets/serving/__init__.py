"""The promoted configuration, and the ad hoc retrieval job."""
