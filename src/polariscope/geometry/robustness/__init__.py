"""Robustness of codes under corruption and domain shift."""
