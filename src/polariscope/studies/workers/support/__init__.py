"""Code shared by the workers of this machine, Ray and SLURM."""
