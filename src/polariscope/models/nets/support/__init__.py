"""Shared parts of the networks."""
