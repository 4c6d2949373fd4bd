"""Geometry of a decoder: Jacobians, their orthogonality, and the effect of codes on outputs."""
