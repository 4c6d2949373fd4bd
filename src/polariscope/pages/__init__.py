"""Pages: first a record is computed, then it is drawn."""
