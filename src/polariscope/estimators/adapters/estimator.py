"""Fitted estimators of this package, their saved folders, and pipelines that end in one."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from polariscope.core.errors import Argument, InputError
from polariscope.data.chain import in_units
from polariscope.data.dataset import AbstractDataset
from polariscope.data.inputs import as_dataset
from polariscope.models.adapters import AbstractAdapter, Foreign, Opened, adapter, is_from
from polariscope.models.protocol import AbstractModel
from polariscope.storage import ESTIMATOR


@adapter("estimator", order=10)
class EstimatorAdapter(AbstractAdapter):
    """A fitted VAE of this package, its saved folder, or a scikit-learn pipeline that ends in one.

    The model has all latents, not only those in use. Data are converted as in ``transform``.
    """

    def recognises(self, thing: object) -> bool:
        if isinstance(thing, Path):
            return (thing / ESTIMATOR).is_file()
        return _is_estimator(thing) or _is_estimator(_last_step(thing))

    def open(self, thing: Foreign, data: object, options: Mapping[str, object]) -> Opened:
        if options:
            raise InputError(
                problem=(Argument(next(iter(options))), " is for functions and modules of other libraries"),
                remedy="leave it out: an estimator has a known posterior and likelihood",
            )
        if isinstance(thing, Path):
            from polariscope.estimators.vae import VAE

            thing = VAE.load(thing)
        vae = thing if _is_estimator(thing) else _last_step(thing)
        if not hasattr(vae, "model_"):
            raise InputError("model", "be fitted", got="a VAE that is not", remedy="call its fit(X) first")
        model = copy.copy(vae.model_)
        model.units, model.training_state = _units(vae), vae.regime_.training
        if data is None or vae is thing:
            return Opened(model)
        return Opened(model, in_units(_transformed(thing, data), model.units))


def _is_estimator(thing: object) -> bool:
    return (
        is_from(thing, "polariscope") and hasattr(thing, "transform") and not isinstance(thing, AbstractModel)
    )


def _last_step(thing: object) -> Any:
    """Return the last step of a scikit-learn pipeline; None for other objects."""
    steps = getattr(thing, "steps", None)
    if not isinstance(steps, list) or not steps or not isinstance(steps[-1], tuple):
        return None
    return steps[-1][-1]


def _units(vae: Any) -> tuple[Mapping[str, object], ...]:
    """Return the record of the variant that changes units as the estimator does; empty if it does not."""
    units = vae.units_
    if units.offset is None or units.scale is None:
        return ()
    offset, scale = (np.asarray(each, dtype=np.float64).tolist() for each in (units.offset, units.scale))
    if vae.scale:
        high = [low + step for low, step in zip(offset, scale, strict=True)]
        return ({"name": "scaled", "low": offset, "high": high},)
    if vae.standardise:
        return ({"name": "standardised", "mean": offset, "deviation": scale},)
    return ({"name": "centred", "mean": offset, "deviation": scale[0]},)


def _transformed(pipeline: Any, data: Any) -> AbstractDataset:
    """Return data after the steps of a pipeline before the last, with their factors."""
    from polariscope.data.own.arrays import from_arrays

    dataset = data if isinstance(data, AbstractDataset) else None
    if dataset is None and not hasattr(data, "shape"):
        dataset = as_dataset(data)
    rows = data if dataset is None else dataset.values(np.arange(len(dataset)))
    values = pipeline[:-1].transform(rows) if len(pipeline.steps) > 1 else rows
    if dataset is None or not dataset.factor_names:
        return from_arrays(values)
    indices = np.arange(len(dataset))
    return from_arrays(
        values,
        dataset.factors(indices),
        factor_names=dataset.factor_names,
        factor_kinds=dataset.factor_kinds,
        ids=dataset.ids(indices),
    )
