"""Who trains the runs of a study: processes of this machine, a Ray cluster, SLURM. Each drains the same ledger."""
