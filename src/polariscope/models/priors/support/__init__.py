"""Shared parts of the priors."""
