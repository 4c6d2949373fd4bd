"""Published datasets, read from their original files."""
