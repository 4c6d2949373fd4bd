"""Autoencoders of diffusers, as objects or as folders of a configuration and safetensors."""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from polariscope.core.errors import InputError, not_installed
from polariscope.models.adapters import AbstractAdapter, Foreign, Opened, adapter, is_from
from polariscope.models.adapters.support.calls import type_name
from polariscope.models.adapters.wrapped import Method, adapted

CONFIG = "config.json"
WEIGHTS = "diffusion_pytorch_model.safetensors"


@adapter("diffusers", order=20)
class DiffusersAdapter(AbstractAdapter):
    """Autoencoders of diffusers, such as AutoencoderKL, live or in a folder.

    Images in [0, 1] are converted to [−1, 1] for the encoder and back after the decoder. Codes are those of the
    posterior, before they are multiplied by ``scaling_factor``.
    """

    def recognises(self, thing: object) -> bool:
        if isinstance(thing, Path):
            return _class_name(thing) is not None
        return is_from(thing, "diffusers") and isinstance(thing, nn.Module) and hasattr(thing, "decode")

    def open(self, thing: Foreign, data: object, options: Mapping[str, object]) -> Opened:
        if isinstance(thing, Path):
            thing = _load(thing)
        encoder = Method(thing, lambda x: thing.encode(2 * x - 1))
        decoder = Method(thing, lambda z: (thing.decode(z).sample + 1) / 2)
        return Opened(
            adapted(
                encoder,
                decoder,
                options,
                is_point=True,
                notes=_notes(thing),
                likelihood="gaussian",
                name=f"{type_name(thing)} (diffusers)",
            )
        )


def _notes(model: Any) -> dict[str, str]:
    """Return notes on the range of the images and on the scale of the codes."""
    config = getattr(model, "config", {})
    notes = {"range": "Images in [0, 1] were converted to [−1, 1], the range of this autoencoder."}
    factor, mean, std = (_entry(config, name) for name in ("scaling_factor", "latents_mean", "latents_std"))
    if mean is not None and std is not None:
        notes["scale"] = (
            f"Codes are not scaled; diffusion models use (z − latents_mean) / latents_std{_times(factor)}."
        )
    elif factor is not None:
        notes["scale"] = f"Codes are not scaled; diffusion models multiply them by {factor:g}."
    return notes


def _times(factor: float | None) -> str:
    return "" if factor in (None, 1.0) else f" times {factor:g}"


def _entry(config: Any, name: str) -> Any:
    return config.get(name) if isinstance(config, Mapping) else getattr(config, name, None)


def _class_name(folder: Path) -> str | None:
    """Return the class that a folder of diffusers was written by; None for other folders."""
    file = folder / CONFIG
    if not file.is_file() or file.stat().st_size > 2**20:
        return None
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    name = config.get("_class_name") if isinstance(config, dict) else None
    return name if isinstance(name, str) and name.isidentifier() and "_diffusers_version" in config else None


def _load(folder: Path) -> Any:
    """Build the class that a folder names, from the installed diffusers, with the weights of the folder."""
    name = _class_name(folder)
    if not (folder / WEIGHTS).is_file():
        raise InputError(
            problem=f"{folder} has no {WEIGHTS}",
            remedy=(
                "other formats of weights contain pickles, which run code when they are opened; load the model "
                "yourself and pass the object"
            ),
        )
    if importlib.util.find_spec("diffusers") is None:
        raise not_installed(f"opening {folder}", "diffusers", "interop", instead="pass codes or an ONNX file")
    kind = getattr(importlib.import_module("diffusers"), str(name), None)
    if kind is None or not hasattr(kind, "from_pretrained"):
        raise InputError(
            problem=f"diffusers has no model {name}, which {folder / CONFIG} names",
            remedy="install the version of diffusers that wrote it",
        )
    # Without the package accelerate, the default would print a warning.
    options = {"use_safetensors": True, "local_files_only": True, "low_cpu_mem_usage": False}
    return kind.from_pretrained(str(folder), **options).eval()
