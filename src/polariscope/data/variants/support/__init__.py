"""What variants share."""
