"""The one function that turns an object of any library, or a path, into a model."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from polariscope.core.errors import Argument, InputError
from polariscope.core.paths import existing_path
from polariscope.models.adapters import AbstractAdapter, Foreign, declaration, in_order
from polariscope.models.adapters.wrapped import WrappedModel, type_name
from polariscope.models.inference import auxiliary_of, batch_size, check_shape, inference_mode
from polariscope.models.protocol import AbstractModel

if TYPE_CHECKING:
    from polariscope.data.data_like import DataLike
    from polariscope.data.dataset import AbstractDataset


def adapter_of(thing: object) -> AbstractAdapter | None:
    """Return the adapter that recognises an object or a path; None if there is none.

    :param thing: the object.
    """
    thing = Path(thing) if isinstance(thing, str) else thing
    return next((adapter for adapter in in_order().values() if adapter.recognises(thing)), None)


def is_openable(thing: object) -> bool:
    """Return True for a model of this or another library, or a path of one.

    :param thing: the object.
    """
    return isinstance(thing, AbstractModel) or adapter_of(thing) is not None


def is_whole(thing: object) -> bool:
    """Return True for an object that an adapter other than that of functions recognises.

    :param thing: the object.
    """
    from polariscope.models.adapters.wrapped import FunctionAdapter

    found = adapter_of(thing)
    return found is not None and not isinstance(found, FunctionAdapter)


def open_model(
    thing: object, data: DataLike | None = None, **options: object
) -> tuple[AbstractModel, AbstractDataset | None]:
    """Return an object of any library as a model, and the data in the units of the model.

    With data, a model of another library is first tried on a few observations, so errors are raised early, and the
    meaning of outputs without names is known.

    :param thing: a model of this package, an object of another library, or a path.
    :param data: (default None) a dataset or an array; it is converted to a dataset.
    :param options: options of :func:`polariscope.wrap`; None for those that were not set.
    """
    from polariscope.data.chain import in_units
    from polariscope.data.inputs import as_dataset

    explicit = {name: value for name, value in options.items() if value is not None}
    dataset: AbstractDataset | None = None
    if isinstance(thing, AbstractModel):
        if explicit:
            raise InputError(
                problem=(Argument(next(iter(explicit))), " is for functions and modules of other libraries"),
                remedy="leave it out",
            )
        model = thing
    else:
        path = existing_path(thing) if isinstance(thing, str | Path) else None
        adapter = adapter_of(thing if path is None else path)
        if adapter is None:
            raise _not_a_model(thing, path)
        opened = adapter.open(thing if path is None else path, data, explicit)
        model, dataset = opened.model, opened.dataset
    if data is not None and dataset is None:
        dataset = as_dataset(data)
    if dataset is not None and model.units:
        dataset = in_units(dataset, model.units)
    if dataset is not None and isinstance(model, WrappedModel):
        _try(model, dataset)
    return model, dataset


def _try(model: WrappedModel, dataset: AbstractDataset) -> None:
    """Encode and decode a few observations, unless the model was used before."""
    if model.was_used or not len(dataset):
        return
    check_shape(model, dataset)
    indices = np.arange(min(batch_size(dataset.n_features), len(dataset)))

    def run() -> None:
        with inference_mode(model):
            x = model.place(torch.from_numpy(np.ascontiguousarray(dataset.values(indices))))
            with _recording(model.whole) as used:
                q = model.encode(x, auxiliary_of(model, dataset, indices))
                if model.has_decoder:
                    model.decode(q.mean)
        if model.whole is not None and not model.has_density:
            _refuse_unused_weights(model.whole, used)

    model.attempt(run)


@contextlib.contextmanager
def _recording(module: nn.Module | None) -> Iterator[set[nn.Module]]:
    """Record the parts of a module that run."""
    used: set[nn.Module] = set()
    parts = [] if module is None else list(module.modules())
    hooks = [part.register_forward_hook(lambda part, _, __: used.add(part)) for part in parts]
    try:
        yield used
    finally:
        for hook in hooks:
            hook.remove()


def _refuse_unused_weights(module: nn.Module, used: set[nn.Module]) -> None:
    """Raise an error if a deterministic autoencoder has layers that it does not use, such as that of a log-variance."""
    unused = [
        name
        for name, part in module.named_modules()
        if part not in used and not list(part.children()) and list(part.parameters(recurse=False))
    ]
    if unused:
        raise InputError(
            "the encoder",
            "return (mean, log_variance), or use all layers of a deterministic autoencoder",
            got=f"one array of codes without the layers {', '.join(unused[:5])} of {type_name(module)}",
            remedy=(
                "pass polariscope.wrap a function of a batch that returns (mean, log_variance), or use ",
                declaration("outputs", ("mean",)),
                " if the encoder is deterministic",
            ),
        )


def _not_a_model(thing: object, path: Path | None) -> InputError:
    if path is None:
        return InputError(
            "model",
            "be a model, a run folder or a function that returns (mean, log_variance)",
            got=f"an object of type {type_name(thing)}",
        )
    kind = "folder" if path.is_dir() else "file"
    return InputError(
        problem=f"{path} is not a {kind} of a model that can be opened",
        remedy=(
            "pass a run folder, a folder of diffusers or of a saved polariscope.VAE, an .onnx file, or a model object"
        ),
    )


def wrap(
    encoder: Foreign,
    decoder: Foreign = None,
    *,
    likelihood: str | None = None,
    variance: float | None = None,
    shape: Sequence[int] | int | None = None,
    second: str | None = None,
    outputs: Sequence[str] | None = None,
    prior: object = None,
    layers: Sequence[str] | None = None,
    name: str | None = None,
) -> AbstractModel:
    """Create a model from an encoder and a decoder, or from a whole model of another library.

    All analyses also accept the objects themselves; use this function to set options.

    :param encoder: a module or function from a batch of observations to a posterior, in any of the common forms:
        ``(mean, log_variance)``; a mapping or object that names its parts (mean, mu, embedding, z_mean; log_variance,
        logvar, log_covariance, variance, std, log_std; latent_dist); a normal distribution of PyTorch. Without a
        decoder also a whole model: anything with ``encode`` and ``decode`` or ``encoder`` and ``decoder``, models of
        pythae, diffusers, scvi-tools, Keras and skorch, or the path of an ONNX file. The order of three arrays, such as
        ``(z, mean, log_variance)``, is inferred from their values on the first batch. Codes with several axes are
        flattened.
    :param decoder: (default None) a module or function from a batch of latents to observations.
    :param likelihood: (default "auto") meaning of the decoder's outputs: "bernoulli" for probabilities,
        "bernoulli-logits", "gaussian" for means; "auto" for probabilities if all are in [0, 1], otherwise means.
    :param variance: (default 1) variance of every value, for "gaussian".
    :param shape: (default: that of the first batch) shape of one observation, without the batch. If it is passed, the
        model is tested at once on a batch of zeros.
    :param second: (default "log_variance") meaning of the second array of a pair; or "variance", "std", "log_std".
    :param outputs: (default: inferred) meaning of each array that the encoder returns, in their order, for example
        ``("z", "mean", "log_variance")``: "mean", "log_variance", "variance", "std", "log_std", "z", "reconstruction"
        or "other". Without a variance, as in ``("mean",)``, the encoder is deterministic.
    :param prior: (default "isotropic") name of a prior, or a mapping with its options.
    :param layers: (default: every module without submodules) names of the modules that ``compare`` uses.
    :param name: (default: the type of the object) name of the model in reports.
    """
    options: dict[str, Any] = {
        "likelihood": likelihood,
        "variance": variance,
        "shape": shape,
        "second": second,
        "outputs": outputs,
        "prior": prior,
        "layers": layers,
        "name": name,
    }
    explicit = {name: value for name, value in options.items() if value is not None}
    if decoder is None and (isinstance(encoder, str | Path) or is_whole(encoder)):
        return open_model(encoder, **explicit)[0]
    return WrappedModel(encoder, decoder, **explicit)
