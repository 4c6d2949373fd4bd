"""What networks are made of."""
