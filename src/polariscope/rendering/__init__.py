"""Meshes, rasteriser and shading, and the bodies of the rendered datasets; only arrays are used."""
