"""Reports: a record is computed, tested and then drawn."""
