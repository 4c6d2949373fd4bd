"""What rendered datasets share."""
