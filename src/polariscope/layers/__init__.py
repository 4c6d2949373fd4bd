"""Comparison: the layers of models against each other, every one encoded and compressed once."""
