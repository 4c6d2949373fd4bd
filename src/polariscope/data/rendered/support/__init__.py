"""Shared parts of the rendered datasets."""
