"""What published datasets share."""
