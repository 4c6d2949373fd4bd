"""A model: encoder, decoder and prior, built from a blueprint and stored with it on disk."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from polariscope import __version__
from polariscope.core import files
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.core.options import from_record, to_record
from polariscope.core.seeds import derive
from polariscope.core.text import listed
from polariscope.core.types import Recordable
from polariscope.models.likelihoods import AbstractLikelihood, AbstractLikelihoodDistribution, likelihood
from polariscope.models.nets import AbstractNet, Initialisation, Trunk, initialise, net
from polariscope.models.posteriors import AbstractPosterior, AbstractPosteriorDistribution, posterior
from polariscope.models.priors import AbstractPrior, prior
from polariscope.models.protocol import AbstractModel

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset

MAX_LATENTS = 1_000_000


@dataclasses.dataclass(frozen=True)
class Blueprint:
    """Everything needed to build a model of the right shape, except for its weights."""

    net: AbstractNet
    posterior: AbstractPosterior
    prior: AbstractPrior
    likelihood: AbstractLikelihood
    n_latents: int
    shape: tuple[int, ...]
    initialisation: Initialisation = "glorot"
    n_auxiliary: int = 0
    """Width of the auxiliary variable u that encoder and prior receive besides x; 0 if there is none."""
    decodes: bool = True
    """If True, there is a decoder; contrastive models and classifiers have none."""
    normalises: bool = False
    """If True, batch norm follows every hidden layer of the decoder, as in a generator."""

    def __post_init__(self) -> None:
        if not 1 <= self.n_latents <= MAX_LATENTS:
            raise InputError("n_latents", f"be at least 1 and at most {MAX_LATENTS:,}", got=self.n_latents)
        self.net.check(self.shape)
        self.prior.check(self.n_latents)

    def describe(self) -> dict[str, Any]:
        """Return a JSON record, the inverse of :meth:`from_record`; ``normalises`` is left out if False, as before."""
        return {
            "net": to_record(self.net, net),
            "posterior": to_record(self.posterior, posterior),
            "prior": to_record(self.prior, prior),
            "likelihood": to_record(self.likelihood, likelihood),
            "n_latents": self.n_latents,
            "shape": list(self.shape),
            "initialisation": self.initialisation,
            "n_auxiliary": self.n_auxiliary,
            "decodes": self.decodes,
            **({"normalises": True} if self.normalises else {}),
        }

    @staticmethod
    def from_record(record: dict[str, Any]) -> Blueprint:
        return Blueprint(
            net=from_record(net, record["net"]),
            posterior=from_record(posterior, record["posterior"]),
            prior=from_record(prior, record["prior"]),
            likelihood=from_record(likelihood, record["likelihood"]),
            n_latents=record["n_latents"],
            shape=tuple(record["shape"]),
            initialisation=record["initialisation"],
            n_auxiliary=record["n_auxiliary"],
            decodes=record["decodes"],
            normalises=record.get("normalises", False),
        )

    def build(self, seed: int, data: AbstractDataset | None = None) -> Model:
        """Build a model with new weights drawn from ``seed``; ``data`` is for priors that are initialised from it."""
        with torch.random.fork_rng(devices=[]):  # layers draw from the global generator when constructed
            model = Model(self, data, torch.Generator().manual_seed(derive(seed, "prior")))
        # Weights and prior have streams of their own, so another prior does not change the weights.
        weights = torch.Generator().manual_seed(derive(seed, "weights"))
        for part in (model.encoder, model.decoder):
            if part is not None:
                initialise(part, self.initialisation, weights)
        return model


class Encoder(nn.Module):
    """q(z|x): a trunk and a posterior head."""

    def __init__(self, trunk: Trunk, head: nn.Module) -> None:
        super().__init__()
        self.trunk, self.head = trunk, head

    def forward(
        self, x: Float[Tensor, "sample *shape"], auxiliary: Float[Tensor, "sample auxiliary"] | None = None
    ) -> AbstractPosteriorDistribution:
        return self.head(self.trunk(x, auxiliary))


class Decoder(nn.Module):
    """p(x|z): a trunk and a likelihood head."""

    def __init__(self, trunk: Trunk, head: nn.Module) -> None:
        super().__init__()
        self.trunk, self.head = trunk, head

    def forward(self, z: Float[Tensor, "sample latent"]) -> AbstractLikelihoodDistribution:
        return self.head(self.trunk(z))


class Model(AbstractModel):
    """A variational autoencoder: ``encode`` returns q(z|x), ``decode`` returns p(x|z), ``prior`` is p(z)."""

    def __init__(
        self, blueprint: Blueprint, data: AbstractDataset | None, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.blueprint = blueprint
        b = blueprint
        self.n_auxiliary = b.n_auxiliary
        self.has_exact_variance = True
        self.has_density = b.posterior.has_density
        self.is_diagonal = b.posterior.is_diagonal
        self.needs_counts = b.likelihood.needs_counts
        encoder = b.net.encoder(b.shape, b.n_auxiliary)
        self.encoder = Encoder(encoder, b.posterior.head(encoder.out_features, b.n_latents))
        self.decoder = (
            Decoder(
                b.net.decoder(b.n_latents, b.shape, b.likelihood.n_parameters),
                b.likelihood.head(b.shape, data),
            )
            if b.decodes
            else None
        )
        # Imported only for the few models that use it.
        if b.normalises and self.decoder is not None:
            from polariscope.models.normalisation import add_batch_norm

            add_batch_norm(self.decoder.trunk)
        # Priors without a net compute with their numbers, which a model on the meta device would not have.
        with contextlib.nullcontext() if b.prior.is_conditional else torch.device("cpu"):
            self.prior = b.prior.build(b.n_latents, data, b.n_auxiliary, generator)
        # A buffer that moves with the weights: reading device and type from these would walk through all modules.
        self.anchor: Tensor
        self.register_buffer("anchor", torch.empty(0), persistent=False)

    @property
    def n_latents(self) -> int:
        return self.blueprint.n_latents

    @property
    def shape(self) -> tuple[int, ...]:
        return self.blueprint.shape

    @property
    def has_decoder(self) -> bool:
        return self.decoder is not None

    @property
    def device(self) -> torch.device:
        return self.anchor.device

    @property
    def dtype(self) -> torch.dtype:
        return self.anchor.dtype

    def encode(
        self, x: Float[Tensor, "sample *shape"], auxiliary: Float[Tensor, "sample auxiliary"] | None = None
    ) -> AbstractPosteriorDistribution:
        """Return q(z|x), or q(z|x, u) with an auxiliary variable, for observations in the units of ``values``."""
        n_auxiliary = 0 if auxiliary is None else auxiliary.shape[1]
        if n_auxiliary != self.blueprint.n_auxiliary:
            raise InputError(
                problem=f"the model requires {self.blueprint.n_auxiliary} auxiliary values per sample",
                got=n_auxiliary,
            )
        if tuple(x.shape[1:]) != self.blueprint.shape:
            raise InputError(
                problem=f"the model requires observations of shape {self.blueprint.shape}",
                got=f"{tuple(x.shape[1:])}",
            )
        return self.encoder(self.blueprint.likelihood.encoder_input(x), auxiliary)

    def decode(self, z: Float[Tensor, "sample latent"]) -> AbstractLikelihoodDistribution:
        """Return p(x|z) for a batch of latents."""
        if self.decoder is None:
            raise InputError(problem="this model has no decoder: its objective trains an encoder only")
        return self.decoder(z)

    @property
    def gamma(self) -> float | None:
        """The decoder's current variance γ if it is one number for all values, otherwise None."""
        return None if self.decoder is None else self.blueprint.likelihood.gamma_of(self.decoder.head)

    def to_device(self, device: str | torch.device) -> Model:
        """Move to ``device``, with weights in the memory layout in which convolutions are fastest."""
        self.to(device)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return self

    def place(self, x: Float[Tensor, "sample *shape"]) -> Float[Tensor, "sample *shape"]:
        """Move a batch to the model's device, type and preferred memory layout."""
        layout = torch.channels_last if x.ndim == 4 else torch.contiguous_format
        return x.to(device=self.device, dtype=self.dtype, memory_format=layout)

    def activations(
        self,
        x: Float[Tensor, "sample *shape"],
        noise: Float[Tensor, "sample latent"],
        auxiliary: Float[Tensor, "sample auxiliary"] | None = None,
    ) -> Iterator[tuple[str, Float[Tensor, "sample ..."]]]:
        """Yield name and activation of every layer in network order.

        The names are :attr:`layer_names`: ``input``, ``encoder/1`` …, ``mean``, ``variance``, ``sampled``,
        ``decoder/1`` …. The last decoder layer is the raw output (logits for a Bernoulli likelihood). The sampled layer
        is the posterior at standard normal ``noise``.
        """
        yield "input", x
        features = self.blueprint.likelihood.encoder_input(x)
        for number, activation in enumerate(self.encoder.trunk.activations(features, auxiliary), start=1):
            features = activation
            yield f"encoder/{number}", activation
        q = self.encoder.head(features)
        z = q.at(noise)
        yield "mean", q.mean
        yield "variance", q.variance
        yield "sampled", z
        if self.decoder is not None:
            for number, activation in enumerate(self.decoder.trunk.activations(z), start=1):
                yield f"decoder/{number}", activation

    @property
    def layer_names(self) -> tuple[str, ...]:
        """Names of the layers in network order, as :meth:`activations` yields them."""
        encoder = [f"encoder/{number + 1}" for number in range(len(self.encoder.trunk.layers))]
        n_decoder = len(self.decoder.trunk.layers) if self.decoder is not None else 0
        decoder = [f"decoder/{number + 1}" for number in range(n_decoder)]
        return ("input", *encoder, "mean", "variance", "sampled", *decoder)

    @property
    def digest(self) -> str:
        """Hash of the architecture and the weights: models with equal digests compute equal functions."""
        return files.digest([self.blueprint.describe(), files.digest_tensors(self.state_dict())])

    def save(
        self, path: str | Path, step: int | None = None, guard: files.Guard | None = None, **about: Recordable
    ) -> None:
        """Write a safetensors file that :func:`read_model` reads.

        :param step: (default None) number of training steps.
        :param guard: (default None) function that is called right before the file gets its name.
        :param about: further JSON values for the file's header.
        """
        metadata = {"blueprint": self.blueprint.describe(), "step": step, "polariscope": __version__, **about}
        if self.units:
            metadata["units"] = [dict(each) for each in self.units]
        files.write_tensors(Path(path), self.state_dict(), metadata, guard)


def read_model(file: Path, device: str = "cpu") -> Model:
    """Read a model from the file that :meth:`Model.save` wrote; loading never runs code from the file."""
    tensors, metadata = files.read_tensors(file)
    try:
        blueprint = Blueprint.from_record(metadata["blueprint"])
        _check_shapes(blueprint, tensors)
        # All weights are replaced below, so any seed serves.
        model = blueprint.build(seed=0)
        # Converted first, because loading would round the weights of a file in double precision.
        model.to(
            next((tensor.dtype for tensor in tensors.values() if tensor.is_floating_point()), torch.float32)
        )
        _check_types(model, tensors)
        model.load_state_dict(tensors)
    except (InputError, KeyError, OverflowError, RuntimeError, TypeError) as error:
        raise PolariscopeError(
            f"{file} was written by another version of polariscope or is not a model ({error})."
        ) from error
    model.step = metadata.get("step")
    model.units = tuple(metadata.get("units", ()))
    return model.to_device(device).eval()


def _check_shapes(blueprint: Blueprint, tensors: Mapping[str, Tensor]) -> None:
    """Check the weights of a file against its blueprint before the model takes any memory.

    A few bytes can declare layers of many gigabytes, so the expected shapes come from a model without storage.
    """
    with torch.device("meta"):
        expected = Model(blueprint, None, torch.Generator()).state_dict()
    # Names that only one of the two has.
    if missing := sorted(set(expected) ^ set(tensors)):
        raise InputError(problem=f"its weights and its blueprint differ in {listed(missing, 3)}")
    for name, weight in expected.items():
        if weight.shape != tensors[name].shape:
            raise InputError(
                problem=f"{name} must have the shape {tuple(weight.shape)} of its blueprint",
                got=f"{tuple(tensors[name].shape)}",
            )


def _check_types(model: Model, tensors: Mapping[str, Tensor]) -> None:
    """Raise an error if weights are not of the model's type; loading would convert integers without a word."""
    for name, expected in model.state_dict().items():
        if name in tensors and tensors[name].dtype != expected.dtype:
            raise TypeError(f"{name} is {tensors[name].dtype}, and {expected.dtype} is required")
