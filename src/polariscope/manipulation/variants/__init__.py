"""Variants that need what a manipulation has learned."""
