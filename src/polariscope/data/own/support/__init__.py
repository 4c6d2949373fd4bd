"""Shared parts of the datasets of the user's own data."""
