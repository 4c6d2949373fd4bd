"""Datasets: observations by index, with ground-truth factors if these are known."""
