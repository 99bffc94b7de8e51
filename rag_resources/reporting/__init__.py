"""What people read of evaluations and migrations: tables, plots and the report page."""
