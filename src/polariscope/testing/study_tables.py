"""Tables of studies written by hand, with known figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polariscope.studies.table import Table


def by_beta(
    cells: Callable[[float, int], dict[str, Any]], betas: tuple[float, ...] = (1.0, 4.0), n: int = 3
) -> Table:
    """Return a study of β and seeds, with a run that is waiting."""
    rows = [
        {
            "run": f"beta={beta:g},seed={seed}",
            "state": "done",
            "beta": beta,
            "seed": seed,
            **cells(beta, seed),
        }
        for beta in betas
        for seed in range(n)
    ]
    waiting = {"run": "waits", "state": "waiting", "beta": betas[0], "seed": n}
    return Table((*rows, waiting), ("beta", "seed"))


def by_data(cells: Callable[[str, int], dict[str, Any]], n: int = 4) -> Table:
    """Return a study of two datasets and seeds."""
    rows = [
        {"run": f"{data},{seed}", "state": "done", "data": data, "seed": seed, **cells(data, seed)}
        for data in ("original", "changed")
        for seed in range(n)
    ]
    return Table(tuple(rows), ("data", "seed"))
