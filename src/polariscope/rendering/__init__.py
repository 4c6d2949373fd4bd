"""Meshes, rasteriser and shading, and the bodies that rendered datasets show; arrays only."""
