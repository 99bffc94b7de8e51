"""The asset checks, a module per group of assets."""
