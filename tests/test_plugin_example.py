"""examples/plugin/: discovery through its entry points, and its contracts, without installing it."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import polariscope

EXAMPLE = Path(__file__).parents[1] / "examples" / "plugin"
SOURCE = Path(polariscope.__file__).parents[1]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Put the example on the path as if it were installed: its folder, and metadata made from its pyproject.toml."""
    site = tmp_path_factory.mktemp("site")
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    metadata = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = []
    for group, members in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in members.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
    path = os.pathsep.join(map(str, (site, EXAMPLE, SOURCE)))
    return {**os.environ, "PYTHONPATH": path, "COLUMNS": "200", "OMP_NUM_THREADS": "1"}


def run(environment: dict[str, str], folder: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command], env=environment, cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_members_keep_the_contracts(environment: dict[str, str], tmp_path: Path) -> None:
    # Its own configuration, not ours: no type checker, and warnings are errors.
    options = ("-q", "-W", "error", "-p", "no:cacheprovider", "--rootdir", str(EXAMPLE), "-c", os.devnull)
    printed = run(environment, tmp_path, "-m", "pytest", *options, str(EXAMPLE / "tests"))
    assert "failed" not in printed
    assert int(printed.split(" passed")[0].split()[-1]) >= 40


def test_doctests_of_the_example_pass(environment: dict[str, str], tmp_path: Path) -> None:
    options = (
        "-q",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        "--rootdir",
        str(EXAMPLE),
        "--doctest-modules",
    )
    printed = run(environment, tmp_path, "-m", "pytest", *options, str(EXAMPLE / "polariscope_example"))
    assert "2 passed" in printed


def test_lists_show_its_members_without_importing_them(environment: dict[str, str], tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from polariscope.cli import main\n"
        "for line in ('list', 'list metrics', 'list datasets'):\n"
        "    assert main(line.split()) == 0\n"
        "assert 'polariscope_example' not in sys.modules\n"
        "import polariscope as ps\n"
        "assert {'best-share', 'mig'} <= set(ps.metrics) and 'moons' in list(ps.datasets)\n"
        "assert 'polariscope_example' not in sys.modules\n"
    )
    printed = run(environment, tmp_path, "-c", script)
    assert printed.count("best-share") == 2
    assert "Plug-in of polariscope-example 0.1, polariscope_example.best_share:best_share." in printed
    assert printed.count("moons") >= 2


def test_a_member_is_explained_used_and_trained_on_as_a_built_in(
    environment: dict[str, str], tmp_path: Path
) -> None:
    explained = run(environment, tmp_path, "-m", "polariscope", "list", "metrics", "best-share")
    assert "as a share of the factor's entropy" in explained
    assert "n_bins" in explained
    training = ("train", "moons", "--n-samples", "60", "--steps", "20", "--out", "run")
    run(environment, tmp_path, "-m", "polariscope", *training)
    scored = run(environment, tmp_path, "-m", "polariscope", "score", "run", "--metrics", "best-share,mig")
    assert "best-share" in scored
