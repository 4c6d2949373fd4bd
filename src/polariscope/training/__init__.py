"""Training: one loop, exact resume, a log of what the latents do."""
