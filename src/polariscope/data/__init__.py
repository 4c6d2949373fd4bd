"""Datasets: observations by index, with their ground-truth factors where these are known."""
