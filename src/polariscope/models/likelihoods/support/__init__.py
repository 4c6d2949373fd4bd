"""Shared parts of the likelihoods."""
