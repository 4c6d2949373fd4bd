"""Data drawn from their factors, with nothing to download."""
