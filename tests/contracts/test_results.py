"""What every result promises: ``to_dict`` gives JSON that comes back, ``to_frame`` a table with the right rows."""

from __future__ import annotations

import dataclasses
import importlib
import json
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import polariscope as ps
from manipulations import keep_untrained
from polariscope import analysis, geometry
from polariscope.analysis import noise, theory
from polariscope.analysis.course import Course, LayerCourse, LayerSimilarity, snapshot
from polariscope.analysis.prior_fit import prior_fit
from polariscope.analysis.regime.regime import polarised_until_the_end
from polariscope.analysis.representation import Representation
from polariscope.core.seeds import generator
from polariscope.data.variance import variance_shares
from polariscope.geometry.eigenfaces import eigenfaces
from polariscope.geometry.interpolation import interpolate
from polariscope.geometry.orthogonality import haar_distance
from polariscope.geometry.pca import pca_alignment
from polariscope.geometry.polar import polar_test
from polariscope.geometry.traversals import Plane, traverse
from polariscope.manipulation.manipulation import open_manipulation
from polariscope.runs.run import Run, open_run
from polariscope.sizing.curve_point import measure_point
from polariscope.sizing.curve_result import SizeCurve
from polariscope.sizing.result import SeedResult, Size
from polariscope.sizing.trial import Trial
from polariscope.testing.linear_candidates import LinearCandidates

EIGENVALUES = np.array([9.0, 4.0, 1e-4, 1e-4])
INTERNAL = {
    "CodeView",
    "Mixture",
    "LatentMoments",
    "Note",
    "Draft",
    "RelativePosterior",
    "Moments",
    "Table",
    "TypeRule",
    "ObservedCodes",
    "CurvePlan",
    "AbstractForm",
    "FactorForm",
    "NeighbourForm",
    "VectorForm",
    "DependenceTables",
}
"""Records that a computation passes on, and options: users do not get them as results."""


def codes(seed: int = 0) -> Representation:
    """Three latents that follow two factors and noise, and a passive one."""
    draw = generator(seed, "results")
    factors = generator(0, "results", "factors").integers(4, size=(200, 2))
    mean = (
        np.column_stack([factors, draw.normal(size=200), np.zeros(200)]) + draw.normal(size=(200, 4)) * 0.01
    )
    variance = np.tile([0.01, 0.01, 0.3, 1.0], (200, 1))
    return Representation(
        mean=mean,
        variance=variance,
        sampled=mean + np.sqrt(variance) * draw.normal(size=mean.shape),
        factors=factors,
        factor_names=("a", "b"),
        ids=np.array([f"row {row}" for row in range(200)]),
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A small run that was kept at two steps."""
    folder = tmp_path_factory.mktemp("run") / "run"
    data = ps.load_dataset("gaussian", n_samples=2000, eigenvalues=(4.0, 3.0, 0.1))
    options: dict[str, Any] = {"net": "linear", "n_latents": 2, "steps": 400, "batch_size": 16, "threads": 1}
    options |= {"learning_rate": 0.01, "variance": 0.05}  # both latents are in use soon
    ps.train(data, out=folder, checkpoint_every=200, keep_checkpoints="all", log_every=100, **options)
    return open_run(folder)


def course() -> Course:
    """Two steps with two layers."""
    values = np.array([[1.0, np.nan], [2.0, 3.0]])
    layers = LayerCourse(
        names=("mean", "decoder/1"),
        n_samples=200,
        k=20,
        dimension=values,
        low=values - 0.1,
        high=values + 0.1,
        similarities=(LayerSimilarity("itself at step 20", "cka", "CKA", values / 3),),
    )
    snapshots = (snapshot(codes(), 10), snapshot(codes(1), 20))
    return Course("run", snapshots, latent=0, n_samples=200, seed=0, alpha=0.1, layers=layers)


def size() -> Size:
    """An answer with two trials."""
    trials = (
        Trial(3, 0, 0.9, "fits", 100, projected=(0.8, 1.1), curve=((50, 1.0), (100, 0.9))),
        Trial(4, 0, 1.4, "too many", 100, gamma=0.1),
    )
    return Size(3, (3, 4), "fondue", threshold=1.0, per_seed=(3,), trials=trials, n_steps=200)


def curve() -> SizeCurve:
    """Two widths with one seed."""
    points = tuple(measure_point(LinearCandidates(EIGENVALUES, n_samples=300), n, 100) for n in (1, 2))
    return SizeCurve(points, (size(),), "vae", 100, 1.0, 300)


def rows() -> np.ndarray:
    return generator(0, "rows").normal(size=(200, 4)) * np.sqrt(EIGENVALUES)


def manipulation(folder: Path) -> Any:
    draw = generator(0, "pictures")
    keep_untrained(
        folder, ps.from_arrays(draw.random((40, 6)), draw.integers(3, size=40), unit_interval=True)
    )
    return open_manipulation(folder)


def plane() -> np.ndarray:
    return generator(0, "plane").normal(size=(300, 2))


TABLES: dict[str, tuple[Callable[..., Any], int, list[Any]]] = {
    "regime": (lambda run: ps.diagnose(codes()), 4, ["type", "in_use", "kl", "kl_low", "share_active"]),
    "criteria": (lambda run: ps.diagnose(codes()).criteria, 0, [0, 1, 2, 3]),
    "sensitivity": (lambda run: ps.diagnose(codes()).sensitivity, 8, [0, 3]),
    "scores": (lambda run: ps.score(codes(), ["mig", "sap"]), 2, ["value", "low", "high", "chance"]),
    "score": (lambda run: ps.metrics.mig(codes().mean, codes().factors), 1, ["value", "variant"]),
    "decomposition": (lambda run: ps.decompose(codes()), 5, ["value", "error"]),
    "dimension": (lambda run: ps.dimension["mle"](codes().mean), 1, ["value", "low", "high", "k"]),
    "stability": (lambda run: ps.stability([codes(), codes(1), codes(2)]), 9, ["returns", "lowest"]),
    "comparison": (lambda run: ps.compare([codes(), codes(1)]), 4, []),
    "heat map": (lambda run: ps.compare([codes(), codes(1)]).average(), 2, ["mean", "sampled"]),
    "course": (lambda run: course(), 2, ["active", "kl", "kl.3", "dimension.mean"]),
    "run's course": (lambda run: run.course(n_samples=100), 2, ["active", "kl.1"]),
    "loss split": (lambda run: run.geometry(n_samples=100).split, 3, ["value", "error"]),
    "orthogonality": (lambda run: run.geometry(n_samples=100).orthogonality, 2, [0, 1]),
    "pca": (lambda run: pca_alignment(np.eye(4)[:, :2] + 0.1, rows()), 2, [0, 1]),
    "polar": (lambda run: polar_test(plane(), plane() ** 2, n_bootstrap=10), 2, ["first", "angle"]),
    "eigenfaces": (
        lambda run: eigenfaces(run.model(), run.data(), n_faces=2, n_samples=50),
        2,
        ["deviation"],
    ),
    "interpolation": (
        lambda run: interpolate(run.model(), np.zeros(2, np.float32), np.ones(2, np.float32), n_steps=4),
        4,
        ["code.0", "code.1", "change"],
    ),
    "traversals": (
        lambda run: traverse(
            run.model(),
            run.representation(n_samples=50),
            run.regime(n_samples=50),
            run.data().values(range(50)),
            0,
        ),
        2,
        ["effect"],
    ),
    "size": (lambda run: size(), 2, ["n_latents", "statistic", "decision", "projected_low"]),
    "size curve": (lambda run: curve(), 2, ["loss", "trace", "active"]),
    "size comparison": (lambda run: ps.compare_sizes(rows(), ["linear", "id"]), 2, ["value", "low", "high"]),
    "linear solution": (lambda run: theory.linear_vae(EIGENVALUES, 3), 3, ["active", "variance", "kl"]),
    "linear size": (lambda run: theory.linear_size(EIGENVALUES), 3, ["trace", "gamma"]),
    "representation": (lambda run: codes(), 200, ["mean.0", "variance.3", "sampled.1", "factor.b"]),
    "variance shares": (
        lambda run: variance_shares(ps.load_dataset("sprites", image_size=8), n_samples=10),
        5,
        ["local", "global", "local_share"],
    ),
}
"""How to make each table, its number of rows (0 where it depends on a registry) and some of its columns."""
RECORDS: dict[str, Callable[..., Any]] = {
    "geometry": lambda run: run.geometry(n_samples=100),
    "dimension's curve": lambda run: ps.dimension["mle"](codes().mean).curve or ps.diagnose(codes()).mean,
    "latent": lambda run: ps.diagnose(codes()).latents[0],
    "polarised": lambda run: polarised_until_the_end([10, 20], [0.1, 0.01]),
    "prior fit": lambda run: prior_fit(codes(), None, None),
    "haar": lambda run: haar_distance(2),
    "noise": lambda run: noise.Noise(0.1, True),
    "posterior": lambda run: theory.linear_posterior(np.eye(3)),
    "found": lambda run: SeedResult(3, (3, 4)),
    "plane": lambda run: Plane(np.zeros((2, 2, 3)), (0, 1), np.array([-1.0, 1.0])),
}
"""Results that are not tables."""


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_a_frame_with_its_rows_and_columns(name: str, run: Run) -> None:
    make, n_rows, columns = TABLES[name]
    frame = make(run).to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert n_rows in (0, len(frame))
    assert set(columns) <= set(frame.columns)
    assert all(frame.index.names), "the index says what a row is"
    assert not frame.index.has_duplicates


@pytest.mark.parametrize("name", [*TABLES, *RECORDS])
def test_a_result_is_json_and_comes_back(name: str, run: Run) -> None:
    result = (TABLES[name][0] if name in TABLES else RECORDS[name])(run)
    stored = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    if hasattr(type(result), "from_dict"):
        assert type(result).from_dict(stored).to_dict() == result.to_dict()


def test_a_manipulation_is_a_table_of_its_log(tmp_path: Path) -> None:
    result = manipulation(tmp_path / "attack")
    frame = result.to_frame()
    assert frame.index.tolist() == [0, 1]
    assert frame["gap"].tolist() == [0.5, -1.25]
    assert json.loads(json.dumps(result.to_dict()))["key"] == result.key


def test_the_numbers_of_a_table_are_those_of_the_result(run: Run) -> None:
    regime = ps.diagnose(codes())
    frame = regime.to_frame()
    assert frame["type"].tolist() == regime.types
    assert frame.index[frame["in_use"]].tolist() == sorted(regime.in_use)
    assert (frame["kl_low"] <= frame["kl"]).all()
    scores = ps.score(codes(), ["mig"])
    assert scores.to_frame().loc["mig", "value"] == scores["mig"].value
    parts = ps.decompose(codes()).to_frame()["value"]
    assert parts["rate"] == pytest.approx(
        parts["mutual_information"] + parts["total_correlation"] + parts["dimension_wise_kl"]
    )
    comparison = ps.compare([codes(), codes(1)])
    matrix = comparison.to_frame()
    assert (matrix.to_numpy() == comparison.matrix).all()
    assert matrix.index.names == ["model", "layer"]
    assert course().to_frame().loc[20, "kl"] == pytest.approx(course().kl[1].sum())
    assert codes().to_frame().loc["row 7", "mean.0"] == codes().mean[7, 0]
    split = run.geometry(n_samples=100).split
    assert split.to_frame()["value"].sum() == pytest.approx(split.total, rel=1e-5)
    assert curve().to_frame().loc[(2, 0), "trace"] == curve().points[1].trace
    assert size().to_frame()["statistic"].tolist() == [0.9, 1.4]


def test_answers_of_several_methods_are_still_a_tuple() -> None:
    answers = ps.compare_sizes(rows(), ["linear", "id"])
    assert isinstance(answers, tuple)
    assert answers.to_frame()["value"].tolist() == [answer.value for answer in answers]
    assert list(answers.to_dict()) == ["linear", "id"]


def result_classes() -> list[type]:
    """Every public dataclass of the packages of results."""
    modules = [
        importlib.import_module(module.name)
        for package in (analysis, geometry)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if ".support" not in module.name
    ]
    modules += [
        importlib.import_module(f"polariscope.{name}")
        for name in ("layers.comparison", "sizing.curve_result", "manipulation.manipulation", "data.variance")
    ]
    return [
        member
        for module in modules
        for name, member in vars(module).items()
        if dataclasses.is_dataclass(member)
        and isinstance(member, type)
        and member.__module__ == module.__name__
        and not name.startswith("_")
    ]


def test_every_result_can_be_written_as_json() -> None:
    lacking = {one.__name__ for one in result_classes() if not hasattr(one, "to_dict")}
    assert lacking <= INTERNAL, "inherit from AbstractRecord"
