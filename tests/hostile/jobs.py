"""Work for processes that are started by spawn, fork and forkserver."""

from __future__ import annotations


def diagnosis(seed: int) -> str:
    """Return the diagnosis of a run with a seed that has no cached result."""
    import polariscope as ps

    return repr(ps.open_run("r0").regime(n_samples=70, n_bootstrap=5, seed=seed).counts)
