"""Code that sizing methods share."""
