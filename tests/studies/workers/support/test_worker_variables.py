"""Environment of a worker process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import polariscope
from polariscope.studies.workers.support.crew import worker_variables


def test_a_worker_finds_the_running_package_and_no_part_of_it_as_a_module() -> None:
    variables = worker_variables(1)
    code = "import importlib.util as u, polariscope; print(polariscope.__file__, u.find_spec('rendering'))"
    environment = {**os.environ, **variables}
    printed = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd="/", capture_output=True, text=True, check=True
    ).stdout.split()
    assert Path(printed[0]) == Path(polariscope.__file__)
    assert printed[1] == "None"
