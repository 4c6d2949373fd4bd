"""Functions and classes shared by the objectives."""
