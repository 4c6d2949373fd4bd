"""Functions shared by the metrics."""
