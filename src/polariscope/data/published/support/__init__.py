"""Shared parts of the published datasets."""
