"""What people launch beside the assets, a module per job."""
