"""Calls of the Python interface with unsuitable objects: each is refused with a message of ours."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import polariscope as ps
from long_training import unchecked
from polariscope.core.errors import InputError, PolariscopeError

X = np.random.default_rng(0).standard_normal((60, 5)).astype(np.float32)


class Refusing:
    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise RuntimeError("no")


class Negative:
    def __len__(self) -> int:
        return -1

    def __getitem__(self, index: int) -> int:
        raise IndexError


def encoded(codes: Callable) -> object:
    return ps.encode(lambda x: (codes(x), torch.zeros_like(codes(x))), X)


CALLS: dict[str, Callable[[], object]] = {
    "data on the meta device": lambda: ps.from_arrays(torch.zeros(5, 3, device="meta")),
    "codes on the meta device": lambda: encoded(lambda x: torch.zeros(len(x), 2, device="meta")),
    "an array that raises": lambda: ps.from_arrays(Refusing()),
    "codes that raise": lambda: ps.diagnose(mean=Refusing(), variance=Refusing()),
    "a negative length": lambda: ps.from_dataset(Negative()),
    "factors of negative length": lambda: ps.from_arrays(X, factors=Negative()),
    "no latents": lambda: encoded(lambda x: x[:, :0]),
    "a number as runs": lambda: ps.compare(3),
    "numbers as runs": lambda: ps.compare([3]),
    "a number as models": lambda: ps.stability(3),
    "numbers as models": lambda: ps.stability([3, 4]),
    "a number to manipulate": lambda: ps.manipulate(3),
    "a number to report": lambda: ps.report(3),
    "nothing to report": lambda: ps.report(None),
    "nothing to encode with": lambda: ps.encode(None, X),
    "a number to diagnose": lambda: ps.diagnose(3),
    "a number to size": lambda: ps.size(3),
    "a number as a method": lambda: ps.size(X, method=3),
    "a number as a trainer": lambda: ps.size(X, trainer=3),
    "a trainer without a model": lambda: ps.size(X, trainer=lambda n_latents: None),
    "numbers to wrap": lambda: ps.wrap(3, 4),
    "a number as a model": lambda: ps.load_model(3),
    "nothing as a run": lambda: ps.open_run(None),
    "a number as a study": lambda: ps.Study.load(3),
    "a number as data": lambda: ps.from_arrays(np.float32(3)),
    "an array to decompose": lambda: ps.decompose(X),
    "a number as metrics": lambda: ps.score(encoded(lambda x: x), metrics=3),
    "numbers to a metric": lambda: ps.metrics.mig(3, 4),
    "a number as a name": lambda: ps.similarity[3],
    "an unknown user": lambda: ps.open_run("~no-such-user/x"),
    "a NUL in a run": lambda: ps.open_run("a\0b"),
    "a NUL in data": lambda: ps.load_dataset("a\0b.csv"),
    "a NUL in a folder": lambda: ps.train(X, out="a\0b", steps=1),
    "an option with a space": lambda: ps.train(X, **{"a b": 3}),
    "a number as the name of an objective": lambda: ps.train(X, objective={"name": 3}),
    "a number as an option": lambda: ps.train(X, net={"name": "mlp", 5: 6}),
    "a mapping without a name": lambda: ps.train(X, objective={3: 4}),
    "an array as an optimiser": lambda: ps.train(X, optimiser=np.array(["adam", "sgd"]), steps=1),
    "10^30 latents": lambda: ps.train(X, n_latents=10**30, steps=1),
    "half a latent": lambda: ps.train(X, n_latents="2.5", steps=1),
    "a device that is a list": lambda: ps.train(X, device=[], steps=1),
    "an array that raises to the estimator": lambda: ps.VAE(n_latents=2).fit(Refusing()),
    "a negative length to the estimator": lambda: ps.VAE(n_latents=2).fit(Negative()),
    "an object to the estimator": lambda: ps.VAE(n_latents=2).fit(object()),
    "factors to a metric of codes alone": lambda: ps.metrics["hoyer"](X, X),
    "no factors to a metric": lambda: ps.metrics["mig"](X),
    "codes without variances": lambda: ps.Representation(mean=X, variance=None, sampled=X),
    "codes without samples": lambda: ps.Representation(mean=X, variance=X**2, sampled=None),
    "latents that are not a number": lambda: ps.VAE(n_latents=float("nan")).fit(X),
}


@unchecked()
@pytest.mark.parametrize("name", CALLS)
def test_unsuitable_objects_are_refused_with_a_message_of_ours(name: str) -> None:
    with pytest.raises(PolariscopeError) as refusal:
        CALLS[name]()
    assert "0x" not in str(refusal.value)  # no address of an object


@unchecked()
def test_circular_links_are_refused(tmp_path: Path) -> None:
    os.symlink(tmp_path / "b", tmp_path / "a")
    os.symlink(tmp_path / "a", tmp_path / "b")
    for call in (
        lambda: ps.open_run(tmp_path / "a"),
        lambda: ps.load_dataset(str(tmp_path / "a" / "x.csv")),
        lambda: ps.train(X, out=tmp_path / "a" / "run", steps=1),
    ):
        with pytest.raises(PolariscopeError):
            call()


def test_texts_are_converted_in_the_same_way_for_all_numbers() -> None:
    model = ps.train(X, net="linear", n_latents="2", steps="1", learning_rate="1e-3")
    assert model.n_latents == 2


def test_numbers_of_numpy_are_settings_of_a_study(tmp_path: Path) -> None:
    design = {
        "data": "digits",
        "objective": {"name": "beta", "beta": np.float32(2)},
        "grid": {"n_latents": list(np.arange(2, 4))},
        "settings": {"steps": np.int64(2), "net": "linear"},
        "out": str(tmp_path),
    }
    study = ps.Study.from_dict(design)
    assert {type(point.settings["n_latents"]) for point in study.points()} == {int}
    assert study.to_dict()["objective"] == [{"name": "beta", "beta": 2.0}]


@unchecked()
def test_integer_codes_are_decomposed_like_the_same_floats() -> None:
    mean = np.random.default_rng(0).integers(3, size=(60, 3))
    codes = {"mean": mean, "variance": np.full(mean.shape, 0.5), "sampled": mean}
    floats = {name: array.astype(np.float64) for name, array in codes.items()}
    whole, real = (ps.decompose(ps.Representation(**arrays)) for arrays in (codes, floats))
    assert whole == real


@unchecked()
def test_a_metric_names_its_arguments() -> None:
    with pytest.raises(InputError, match=r"metric 'hoyer'.*too many positional.*its arguments are codes"):
        ps.metrics["hoyer"](X, X)
