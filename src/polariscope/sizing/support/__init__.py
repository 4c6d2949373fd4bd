"""Deprecated location of ``search.fondue``, until 0.4."""
