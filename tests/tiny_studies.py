"""Studies that take no time, and what of them must be equal byte for byte."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from polariscope.storage import TIMING
from polariscope.studies.design import Study


def tiny(out: Path, **fields: Any) -> Study:
    """A study of linear models on a few Gaussian rows."""
    given: dict[str, Any] = {
        "data": {"name": "gaussian", "n_samples": 60},
        "objective": "beta",
        "settings": {
            **{"net": "linear", "n_latents": 2, "batch_size": 8, "steps": 12},
            **{"log_every": 3, "checkpoint_every": 4, "probe_samples": 8},
        },
        "grid": {"beta": [1.0, 4.0]},
        "each": {"diagnose": {"n_samples": 40, "n_bootstrap": 5}},
        "out": str(out),
    }
    return Study(**{**given, **fields})


def snapshot(study: Study) -> dict[str, str]:
    """A hash of every file of every run, without what is hidden, set aside, or about time."""
    root = Path(str(study.runs))
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
        and path.name != TIMING
        and not path.name.endswith(".damaged")
        and not any(part.startswith(".") for part in path.relative_to(root).parts)
    }
