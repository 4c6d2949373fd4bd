"""Variants of data that require a trained manipulation."""
