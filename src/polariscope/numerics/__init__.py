"""Numerical methods for arrays, independent of autoencoders."""
