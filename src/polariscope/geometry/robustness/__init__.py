"""What becomes of codes under corruption and domain shift."""
