"""A metric and a dataset for Polariscope."""
