"""Models composed of two modules or functions of any library."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import numpy as np
import torch
from annotated_types import Gt
from jaxtyping import Float
from torch import Tensor, nn

from polariscope.core import files
from polariscope.core.errors import Argument, InputError, check_word
from polariscope.core.option_values import check_value
from polariscope.core.options import build
from polariscope.models.adapters.outputs import read_outputs, read_posterior, to_logits
from polariscope.models.inference import inference_mode
from polariscope.models.likelihoods import AbstractLikelihoodDistribution
from polariscope.models.likelihoods.bernoulli import BernoulliDistribution
from polariscope.models.likelihoods.gaussian import GaussianDistribution
from polariscope.models.posteriors.diagonal import DiagonalGaussian
from polariscope.models.priors import AbstractPriorModule
from polariscope.models.priors import family as priors
from polariscope.models.protocol import AbstractModel

LIKELIHOODS = ("auto", "bernoulli", "bernoulli-logits", "gaussian")
SECONDS = ("log_variance", "variance", "std")
N_REPEATED = 16
"""Number of observations that are encoded twice, to check that the encoder answers the same."""


class WrappedModel(AbstractModel):
    """Create a model from an encoder and a decoder of any library; all analyses accept it.

    :param encoder: a module or function from a batch of observations to a posterior, in any of the common forms:
        ``(mean, log_variance)``, optionally followed by a draw; a mapping or object that names its parts (mean, mu,
        embedding; log_variance, logvar, log_covariance, variance, std; latent_dist); a normal distribution of PyTorch.
        Codes with several axes, (channel, height, width), are diagnosed per channel.
    :param decoder: (default None) a module or function from a batch of latents to observations.
    :param likelihood: (default "auto") meaning of the decoder's outputs: "bernoulli" for probabilities,
        "bernoulli-logits", "gaussian" for means; "auto" for probabilities if all are in [0, 1], otherwise means.
    :param variance: (default 1) variance of every value, for "gaussian".
    :param shape: (default: that of the first batch) shape of one observation, without the batch. If it is passed, the
        model is tested at once on a batch of zeros.
    :param second: (default "log_variance") meaning of the second array of a pair; or "variance", "std".
    :param prior: (default "isotropic") name of a prior, or a mapping with its options.
    :param layers: (default: every module without submodules) names of the modules that ``compare`` uses.
    :param name: (default "wrapped") name of the model in reports.
    """

    def __init__(
        self,
        encoder: Callable[..., object],
        decoder: Callable[..., object] | None = None,
        *,
        likelihood: str = "auto",
        variance: float = 1.0,
        shape: Sequence[int] | int | None = None,
        second: str = "log_variance",
        prior: object = "isotropic",
        layers: Sequence[str] | None = None,
        name: str = "wrapped",
    ) -> None:
        super().__init__()
        check_word("likelihood of a wrapped decoder", likelihood, LIKELIHOODS)
        check_word("second", second, SECONDS)
        for part, module in (("encoder", encoder), ("decoder", decoder)):
            if module is not None and not callable(module):
                raise InputError(part, "be a module or a function", got=type(module).__name__)
        check_value("variance", variance, Annotated[float, Gt(0)])
        self.encoder, self.decoder = encoder, decoder
        # A method belongs to a module, whose device, type and mode then count.
        self.owners = nn.ModuleList(
            owner
            for part in (encoder, decoder)
            if isinstance(owner := getattr(part, "__self__", None), nn.Module)
        )
        self.likelihood, self.variance, self.second = likelihood, float(variance), second
        self._requested_likelihood = likelihood
        self.layers = None if layers is None else tuple(layers)
        self.name = name
        self._notes: dict[str, str] = {}
        self._shape = _sizes(shape)
        self._recipe = prior
        self._code_shape: tuple[int, ...] = ()
        self._prior: AbstractPriorModule | None = None
        self._is_repeatable = False
        self._check_layers()
        if self._shape:
            self._try()

    def _try(self) -> None:
        """Run encoder and decoder once on zeros, and explain errors."""
        part = "encoder"
        try:
            with inference_mode(self):
                q = self.encode(self.place(torch.zeros(2, *self._shape)))
                part = "decoder"
                if self.decoder is not None:
                    self.decode(q.mean)
        except InputError:
            raise
        # Code of other libraries can raise any error.
        except Exception as error:
            inputs = f"observations of shape {self._shape}" if part == "encoder" else "the encoder's output"
            message = str(error).splitlines()[0] if str(error) else repr(error)
            raise InputError(
                problem=f"the {part} does not accept {inputs}: {message}",
                remedy=("pass the ", Argument("shape"), " of one observation, without the batch"),
            ) from error

    # Properties

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def n_latents(self) -> int:
        return self.prior.n_latents

    @property
    def code_shape(self) -> tuple[int, ...]:
        return self._code_shape or (self.n_latents,)

    @property
    def has_decoder(self) -> bool:
        return self.decoder is not None

    @property
    def prior(self) -> AbstractPriorModule:  # type: ignore[override]
        if self._prior is None:
            raise InputError(
                problem="the number of latents is not known before the first batch is encoded",
                remedy="pass a shape",
            )
        return self._prior

    @property
    def device(self) -> torch.device:
        first = next(self.parameters(), None)
        # A function without weights runs on the CPU.
        return torch.device("cpu") if first is None else first.device

    @property
    def dtype(self) -> torch.dtype:
        kinds = [weight.dtype for weight in self.parameters() if weight.is_floating_point()]
        return kinds[0] if kinds else torch.get_default_dtype()

    @property
    def digest(self) -> str:
        """Hash of the weights and of the functions' source code or, if it is not available, their names."""
        settings = [self._requested_likelihood, self.variance, self.second, str(self._recipe)]
        sources = [_source(part) for part in (self.encoder, self.decoder)]
        return files.digest([settings, sources, files.digest_tensors(self.state_dict())])

    # Encoding and decoding

    def encode(
        self, x: Float[Tensor, "sample *shape"], auxiliary: Float[Tensor, "sample auxiliary"] | None = None
    ) -> DiagonalGaussian:
        encoded = read_posterior(self.encoder(x), len(x), self.second)  # type: ignore[arg-type]
        self._shape = self._shape or tuple(x.shape[1:])
        self._code_shape = encoded.code_shape
        mean, log_variance = encoded.posterior.mean, encoded.posterior.log_variance
        if self._prior is None:
            # The number of latents is known only now.
            self._prior = build(priors, self._recipe).build(mean.shape[1], None, 0, torch.Generator())
            assert self._prior is not None
            self._prior.to(device=mean.device, dtype=mean.dtype)
        # A model without a fixed shape can return other codes for another batch.
        _check_n_latents(self._prior.n_latents, mean.shape[1])
        self._check_repeatable(x)
        return DiagonalGaussian(mean, log_variance)

    def _check_repeatable(self, x: Float[Tensor, "sample *shape"]) -> None:
        """Encode a few observations twice; raise an error if mean or variance differ by more than rounding.

        The second time there is one observation less, so batch normalisation in training mode is detected, too. A draw
        that the encoder returns besides mean and variance can differ. Zeros, with which a model is tested, decide
        nothing.
        """
        if self._is_repeatable or not len(x) or bool((x == x.flatten()[0]).all()):
            return
        few = x[:N_REPEATED]
        # One observation less shows whether the outputs depend on the rest of the batch.
        again = few[:-1] if len(few) > 1 else few
        with inference_mode(self):
            first, second = (
                read_posterior(self.encoder(part), len(part), self.second).posterior  # type: ignore[arg-type]
                for part in (few, again)
            )
        _check_n_latents(first.mean.shape[1], second.mean.shape[1])
        for name in ("mean", "variance"):
            one, two = getattr(first, name)[: len(again)].double(), getattr(second, name).double()
            difference, largest = float((one - two).abs().max()), float(one.abs().max())
            # Half of the digits: batches of different lengths are rounded differently, dropout changes the first digit.
            if difference > largest * torch.finfo(getattr(first, name).dtype).eps ** 0.5:
                raise InputError(
                    "the encoder",
                    "return the same mean and variance whenever it encodes the same observation",
                    got=f"{name}s that differ by up to {difference:.2g}",
                    remedy=(
                        "it might be in training mode, so call its eval() first; an encoder that adds noise must "
                        "return its mean and variance, or set its own seed in every call"
                    ),
                )
        self._is_repeatable = True

    def decode(self, z: Float[Tensor, "sample latent"]) -> AbstractLikelihoodDistribution:
        if self.decoder is None:
            raise InputError(problem="this model has no decoder: it was wrapped without one")
        codes = z.reshape(len(z), *self._code_shape) if len(self._code_shape) > 1 else z
        outputs = read_outputs(self.decoder(codes), len(z))
        if self._shape and tuple(outputs.shape[1:]) != self._shape:
            if outputs[0].numel() != int(torch.tensor(self._shape).prod()):
                raise InputError(
                    "the decoder",
                    f"return observations of shape {self._shape}",
                    got=f"{tuple(outputs.shape[1:])}",
                )
            outputs = outputs.reshape(len(z), *self._shape)
        return self._distribution(outputs)

    def _distribution(self, outputs: Float[Tensor, "sample *shape"]) -> AbstractLikelihoodDistribution:
        if self._requested_likelihood == "auto":
            self._choose_likelihood(bool((outputs >= 0).all() and (outputs <= 1).all()))
        if self.likelihood == "gaussian":
            # One number on the device and in the type of the outputs.
            return GaussianDistribution(outputs, torch.log(torch.full_like(outputs[:1], self.variance)).max())
        if self.likelihood == "bernoulli-logits":
            return BernoulliDistribution(outputs)
        if outputs.min() < 0 or outputs.max() > 1:
            raise InputError(
                problem="likelihood 'bernoulli' requires probabilities as outputs of the decoder",
                got=f"{float(outputs.min()):.3g} to {float(outputs.max()):.3g}",
                remedy="choose 'bernoulli-logits' for logits, otherwise 'gaussian'",
            )
        return BernoulliDistribution(to_logits(outputs))

    def _choose_likelihood(self, in_unit_interval: bool) -> None:
        """Interpret outputs as probabilities until one lies outside [0, 1], and add a note."""
        selected = "bernoulli" if in_unit_interval and self.likelihood != "gaussian" else "gaussian"
        if selected != self.likelihood:
            self.likelihood = selected
            reason = (
                "in [0, 1], so they are interpreted as probabilities"
                if in_unit_interval
                else "not all in [0, 1]"
            )
            self._notes["likelihood"] = f"The decoder's outputs are {reason}: the likelihood is {selected}."

    @property
    def notes(self) -> list[str]:
        """Assumptions about the model, one sentence for each."""
        return list(self._notes.values())

    def activations(
        self,
        x: Float[Tensor, "sample *shape"],
        noise: Float[Tensor, "sample latent"],
        auxiliary: Float[Tensor, "sample auxiliary"] | None = None,
    ) -> Iterator[tuple[str, Float[Tensor, "sample ..."]]]:
        yield "input", x
        self._check_repeatable(x)  # before outputs are recorded
        with self._recording("encoder") as recorded:
            q = self.encode(x)
        yield from recorded
        yield "mean", q.mean
        yield "variance", q.variance
        z = q.at(noise)
        yield "sampled", z
        if self.decoder is None:
            return
        with self._recording("decoder") as recorded:
            outputs = self.decode(z).mean
        yield from recorded
        if not isinstance(self.decoder, nn.Module):
            yield "decoder/output", outputs

    # Layers

    def _recorded_modules(self, part: str) -> dict[str, nn.Module]:
        """Return the modules of a part whose outputs are recorded: the selected ones, or all without submodules."""
        module = getattr(self, part)
        if not isinstance(module, nn.Module):
            return {}
        children = {name: child for name, child in module.named_modules() if name}
        if self.layers is None:
            return {name: child for name, child in children.items() if not list(child.children())}
        return {
            name: child
            for name, child in children.items()
            if name in self.layers or f"{part}/{name}" in self.layers
        }

    def _check_layers(self) -> None:
        full = [
            f"{part}/{name}"
            for part in ("encoder", "decoder")
            if isinstance(module := getattr(self, part), nn.Module)
            for name, _ in module.named_modules()
            if name
        ]
        for name in self.layers or ():
            is_full = name.startswith(("encoder/", "decoder/"))
            check_word("layer", name, full if is_full else {known.partition("/")[2] for known in full})

    @contextlib.contextmanager
    def _recording(self, part: str) -> Iterator[list[tuple[str, Tensor]]]:
        """Record the outputs of the selected modules of a part, in the order in which they run."""
        recorded: list[tuple[str, Tensor]] = []
        counts: dict[str, int] = {}

        def record(name: str, output: Any) -> None:
            # Recurrent layers return their output and their state.
            if isinstance(output, (tuple, list)) and output:
                output = output[0]
            if isinstance(output, Tensor) and output.ndim > 1:
                counts[name] = counts.get(name, 0) + 1
                label = name if counts[name] == 1 else f"{name} ({counts[name]})"
                recorded.append((f"{part}/{label}", output.clone()))  # the next layer can change it in place

        hooks = [
            # The default binds the name of this iteration.
            module.register_forward_hook(lambda _, __, output, name=name: record(name, output))
            for name, module in self._recorded_modules(part).items()
        ]
        try:
            yield recorded
        finally:
            for hook in hooks:
                hook.remove()

    def __repr__(self) -> str:
        parts = [f"encoder {_label(self.encoder)}"]
        parts += [f"decoder {_label(self.decoder)}, likelihood {self.likelihood}"] if self.has_decoder else []
        shape = [f"observations of {' × '.join(map(str, self._shape))}"] if self._shape else []
        latents = [f"{self._prior.n_latents} latents"] if self._prior is not None else []
        return f"<{self.name}: {'; '.join([*parts, *shape, *latents])}>"


wrap = WrappedModel


def _check_n_latents(expected: int, got: int) -> None:
    if expected != got:
        raise InputError(
            problem=f"the encoder returned {expected} latents for one batch and {got} for another",
            remedy="the number must not change",
        )


def _sizes(shape: Any) -> tuple[int, ...]:
    """Return the shape of one observation; empty if it is not known yet."""
    sizes = () if shape is None else (shape,) if isinstance(shape, int | np.integer) else shape
    is_whole = isinstance(sizes, Sequence | np.ndarray) and not isinstance(sizes, str)
    if not is_whole or not all(
        isinstance(size, int | np.integer) and not isinstance(size, bool) and size > 0 for size in sizes
    ):
        raise InputError(
            "shape",
            "be positive integers, without the batch",
            got=f"{shape!r}",
            remedy="for example (1, 64, 64)",
        )
    return tuple(int(size) for size in sizes)


def _source(part: Any) -> str:
    """Return the source code of a function, or as much as is known without running it."""
    if part is None or isinstance(part, nn.Module):
        return repr(part)
    # Two functions with the same source can differ in the values that they enclose.
    cells = [cell.cell_contents for cell in getattr(part, "__closure__", None) or ()]
    plain = repr([value for value in cells if isinstance(value, int | float | str)])
    try:
        return hashlib.sha256((inspect.getsource(part) + plain).encode()).hexdigest()
    except (OSError, TypeError):
        return getattr(part, "__qualname__", type(part).__name__)


def _label(part: Any) -> str:
    return (
        type(part).__name__ if isinstance(part, nn.Module) else getattr(part, "__name__", type(part).__name__)
    )
