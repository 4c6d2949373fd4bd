"""What members of the family share."""
