"""Contracts fail for members that break them, and say what they need."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

BAD = '''
    """A dataset and a metric that break their contracts."""

    import dataclasses
    from typing import Literal

    import numpy as np

    from polariscope.analysis.metrics import Score, metric
    from polariscope.data.dataset import AbstractDataset, dataset
    from polariscope.testing import AbstractContract, DatasetContract, MetricContract


    @dataset("restless")
    @dataclasses.dataclass(frozen=True)
    class Restless(AbstractDataset):
        """Observations that differ each time they are asked for."""

        n: int = 5
        factor_names = factor_sizes = factor_kinds = ()
        shape = (2,)

        def __len__(self):
            return self.n

        def values(self, indices):
            return np.random.default_rng().random((len(self.check_indices(indices)), 2), dtype=np.float32)


    @metric("size", bounds=(0, 1), higher_is_better=True, needs=("codes",), invariant_to={"scale"})
    def size(table, *, variant: Literal["only"] = "only") -> Score:
        """The largest code."""
        return Score.of("size", np.abs(table.codes).max(), interval=None, chance=None, variant=variant)


    class TestRestless(DatasetContract):
        names = ["restless"]


    class TestSize(MetricContract):
        names = ["size"]


    class TestNothing(AbstractContract):
        pass
'''


def test_members_that_break_a_contract_fail_it(tmp_path: Path) -> None:
    (tmp_path / "test_bad.py").write_text(textwrap.dedent(BAD))
    options = ("-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "test_bad.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert " error" not in done.stdout.splitlines()[-1], done.stdout
    failed = {
        line.split("::", 1)[1].split(" ")[0] for line in done.stdout.splitlines() if line[:6] == "FAILED"
    }
    assert "TestRestless::test_observations_do_not_depend_on_order_repetition_or_company[restless]" in failed
    assert "TestRestless::test_every_dataset_is_a_frozen_documented_dataclass[restless]" in failed
    assert "TestSize::test_it_is_documented_with_its_equation_or_source[size]" in failed
    assert "TestNothing::test_members_are_named" in failed
    assert "TestRestless::test_shapes_and_types[restless]" not in failed


def test_without_pytest_the_message_says_what_to_install() -> None:
    script = "import sys; sys.modules['pytest'] = None; import polariscope.testing"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode != 0
    assert "polariscope.testing requires pytest; run pip install pytest." in done.stderr
