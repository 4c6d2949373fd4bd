"""Saving and loading of a fitted estimator, without pickle."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from polariscope import __version__
from polariscope.analysis.regime.regime import Regime
from polariscope.core import files
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.core.options import to_record
from polariscope.core.records import to_plain
from polariscope.data.counts import ValueFacts
from polariscope.estimators.units import Units
from polariscope.models.model import read_model
from polariscope.sizing.result import Size
from polariscope.storage import ESTIMATOR, MODEL
from polariscope.training.likelihood import LikelihoodChoice, choose_likelihood
from polariscope.training.plan import FAMILIES
from polariscope.training.planner import Planned

if TYPE_CHECKING:
    from polariscope.estimators.vae import VAE

FORMAT = 1
"""Version of the file format; it increases with changes that older versions cannot read."""


def save(vae: VAE, folder: Path) -> None:
    """Write two files: the model, which ``polariscope.load_model`` can read, and the rest with the model's hash.

    Parameters that are objects are written as mappings. A random_state that is a generator is written as the seed that
    was drawn from it, so fitting the loaded estimator gives the same result.
    """
    # The folder is replaced as a whole, so other files in it would be lost.
    if folder.exists() and (
        not folder.is_dir() or {file.name for file in folder.iterdir()} - {MODEL, ESTIMATOR}
    ):
        raise InputError(
            "folder", "be new or contain only a saved estimator", got=f"{folder}, which contains other files"
        )
    units = vae.units_
    record = {
        "format": FORMAT,
        "polariscope": __version__,
        "parameters": _parameters(vae),
        "model": vae.model_.digest,
        "regime": vae.regime_.to_dict(),
        "size": None if vae.size_ is None else vae.size_.to_dict(),
        "kept": vae.kept_,
        "history": vae.history_,
        "seed": vae.seed_,
        "units": {"kind": units.kind, "shape": units.shape}
        | {"is_bytes": units.is_bytes, "is_unit_interval": units.is_unit_interval, "white": units.white}
        | ({} if units.ratio == 1 else {"ratio": units.ratio}),
        "likelihood": None if vae.likelihood_ is None else vae.likelihood_.to_dict(),
        "n_missing": vae.n_missing_,
        "planned": dict(vae.planned_.options),
        "n_features_in": vae.n_features_in_,
        "feature_names_in": [str(name) for name in getattr(vae, "feature_names_in_", ())],
    }
    arrays = {"offset": units.offset, "scale": units.scale, "medians": vae.medians_}
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items() if array is not None}
    with files.atomic_folder(folder) as part:
        vae.model_.save(part / MODEL)
        files.write_tensors(part / ESTIMATOR, tensors, record)


def load(kind: type[VAE], folder: Path, device: str) -> VAE:
    """Load an estimator written by :func:`save`, and check that both files are intact and belong together."""
    import numpy as np

    if not folder.exists() and folder.parent.is_dir():
        # Restores a folder whose replacement was interrupted.
        files.remove_leftovers(folder.parent)
    if not (folder / ESTIMATOR).exists():
        raise InputError(
            problem=f"{folder} is not a saved estimator: it has no {ESTIMATOR}",
            remedy="save an estimator with VAE.save",
        )
    tensors, record = files.read_tensors(folder / ESTIMATOR)
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise PolariscopeError(
            f"{folder / ESTIMATOR} does not have format {FORMAT}, which this version of polariscope reads; "
            "use the version that wrote it."
        )
    model = read_model(folder / MODEL, device)
    if model.digest != record["model"]:
        raise PolariscopeError(
            f"{folder / MODEL} is not the model that {ESTIMATOR} was saved with; restore the original files."
        )
    shape = tuple(record["units"].pop("shape"))
    arrays: dict[str, Any] = {name: tensor.numpy() for name, tensor in tensors.items()}
    vae = kind(**record["parameters"])
    vae.medians_, vae.n_missing_ = arrays.pop("medians", None), record.get("n_missing", 0)
    vae._set_fitted(
        model=model,
        regime=Regime.from_dict(record["regime"]),
        size=None if record["size"] is None else Size.from_dict(record["size"]),
        units=Units(shape=shape, **record["units"], **arrays),
        latents=record["kept"],
        history=record["history"],
        seed=record["seed"],
        likelihood=_likelihood(record, vae.likelihood),
    )
    vae.planned_ = Planned(record.get("planned", {}), {})  # 0.2.0 did not store it
    vae.n_features_in_ = record["n_features_in"]
    if record["feature_names_in"]:
        vae.feature_names_in_ = np.array(record["feature_names_in"], dtype=object)
    return vae


def _likelihood(record: dict[str, Any], parameter: object) -> LikelihoodChoice | None:
    """Return the chosen likelihood; version 0.2 did not write it, and chose it only by the interval of the values."""
    if "likelihood" in record:
        return None if record["likelihood"] is None else LikelihoodChoice.from_dict(record["likelihood"])
    if parameter != "auto":
        return None
    units = record["units"]
    return choose_likelihood(ValueFacts(units["kind"] == "rows", units["is_unit_interval"]))


def _parameters(vae: VAE) -> dict[str, Any]:
    """Return the parameters as JSON values."""
    parameters = vae.get_params(deep=False)
    for kind, family in FAMILIES.items():
        if dataclasses.is_dataclass(parameters[kind]):
            parameters[kind] = to_record(parameters[kind], family)
    parameters["device"] = str(parameters["device"])
    if parameters["random_state"] is not None:
        parameters["random_state"] = vae.seed_
    return to_plain(parameters)
