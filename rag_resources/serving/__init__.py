"""Which configuration serves: promotion, rollback and holds."""
