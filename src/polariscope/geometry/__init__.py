"""Geometry of a decoder: its Jacobians, how orthogonal they are, and what moving a code does to its outputs."""
