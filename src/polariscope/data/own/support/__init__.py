"""What datasets of the user's own share."""
