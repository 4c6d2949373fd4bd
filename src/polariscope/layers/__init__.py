"""Comparison of the layers of models; every layer is encoded and compressed once."""
