"""Shared parts of the variants."""
