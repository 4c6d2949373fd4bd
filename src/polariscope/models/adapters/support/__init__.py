"""Code that the adapters share."""
