"""Training runs: model, data and cached results."""
