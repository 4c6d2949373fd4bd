from __future__ import annotations

import re
from pathlib import Path

from forked import Forks

ROOT = Path(__file__).parents[2]


def test_the_example_of_the_digits_prints_both_accuracies(forks: Forks) -> None:
    done = forks.run((ROOT / "examples" / "digits.py").read_text(encoding="utf-8"), "6", "150")
    assert done.returncode == 0, done.stderr
    found = dict(re.findall(r"^(VAE|PCA) +(\d\.\d+)", done.stdout, flags=re.MULTILINE))
    # Guessing gives 0.1; six columns of either are well above it even after so few steps.
    assert float(found["VAE"]) > 0.5
    assert float(found["PCA"]) > 0.5
    assert "6 latents:" in done.stdout
