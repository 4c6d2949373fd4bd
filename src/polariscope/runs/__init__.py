"""A run opened: its model, data and everything that was measured of it."""
