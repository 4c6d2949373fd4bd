"""Training: one loop, exact resume, and a log of the latents."""
