from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_example_of_the_digits_prints_both_accuracies() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "digits.py"), "6", "150"],
        capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = dict(re.findall(r"^(VAE|PCA) +(\d\.\d+)", done.stdout, flags=re.MULTILINE))
    # Guessing gives 0.1; six columns of either are well above it even after so few steps.
    assert float(found["VAE"]) > 0.5
    assert float(found["PCA"]) > 0.5
    assert "6 latents:" in done.stdout
