"""What likelihoods have in common."""
