"""Models composed of two modules or functions of any library."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import torch
from annotated_types import Gt
from jaxtyping import Float
from torch import Tensor, nn

from polariscope.analysis.code_names import KINDS
from polariscope.core import files
from polariscope.core.errors import InputError, check_word
from polariscope.core.function_digest import function_digest
from polariscope.core.option_values import check_value
from polariscope.core.options import build
from polariscope.models.adapters import AbstractAdapter, Foreign, Opened, adapter
from polariscope.models.adapters.support.calls import call_foreign, type_name
from polariscope.models.adapters.support.outputs import (
    Encoded,
    Reading,
    UndecidedError,
    check_outputs,
    flat_parts,
    is_unnamed,
    name_parts,
    read_outputs,
    read_posterior,
    to_logits,
)
from polariscope.models.inference import inference_mode
from polariscope.models.likelihoods import AbstractLikelihoodDistribution
from polariscope.models.likelihoods.bernoulli import BernoulliDistribution
from polariscope.models.likelihoods.gaussian import GaussianDistribution
from polariscope.models.posteriors import AbstractPosteriorDistribution
from polariscope.models.posteriors.deterministic import PointMass
from polariscope.models.posteriors.full import FullGaussian
from polariscope.models.priors import AbstractPriorModule
from polariscope.models.priors import family as priors
from polariscope.models.protocol import AbstractModel

LIKELIHOODS = ("auto", "bernoulli", "bernoulli-logits", "gaussian")
_LEARNED = ("_alternative", "_whole", "_is_point", "_is_repeatable", "_prior", "_code_shape", "_reading")
"""Attributes of a wrapped model that the first batch determines, or that differ for an alternative encoder."""
N_REPEATED = 16
"""Number of observations that are encoded twice, to check that the encoder answers the same."""


class WrappedModel(AbstractModel):
    """Create a model from an encoder and a decoder of any library; all analyses accept it.

    :param encoder: a module or function from a batch of observations to a posterior, as in :func:`polariscope.wrap`.
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
        outputs: Sequence[str] | None = None,
        prior: object = "isotropic",
        layers: Sequence[str] | None = None,
        name: str = "wrapped",
    ) -> None:
        super().__init__()
        check_word("likelihood of a wrapped decoder", likelihood, LIKELIHOODS)
        check_word("second", second, KINDS)
        for part, module in (("encoder", encoder), ("decoder", decoder)):
            if module is not None and not callable(module):
                raise InputError(part, "be a module or a function", got=type_name(module))
        check_value("variance", variance, Annotated[float, Gt(0)])
        self.encoder, self.decoder = encoder, decoder
        # A method belongs to a module, whose device, type and mode then count.
        self.owners = nn.ModuleList(
            owner for part in (encoder, decoder) if (owner := _owner(part)) is not None and owner is not part
        )
        self.likelihood, self.variance, self.second = likelihood, float(variance), second
        self._requested_likelihood = likelihood
        self.layers = None if layers is None else tuple(layers)
        self.name = name
        self._notes: dict[str, str] = {}
        self._reading = None if outputs is None else Reading(check_outputs(outputs), is_certain=True)
        self._is_point = False
        self._is_channels_last = False
        self._whole: list[nn.Module] = []
        self._alternative: list[Callable[..., object]] = []
        self._shape = _sizes(shape)
        self._recipe = prior
        self._code_shape: tuple[int, ...] = ()
        self._prior: AbstractPriorModule | None = None
        self._is_repeatable = False
        self._check_layers()
        if self._shape:
            self._try()

    def _try(self) -> None:
        """Run encoder and decoder once on zeros."""

        def run() -> None:
            with inference_mode(self):
                q = self.encode(self.place(torch.zeros(2, *self._shape)))
                if self.decoder is not None:
                    self.decode(q.mean)

        # Zeros do not show which array is a draw. The first batch of data does.
        with contextlib.suppress(UndecidedError):
            self.attempt(run)

    def attempt(self, run: Callable[[], None]) -> None:
        """Run a test of the model. If it fails, use the alternative encoder, provided that it passes the test.

        :param run: the test, which raises an ``InputError`` if it fails.
        """
        try:
            run()
        except InputError as failure:
            # The next batch is tested again.
            self._is_repeatable = False
            if not self._alternative or isinstance(failure, UndecidedError):
                raise
            # In evaluation mode no attribute of the parts changes, so these are all that a test can change.
            names = ("encoder", "likelihood", "has_density", "is_diagonal", *_LEARNED)
            before = {name: getattr(self, name) for name in names}
            notes = dict(self._notes)
            self._use_alternative()
            try:
                run()
            except InputError as error:
                if isinstance(error, UndecidedError):
                    raise
                for name, value in before.items():
                    setattr(self, name, value)
                self._notes = notes
            else:
                return
            # The first error is that of the parts, which have priority.
            raise

    def _use_alternative(self) -> None:
        """Replace the encoder by the alternative one, which has not been used yet."""
        self.encoder, self._alternative = self._alternative[0], []
        self._whole, self._is_point, self._is_repeatable = [], False, False
        self._prior, self._code_shape = None, ()
        self._reading = self._reading if self._reading is not None and not self._reading.reason else None
        self.likelihood = self._requested_likelihood
        self._notes = {
            "encoder": (
                "The posterior is read from the forward pass of the module, because its encoder alone does not return "
                "the codes of its decoder."
            )
        }

    def expects(self, shape: Sequence[int]) -> None:
        """Declare the shape of an observation without a test.

        :param shape: the shape; empty if it is not known.
        """
        self._shape = self._shape or _sizes(tuple(shape or ()))

    # Properties

    @property
    def is_sized(self) -> bool:
        return self._prior is not None

    @property
    def was_used(self) -> bool:
        """True if observations were encoded, so the meaning of outputs is known."""
        return self._is_repeatable

    @property
    def whole(self) -> nn.Module | None:
        """The module that encoder and decoder belong to, if they must use all its weights; otherwise None."""
        return self._whole[0] if self._whole else None

    def must_use(self, module: nn.Module) -> None:
        """Declare that a deterministic autoencoder uses all weights of a module; otherwise it is refused.

        :param module: the module that encoder and decoder belong to.
        """
        # In a list, because a module would be registered a second time.
        self._whole = [module]

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
        settings += [self._reading.roles] if self._reading is not None and not self._reading.reason else []
        sources = [
            repr(part) if part is None or isinstance(part, nn.Module) else function_digest(part)
            for part in (self.encoder, self.decoder)
        ]
        return files.digest([settings, sources, files.digest_tensors(self.state_dict())])

    # Encoding and decoding

    def encode(
        self, x: Float[Tensor, "sample *shape"], auxiliary: Float[Tensor, "sample auxiliary"] | None = None
    ) -> AbstractPosteriorDistribution:
        encoded = self._encoded(x, is_first=not self._is_repeatable and not _is_constant(x))
        self._shape = self._shape or tuple(x.shape[1:])
        self._code_shape = encoded.code_shape
        mean = encoded.posterior.mean
        self.has_density = not isinstance(encoded.posterior, PointMass)
        self.is_diagonal = not isinstance(encoded.posterior, FullGaussian)
        if not self.has_density:
            self._notes["deterministic"] = "The encoder is deterministic, so there is no KL to the prior."
        if self._prior is None:
            # The number of latents is known only now.
            self._prior = build(priors, self._recipe).build(mean.shape[1], None, 0, torch.Generator())
            assert self._prior is not None
            self._prior.to(device=mean.device, dtype=mean.dtype)
        # A model without a fixed shape can return other codes for another batch.
        _check_n_latents(self._prior.n_latents, mean.shape[1])
        self._check_repeatable(x)
        return encoded.posterior

    def _encoded(self, x: Float[Tensor, "sample *shape"], is_first: bool = False) -> Encoded:
        """Return the posterior of a batch; the first batch of data determines the meaning of unnamed outputs."""
        # Other axes than those of tables and images have no convention.
        values = x.movedim(1, -1) if self._is_channels_last and x.ndim > 2 else x
        output = call_foreign("encoder", self.encoder, values, "an observation")
        reading = self._reading
        if reading is None and is_unnamed(output):
            parts = flat_parts(output)
            again = None
            if len(parts) > 2 and not _is_constant(x):
                # A draw differs in the second call.
                repeated = call_foreign("encoder", self.encoder, values, "an observation")
                again = flat_parts(repeated) if is_unnamed(repeated) else None
            reading = name_parts(parts, len(x), self.second, values, again)  # type: ignore[arg-type]
            # Zeros, with which a model is tested, decide nothing.
            if reading.reason and not _is_constant(x):
                self._reading = reading
                self._notes["reading"] = reading.note
        return read_posterior(
            output,
            len(x),
            self.second,  # type: ignore[arg-type]
            reading,
            x=values,
            is_point=self._is_point,
            is_channels_last=self._is_channels_last,
            is_first=is_first,
        )

    def _check_repeatable(self, x: Float[Tensor, "sample *shape"]) -> None:
        """Encode a few observations twice; raise an error if mean or variance differ by more than rounding.

        The second time there is one observation less, so batch normalisation in training mode is detected, too. A draw
        that the encoder returns besides mean and variance can differ. Zeros, with which a model is tested, decide
        nothing.
        """
        if self._is_repeatable or not len(x) or _is_constant(x):
            return
        few = x[:N_REPEATED]
        # One observation less shows whether the outputs depend on the rest of the batch.
        again = few[:-1] if len(few) > 1 else few
        with inference_mode(self):
            first, second = (self._encoded(part).posterior for part in (few, again))
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
        if self._is_channels_last:
            codes = codes.movedim(1, -1)
        outputs = read_outputs(call_foreign("decoder", self.decoder, codes, "a code"), len(z))
        if self._is_channels_last and outputs.ndim > 2:
            outputs = outputs.movedim(-1, 1)
        if self._shape and tuple(outputs.shape[1:]) != self._shape:
            if outputs[0].numel() != int(torch.tensor(self._shape).prod()):
                raise InputError(
                    "the decoder",
                    f"return observations of shape {self._shape}",
                    got=f"{tuple(outputs.shape[1:])}",
                )
            outputs = outputs.reshape(len(z), *self._shape)
        _check_finite(outputs)
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

    def add_note(self, subject: str, text: str) -> None:
        """Add a note, or replace that on the same subject.

        :param subject: its subject, a key.
        :param text: a sentence.
        """
        self._notes[subject] = text

    def activations(
        self,
        x: Float[Tensor, "sample *shape"],
        noise: Float[Tensor, "sample latent"],
        auxiliary: Float[Tensor, "sample auxiliary"] | None = None,
    ) -> Iterator[tuple[str, Float[Tensor, "sample ..."]]]:
        missing = set(self.layers or ())
        yield "input", x
        self._check_repeatable(x)  # before outputs are recorded
        with self._recording("encoder") as recorded:
            q = self.encode(x, auxiliary)
        yield from recorded
        missing -= _names_of(recorded)
        yield "mean", q.mean
        yield "variance", q.variance
        z = q.at(noise)
        yield "sampled", z
        recorded = []
        if self.decoder is not None:
            with self._recording("decoder") as recorded:
                outputs = self.decode(z).mean
            yield from recorded
        missing -= _names_of(recorded)
        if missing:
            raise InputError(
                "layers",
                "name modules that run when the model encodes or decodes",
                got=", ".join(sorted(missing)),
                remedy="choose among the layers that are compared if it is left out",
            )
        if self.decoder is None:
            return
        if _owner(self.decoder) is None:
            yield "decoder/output", outputs

    # Layers

    def _recorded_modules(self, part: str) -> dict[str, nn.Module]:
        """Return the modules of a part whose outputs are recorded: the selected ones, or all without submodules."""
        children = self._children(part)
        if self.layers is None:
            return {name: child for name, child in children.items() if not list(child.children())}
        return {
            name: child
            for name, child in children.items()
            if name in self.layers or f"{part}/{name}" in self.layers
        }

    def _children(self, part: str) -> dict[str, nn.Module]:
        """Return the modules inside a part by name; of a method, those of the module that it belongs to."""
        module = _owner(getattr(self, part))
        if module is None:
            return {}
        # The module of a method has the names of all its parts: encoder.0 is layer 0 of the encoder.
        return {name.removeprefix(f"{part}."): child for name, child in module.named_modules() if name}

    def _check_layers(self) -> None:
        full = [f"{part}/{name}" for part in ("encoder", "decoder") for name in self._children(part)]
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


class Method:
    """A function that uses a module, whose layers, device and mode then count as those of the function.

    :param owner: the module.
    :param function: function of a batch.
    """

    def __init__(self, owner: nn.Module, function: Callable[[Tensor], object]) -> None:
        self.__self__ = owner
        self.function = function

    @property
    def __name__(self) -> str:
        return type(self.__self__).__name__

    def __call__(self, values: Tensor) -> object:
        return self.function(values)


def adapted(
    encoder: Callable[..., object],
    decoder: Callable[..., object] | None,
    options: Mapping[str, object],
    *,
    is_point: bool = False,
    is_channels_last: bool = False,
    alternative: Callable[..., object] | None = None,
    notes: Mapping[str, str] | None = None,
    **suggested: object,
) -> WrappedModel:
    """Return the model of an adapter.

    :param encoder: function from a batch of observations to a posterior.
    :param decoder: function from a batch of codes to observations, or None.
    :param options: options of :class:`WrappedModel` that the caller set.
    :param is_point: (default False) if True, an output without a variance is the code of a deterministic encoder.
    :param is_channels_last: (default False) if True, images and codes with several axes are passed as (sample, height,
        width, channel) and returned in this order.
    :param alternative: (default None) encoder that is used if ``encoder`` and ``decoder`` do not fit together.
    :param notes: (default none) notes of the adapter, by the subject.
    :param suggested: options that the adapter suggests; those of the caller take precedence.
    """
    values: dict[str, Any] = {**suggested, **options, "shape": None}
    shape = options.get("shape", suggested.get("shape"))
    model = WrappedModel(encoder, decoder, **values)
    model._is_point, model._is_channels_last = is_point, is_channels_last
    # In a list, because a module would be registered a second time.
    model._alternative = [] if alternative is None else [alternative]
    model._notes.update(notes or {})
    model._shape = _sizes(shape)
    if model._shape:
        model._try()
    return model


@adapter("wrapped", order=100)
class FunctionAdapter(AbstractAdapter):
    """Functions and modules that return a posterior for a batch."""

    def recognises(self, thing: object) -> bool:
        return callable(thing)

    def open(self, thing: Foreign, data: object, options: Mapping[str, object]) -> Opened:
        return Opened(adapted(thing, None, options, name=type_name(thing)))


def _is_constant(x: Tensor) -> bool:
    # A batch on the meta device has no values.
    return not x.numel() or x.is_meta or bool((x == x.flatten()[0]).all())


def _check_finite(outputs: Tensor) -> None:
    """Raise an error if outputs of a decoder are not finite: a NaN would count as a latent without effect."""
    is_finite = torch.isfinite(outputs)
    if not is_finite.all():
        raise InputError(
            problem=(
                "the decoder returned values that are not finite "
                f"({int((~is_finite).sum())} of {outputs.numel()} values)"
            ),
            remedy="the model might have diverged",
        )


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


def _owner(part: Any) -> nn.Module | None:
    """Return a module, or the module that a method belongs to; None for other functions."""
    owner = part if isinstance(part, nn.Module) else getattr(part, "__self__", None)
    return owner if isinstance(owner, nn.Module) else None


def _names_of(recorded: Sequence[tuple[str, Tensor]]) -> set[str]:
    """Return the names of recorded layers, with and without their part."""
    return {each for name, _ in recorded for each in (name, name.partition("/")[2])}


def _label(part: Any) -> str:
    return (
        type(part).__name__ if isinstance(part, nn.Module) else getattr(part, "__name__", type(part).__name__)
    )
