"""Circuit breakers, deadlines and retries around calls that may fail."""
