"""A variational autoencoder as a scikit-learn transformer."""

from __future__ import annotations

import copy
import dataclasses
import math
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags, check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from polariscope.analysis.convergence import training_state
from polariscope.analysis.noise import Noise
from polariscope.analysis.regime.diagnose import diagnose
from polariscope.analysis.regime.regime import Regime
from polariscope.analysis.regime.use import INFORMATION
from polariscope.analysis.verdict import Verdict
from polariscope.core.arrays import refuse_masked
from polariscope.core.errors import Argument, InputError
from polariscope.core.seeds import derive
from polariscope.core.types import OptionValue
from polariscope.data.chain import shorthands
from polariscope.data.counts import ValueFacts, measure_rows, refuse_non_counts
from polariscope.data.data_like import DataLike
from polariscope.data.dataset import AbstractDataset
from polariscope.data.missing import check_missing, fill, find_gaps, medians_of
from polariscope.data.own import Layout
from polariscope.data.splits import Split
from polariscope.data.variants.centred import in_words
from polariscope.estimators.evidence import log_evidence
from polariscope.estimators.units import Units
from polariscope.models.inference import batch_size, chunks
from polariscope.models.model import Model
from polariscope.models.protocol import DeviceLike
from polariscope.runs.encode import encode
from polariscope.sizing.result import Size
from polariscope.training.choices import choices
from polariscope.training.likelihood import LikelihoodChoice, choose_likelihood
from polariscope.training.loop import fit
from polariscope.training.plan import FAMILIES, PartLike, choose, concept_of, plan
from polariscope.training.planner import QUICK_IMAGES, Pace, Planned, planned_training
from polariscope.training.threads import check_threads, using_threads
from polariscope.training.train import build, choose_device, choose_threads

FLOATS = (np.float64, np.float32)
PACE = tuple(field.name for field in dataclasses.fields(Pace))
"""Parameters that the planner decides, unless they are set."""
MIN_STEPS = 400  # steps of a candidate, below which sizing can see no trend
MIN_SAMPLES = 3
"""Observations that training asks of a dataset."""
OWN = (*PACE, "patience", "seed")


class VAE(TransformerMixin, BaseEstimator):
    r"""Embed a table or images by the latent variables that a variational autoencoder really uses.

    ``fit`` chooses the number of latents, trains a model on all of ``X`` and names its latents active, mixed or
    passive; ``transform`` gives the posterior mean μ(x) of those that are not passive. The mean of a passive latent
    varies little, and what it holds is usually in the others too: a column that adds next to nothing.

    ``X`` is a table (sample, feature), or images (sample, height, width), (sample, channel, height, width) or
    (sample, height, width, channel), of bytes or of floats in [0, 1]. Bytes are 0 … 255, or all 0 and 1.

    **How many latents.** With ``n_latents="fondue"`` the answer is that of :func:`polariscope.size`, and of the command
    line, for the same table: models with the learning rate and the length that suit the search. What you set here
    (net, objective, steps, learning_rate, batch_size, options) holds for them too.

    **Noise of a table.** A latent earns its keep when it explains more than the decoder takes for noise: in a
    linear model direction i of the data, with variance λ_i, is active if and only if λ_i > γ, the decoder's
    variance (β = 1). So γ decides what "passive" means. With the customary γ = 1 on standardised features every
    direction that carries less than one feature's worth of variance would be dropped. Here, as in
    :func:`polariscope.train`, it is learned, one number for all features, from a tenth of their mean variance: it
    settles where the error of the reconstruction is, as the noise of probabilistic PCA does (Lucas et al., Don't Blame
    the ELBO!, lucas2019), but not below 1e-4 of that variance. A latent is passive when it explains no more than this
    noise. It also makes p(x) a density one can compare. Choose γ yourself with ``options={"variance": 0.05}``,
    in units of the mean variance of the features. Images and tables of 0 and 1 have a Bernoulli likelihood, and tables
    of counts a Poisson or negative-binomial one; they are used as they are.

    **Units.** A table is centred and divided by one number, the root of its features' mean variance, so
    learning rate and γ do not depend on units; what is given back is in the units of ``X``. Only with
    ``standardise=True`` every feature has variance 1, and only with ``scale=True`` values from 0 to 1.

    Parameters
    ----------
    n_latents:
        A number, or how to find it: "fondue" (:func:`polariscope.size`).
    objective, net, posterior, prior, likelihood:
        As in :func:`polariscope.train`, by name, as a mapping or as an object; not those that need factors or
        labels. net "auto" is a convolutional network for images whose sides are multiples of 16, else two hidden
        layers of 16 to 128 units, one for every 16 samples. likelihood "auto" is as said above, by the rule of
        :func:`polariscope.training.likelihood.choose_likelihood`; "bernoulli" for a table needs values in [0, 1],
        which are then used as they are.
    variables:
        Which latents ``transform`` keeps: "in-use", "active+mixed", "active" or "all". If none is of that kind, the one
        with the largest KL is returned, with a warning: an array without columns would stop any pipeline.
    steps, learning_rate, batch_size:
        Of the training; None: for a table as in :func:`polariscope.train`, 100 passes (2,000 to 20,000 steps) with rate
        1e-3 and batches of 64; for images 2,000, 3e-3 and 128. The learning rate falls to 0 along a cosine. A batch is
        at most the whole of ``X``. Where they are given, they are also those of the models that sizing trains, with at
        least 400 steps and a constant rate.
    patience:
        Lines of the log (50 in all) without a lower held-out loss after which training stops; ``steps`` is then the
        maximum, and the model is that of the lowest loss. A tenth of ``X`` is held out for that. 0, the default, trains
        on all of ``X`` for all steps.
    standardise:
        Divide each feature of a table by its own standard deviation.
    scale:
        Bring each feature of a table to [0, 1] by its lowest and highest value in ``fit``, instead; likelihood "auto"
        is then the Bernoulli one. Values beyond that range are taken by ``transform``, not by ``score_samples``.
    missing:
        What is done about missing values (NaN) of a table. "refuse" names their columns. "drop" fits without the rows
        that lack a value; ``transform`` and ``score_samples`` give NaN for such rows, so the others stay in their
        places. "median" fills in the median of the column in ``fit``, also in ``transform``. Infinite values are
        refused.
    threshold:
        Of FONDUE: how much posterior variance, Σ E[σ²], the latents may have together.
    n_draws:
        Draws behind each log-density of ``score_samples``.
    layout:
        "channels-first" or "channels-last", where the shape of the images leaves it open.
    random_state:
        A number gives the same bytes every time, and so does the default; None takes a seed from NumPy's global
        generator, and a RandomState gives one.
    device:
        "auto", "cpu", "cuda" or "mps".
    threads:
        How many threads PyTorch trains with; None: by the work in a step and the cores, one for a table.
    options:
        Further options of the parts and of the training by name, as :func:`polariscope.train` takes them:
        ``{"beta": 4.0}``.

    Attributes
    ----------
    model_, regime_, size_:
        The trained model, its diagnosis, and the answer to how many latents (None when a number was given).
    chosen_:
        What was chosen for you, in words: how the data are read and scaled, the net, the likelihood and its variance,
        learning rate, batch size and length.
    planned_:
        Learning rate, batch size and length that the planner chose, without those that you set.
    medians_, n_missing_:
        The medians that fill in missing values (None unless ``missing="median"``); the number of missing values that
        were filled, or of rows left out.
    likelihood_:
        The likelihood that "auto" stands for, with its reason and the facts behind it; None if you named one.
    noise_:
        What the model takes for noise: its γ, in units of the mean variance of the features; ``size_.noise`` is that
        of the models that sizing trained. None for images.
    n_latents_, types_, kept_:
        Number of latents, the type of each, and the numbers of those that ``transform`` keeps.
    loss_curve_, history_:
        The loss while training, in nats, and the lines of the log it is taken from.
    units_, seed_, n_features_in_, feature_names_in_:
        Scale and shape of the observations; the seed used; the number of values in one observation, and their
        names where ``X`` had any.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 2)) @ np.ones((2, 8))
    >>> vae = VAE(n_latents=3, steps=300).fit(X)
    >>> Z = vae.transform(X)
    >>> Z.shape == (200, len(vae.kept_)), vae.inverse_transform(Z).shape
    (True, (200, 8))
    """

    def __init__(
        self,
        n_latents: OptionValue = "fondue",
        *,
        objective: PartLike = "vae",
        variables: OptionValue = "in-use",
        net: PartLike = "auto",
        posterior: PartLike = "auto",
        prior: PartLike = "auto",
        likelihood: PartLike = "auto",
        steps: OptionValue = None,
        learning_rate: OptionValue = None,
        batch_size: OptionValue = None,
        patience: OptionValue = 0,
        standardise: OptionValue = False,
        scale: OptionValue = False,
        missing: OptionValue = "refuse",
        threshold: OptionValue = 1.0,
        n_draws: OptionValue = 128,
        layout: Any = None,
        random_state: object = 0,
        device: DeviceLike = "auto",
        threads: OptionValue = None,
        options: OptionValue = None,
    ) -> None:
        self.n_latents = n_latents
        self.objective = objective
        self.variables = variables
        self.net = net
        self.posterior = posterior
        self.prior = prior
        self.likelihood = likelihood
        self.steps = steps
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.patience = patience
        self.standardise = standardise
        self.scale = scale
        self.missing = missing
        self.threshold = threshold
        self.n_draws = n_draws
        self.layout = layout
        self.random_state = random_state
        self.device = device
        self.threads = threads
        self.options = options

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = self.missing != "refuse"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: DataLike, y: object = None) -> VAE:
        """Choose the number of latents, train, and name each latent's type; ``y`` is not used.

        :param X: a table or images, as the class describes.
        :param y: not used.
        """
        check_missing(self.missing)
        X = self._learn_gaps(self._checked(X, reset=True))
        for name in ("standardise", "scale"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise InputError(name, "be True or False", got=f"{getattr(self, name)!r}")
        shorthands(standardise=bool(self.standardise), scale=bool(self.scale))  # not both
        if self.layout is not None and self.layout not in get_args(Layout):
            raise InputError(
                "layout", f"be None or one of {', '.join(get_args(Layout))}", got=f"{self.layout!r}"
            )
        seed = _seed(self.random_state)
        suitable = self._suitable_likelihood(X)
        likelihood = self.likelihood if suitable is None else suitable.name
        concept = concept_of("likelihood", likelihood)
        units = Units.learn(
            X,
            standardise=bool(self.standardise),
            scale=bool(self.scale),
            unit_interval=concept.needs_unit_interval,
            counts=concept.needs_counts,
            layout=self.layout,
        )
        data = units.dataset(X)
        recipe = self._recipe(data, likelihood, seed)
        size, n_latents = None, self.n_latents
        threads = check_threads(self.threads)
        if isinstance(n_latents, str):
            size = self._size(units.source(X), n_latents, seed, threads)
            n_latents = max(1, size.n_latents)  # 0: the data are noise to such a model
        model, history = _train(data, n_latents, recipe, self.device, threads)
        stopped_at = model.step if model.step is not None and model.step < history[-1]["step"] else None
        state = training_state(history, threshold=INFORMATION, stopped_at=stopped_at)
        regime = diagnose(dataclasses.replace(encode(model, data, seed=seed), training=state), seed=seed)
        latents = select_latents(regime, self.variables)
        self._settle(model, regime, size, units, latents, history, seed, suitable)
        self.planned_ = self._planned(data, recipe)
        return self

    def _learn_gaps(self, X: Shaped[np.ndarray, "sample ..."]) -> Shaped[np.ndarray, "kept ..."]:
        """Return the table that the model is fitted on, without missing values; medians are remembered."""
        self.medians_, self.n_missing_ = None, 0
        if X.ndim != 2 or self.missing == "refuse":
            return X
        gaps = find_gaps([(0, X)])
        gaps.refuse_empty("X", tuple(getattr(self, "feature_names_in_", ())))
        if self.missing == "median":
            self.medians_, self.n_missing_ = medians_of(X), gaps.total
            return fill(X, self.medians_)
        self.n_missing_ = len(gaps.rows)
        if len(gaps.complete) < MIN_SAMPLES:
            raise InputError(
                "X",
                f"have at least {MIN_SAMPLES} rows that lack no value",
                got=len(gaps.complete),
                remedy=("leave out columns that lack many values, or use ", Argument("missing", "median")),
            )
        return X[gaps.complete]

    def _without_gaps(
        self, X: Shaped[np.ndarray, "sample ..."]
    ) -> tuple[Shaped[np.ndarray, "part ..."], Int[np.ndarray, " part"] | None]:
        """Return observations without missing values, and which they are if others were left out."""
        if self.medians_ is not None:
            return fill(X, self.medians_), None
        if X.ndim != 2 or self.missing == "refuse":
            return X, None
        complete = find_gaps([(0, X)]).complete
        return (X, None) if len(complete) == len(X) else (X[complete], complete)

    def _suitable_likelihood(self, X: Shaped[np.ndarray, "sample ..."]) -> LikelihoodChoice | None:
        """Return the likelihood that "auto" stands for, with its reason; None if another one was asked for."""
        if not _is_auto(self.likelihood):
            return None
        if X.ndim != 2 or self.scale:
            return choose_likelihood(ValueFacts(is_table=X.ndim == 2, is_unit_interval=True))
        facts = measure_rows(X)
        return (
            choose_likelihood(ValueFacts(is_table=True), facts)
            if self.standardise
            else choose_likelihood(facts)
        )

    @property
    def chosen_(self) -> tuple[str, ...]:
        """What was chosen for the user, in a few words each."""
        check_is_fitted(self)
        parts = {kind: getattr(self, kind) for kind in ("net", "posterior", "prior", "likelihood")}
        assert self.options is None or isinstance(self.options, Mapping)
        options = {key.removeprefix("likelihood_"): value for key, value in (self.options or {}).items()}
        units = self.units_
        read = [] if self.layout is not None or len(units.shape) < 3 else [units.kind.replace("-", " ")]
        if self.n_missing_ and self.medians_ is not None:
            read.append(f"{self.n_missing_:,} missing values filled with the median of the column in fit")
        elif self.n_missing_:
            read.append(f"fitted without {self.n_missing_:,} rows that lack a value")
        if units.white is not None:
            read.append("bytes divided by 255" if units.white == 255 else "bytes 0 and 1 are black and white")
        if units.scale is not None:
            read.append(
                "each feature of the table brought to [0, 1]"
                if self.scale
                else "each feature of the table centred and divided by its standard deviation"
                if self.standardise
                else in_words(float(units.scale[0]), units.ratio)
            )
        model_choices = choices(parts, self.model_.blueprint, options, self.likelihood_)
        latents = [] if self.size_ is None else [f"{self.n_latents_} latents (by {self.size_.method})"]
        return (*read, *latents, *model_choices, *self.planned_.in_words)

    @property
    def verdict_(self) -> Verdict:
        """State of the training and number of latents in use."""
        check_is_fitted(self)
        return self.regime_.verdict

    @property
    def noise_(self) -> Noise | None:
        """What the model takes for noise: its γ, in the units that it is trained in; None where γ is not one number."""
        check_is_fitted(self)
        return Noise.of_run({"model": self.model_.blueprint.describe()}, {"gamma": self.model_.gamma})

    def _settle(
        self,
        model: Model,
        regime: Regime,
        size: Size | None,
        units: Units,
        latents: list[int],
        history: list[dict[str, Any]],
        seed: int,
        likelihood: LikelihoodChoice | None,
    ) -> None:
        """What fitting, or loading, leaves behind."""
        self.model_ = model
        self.regime_ = regime
        self.size_ = size
        self.units_ = units
        self.kept_ = latents
        self.history_ = history
        self.seed_ = seed
        self.likelihood_ = likelihood
        self.n_latents_ = model.n_latents
        self.types_ = regime.types
        self.loss_curve_ = np.array([line["loss"] for line in history])

    def transform(self, X: DataLike) -> Float[np.ndarray, "sample kept"]:
        """Posterior means of the selected latents, (sample, latent), in the precision of ``X``.

        :param X: observations shaped like those of ``fit``.
        """
        check_is_fitted(self)
        checked = self._checked(X, reset=False)
        X, rows = self._without_gaps(checked)
        model = self._model(_precision(X))
        with torch.inference_mode():
            means = [model.encode(x).mean[:, self.kept_].cpu().numpy() for x in self._batches(model, X)]
        codes = np.concatenate([np.empty((0, len(self.kept_))), *means]).astype(_precision(X), copy=False)
        return _scatter(codes, rows, len(checked))

    def inverse_transform(self, Z: Any) -> Shaped[np.ndarray, "sample ..."]:
        """What the decoder makes of latents as ``transform`` gives them, in the shape and units of ``X``.

        Latents that were not selected are at the prior's mean. Images given as bytes come back as bytes; those
        of bytes 0 and 1 alone as floats, which can be grey.

        :param Z: latents as ``transform`` gives them, (sample, latent).
        """
        check_is_fitted(self)
        refuse_masked(Z, "Z")
        Z = check_array(Z, dtype=FLOATS, input_name="Z")
        if Z.shape[1] != len(self.kept_):
            raise InputError(
                "Z",
                f"have a column for each of the {len(self.kept_)} latents that transform keeps",
                got=Z.shape[1],
            )
        model = self._model(Z.dtype)
        latents = np.tile(model.prior.passive_shape()[0].detach().cpu().numpy(), (len(Z), 1))
        latents[:, self.kept_] = Z
        return self._decoded(model, torch.from_numpy(latents).to(model.device, model.dtype), None, Z.dtype)

    def sample(
        self, n_samples: object = 1, *, seed: int = 0, noise: bool = True
    ) -> Shaped[np.ndarray, "sample ..."]:
        """Draw observations from the model: z ~ p(z), then x ~ p(x|z), or its mean where ``noise`` is False.

        :param n_samples: (default 1) how many observations to draw.
        :param seed: (default 0) seed of the draws.
        :param noise: (default True) whether to draw x ~ p(x|z), or take its mean.
        """
        check_is_fitted(self)
        if isinstance(n_samples, bool) or not isinstance(n_samples, int | np.integer) or n_samples < 1:
            raise InputError("n_samples", "be an integer from 1", got=f"{n_samples!r}")
        generator = torch.Generator(self.model_.device).manual_seed(derive(seed, "draw"))
        with torch.inference_mode():
            z = self.model_.prior.given(None).sample(int(n_samples), generator)
        return self._decoded(self.model_, z, generator if noise else None, np.float64)

    def score_samples(self, X: DataLike) -> Float[np.ndarray, " sample"]:
        """log p(x) of each observation in nats, estimated with ``n_draws`` importance-weighted draws.

        A density in the units of ``X``; it is not above log p(x) in expectation. Of images with a Bernoulli
        likelihood it is a log-probability where pixels are 0 or 1, and a cross-entropy where they are grey. How it
        is estimated: :func:`polariscope.estimators.evidence.log_evidence`. Of counts it is a log-probability, given the
        total of each observation where the likelihood has sizes.

        :param X: observations shaped like those of ``fit``.
        """
        check_is_fitted(self)
        checked = self._checked(X, reset=False)
        X, rows = self._without_gaps(checked)
        model = self._model(np.dtype(np.float64))
        with torch.inference_mode():
            parts = [
                log_evidence(model, x, self.n_draws, self.seed_).double().cpu().numpy()
                for x in self._batches(model, X)
            ]
        scores = np.concatenate([np.empty(0), *parts]) - self.units_.log_scale
        return _scatter(scores, rows, len(checked))

    def score(self, X: DataLike, y: object = None) -> float:
        """Mean log-density of the observations, nats; higher is better. ``y`` is not used.

        With ``missing="drop"``, rows that lack a value do not count.

        :param X: observations shaped like those of ``fit``.
        :param y: not used.
        """
        scores = self.score_samples(X)
        return float(scores[~np.isnan(scores)].mean() if self.missing == "drop" else scores.mean())

    def get_feature_names_out(self, input_features: object = None) -> Shaped[np.ndarray, " kept"]:
        """Names of the columns of ``transform``: "vae3" is latent 3. ``input_features`` is not used.

        :param input_features: not used.
        """
        check_is_fitted(self)
        return np.array([f"vae{latent}" for latent in self.kept_], dtype=object)

    def save(self, folder: str | Path) -> None:
        """Write the fitted estimator to a folder that :meth:`load` reads, without pickle.

        :param folder: where to write.
        """
        from polariscope.estimators.store import save

        check_is_fitted(self)
        save(self, Path(folder))

    @classmethod
    def load(cls, folder: str | Path, device: str = "cpu") -> VAE:
        """What :meth:`save` wrote, checked; loading never runs code from the files.

        :param folder: what :meth:`save` wrote.
        :param device: (default "cpu") where the model goes.
        """
        from polariscope.estimators.store import load

        return load(VAE, Path(folder), device)

    def _checked(self, X: Any, reset: bool) -> Shaped[np.ndarray, "sample ..."]:
        """X as scikit-learn wants it checked; what an observation looks like is remembered or compared."""
        refuse_masked(X, "X")
        n_least = MIN_SAMPLES if reset else 1
        if (X if hasattr(X, "ndim") else np.asarray(X)).ndim <= 2:
            try:
                # NaN is allowed here, so the error about missing values names their columns.
                checked = validate_data(
                    self,
                    X,
                    reset=reset,
                    dtype=FLOATS,
                    ensure_min_samples=n_least,
                    ensure_all_finite="allow-nan",
                )
                if self.missing == "refuse" and np.isnan(checked.min(initial=0)):
                    find_gaps([(0, checked)]).refuse("X", tuple(getattr(self, "feature_names_in_", ())))
                return checked
            except InputError:
                raise
            except ValueError as error:
                if not (names := _text_columns(X)):
                    raise
                raise InputError(
                    problem=f"X has columns of text: {', '.join(names)}",
                    remedy="drop them, or encode them as numbers",
                ) from error
        X = check_array(X, dtype="numeric", allow_nd=True, ensure_min_samples=n_least, input_name="X")
        if reset:
            self.n_features_in_ = int(np.prod(X.shape[1:]))
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        return X

    def _recipe(self, data: AbstractDataset, likelihood: PartLike, seed: int) -> dict[str, Any]:
        """The parts and the training, as :func:`polariscope.train` takes them."""
        options = {} if self.options is None else self.options
        if not isinstance(options, Mapping):
            raise InputError("options", "be a mapping of names to values", got=f"{self.options!r}")
        for name in OWN:
            if name in options:
                own = "random_state" if name == "seed" else name
                raise InputError(
                    "options", f"not hold {name!r}", remedy=f"set the parameter {own} of VAE instead"
                )
        chosen = choose(data, self.objective, self.net, self.posterior, self.prior, likelihood)
        if (
            concept_of("objective", self.objective).needs
            or concept_of("prior", chosen["prior"]).is_conditional
        ):
            raise InputError(
                problem=(
                    f"objective {self.objective!r} needs factors, labels or pairs beside X, which a "
                    "transformer is not given"
                ),
                remedy="use polariscope.train",
            )
        training = {**self._planned(data, chosen).options, **self._training()}
        training |= {"patience": self.patience, "seed": seed}
        return {**chosen, "schedule": "cosine", **training, **options}

    def _planned(self, data: AbstractDataset, parts: Mapping[str, Any]) -> Planned:
        """Return the rate, batch size and length that the planner chooses, without those that were set."""
        pace = QUICK_IMAGES if len(data.shape) == 3 else None
        return planned_training(data, concept_of("net", parts["net"]), self._training(), pace=pace)

    def _training(self) -> dict[str, Any]:
        """What was said of the training."""
        if self.steps is not None and (
            isinstance(self.steps, bool) or not isinstance(self.steps, int | np.integer) or self.steps < 1
        ):
            raise InputError("steps", "be an integer from 1", got=f"{self.steps!r}")
        settings = {name: getattr(self, name) for name in PACE}
        settings |= {} if self.steps is None else {"steps": int(self.steps)}
        return {name: value for name, value in settings.items() if value is not None}

    def _size(self, data: AbstractDataset, method: str, seed: int, threads: int | None) -> Size:
        """How many latents the data need: what :func:`polariscope.size` says, with what was set here."""
        from polariscope.sizing.checks import supported_options
        from polariscope.sizing.size import size

        parts = {kind: getattr(self, kind) for kind in FAMILIES if not _is_auto(getattr(self, kind))}
        assert self.options is None or isinstance(self.options, Mapping)
        # Candidates are continued as long as their decision is open, which a rate that falls to 0 does not allow.
        further = {name: value for name, value in (self.options or {}).items() if name != "schedule"}
        asked = {**parts, **self._training(), **further, "threshold": self.threshold}
        asked |= {"steps": max(MIN_STEPS, asked["steps"])} if "steps" in asked else {}
        asked |= {"standardise": bool(self.standardise), "scale": bool(self.scale)}
        asked |= {"seed": seed, "device": self.device, "threads": threads}
        return size(data, method, **supported_options(method, asked))

    def _model(self, precision: np.dtype) -> Model:
        """The model with weights in the precision asked for, where the device has it."""
        wanted = torch.float64 if precision == np.float64 else torch.float32
        if wanted == self.model_.dtype or self.model_.device.type == "mps":
            return self.model_
        return copy.deepcopy(self.model_).to(wanted)

    def _batches(self, model: Model, X: Shaped[np.ndarray, "sample ..."]) -> Iterator[torch.Tensor]:
        for rows in chunks(len(X), batch_size(math.prod(X.shape[1:]))):
            values = np.ascontiguousarray(self.units_.values(X[rows]))
            if model.needs_counts:
                refuse_non_counts(values, "X")
            yield model.place(torch.from_numpy(values))

    def _decoded(
        self, model: Model, z: torch.Tensor, generator: torch.Generator | None, dtype: Any
    ) -> Shaped[np.ndarray, "sample ..."]:
        """Observations for latents: means, or draws with the noise of ``generator``."""
        parts = []
        with torch.inference_mode():
            for rows in z.split(batch_size(math.prod(model.shape))):
                x = model.decode(rows)
                values = x.mean if generator is None else x.sample(generator)
                parts.append(self.units_.restore(values.cpu().numpy(), dtype))
        return np.concatenate(parts)


def _train(
    data: AbstractDataset, n_latents: Any, recipe: Mapping[str, Any], device: Any, threads: int | None
) -> tuple[Model, list[dict[str, Any]]]:
    """A model of all of the data, or of nine tenths if it may stop early, and the lines of its log."""
    job = plan(data, n_latents=n_latents, keep_units=True, **{**_logging(recipe), **recipe})
    everything = np.arange(len(data))
    model = build(job, choose_device(device))
    history: list[dict[str, Any]] = []

    def listen(_: int, line: dict[str, Any] | None) -> None:
        if line is not None:
            history.append(line)

    split = Split(everything, everything, everything[:0])
    if job.settings.patience:
        held_out = np.concatenate([job.split.validation, job.split.test])
        split = Split(job.split.train, held_out, everything[:0])
    with using_threads(threads or choose_threads(job, model, split.train)):
        fit(model, job.objective, data, split, job.settings, None, (listen,))
    return model, history


def _text_columns(X: Any) -> list[str]:
    """Return the names of the columns of a frame that hold text; empty for arrays.

    :param X: a frame of pandas or polars, or anything else.
    """
    names = getattr(X, "columns", None)
    if names is None:
        return []
    return [str(name) for name in names if any(isinstance(value, str) for value in X[name])]


def select_latents(regime: Regime, variables: object) -> list[int]:
    """Numbers of the latents to keep; never none: then the one with the largest KL, with a warning."""
    if not isinstance(variables, str):
        raise InputError("variables", 'be "in-use", "active+mixed", "active" or "all"', got=f"{variables!r}")
    latents = regime.select("full" if variables == "all" else variables)
    if latents:
        return latents
    first, kinds = regime.order[0], variables.replace("+", " or ").replace("-", " ")
    warnings.warn(
        f"none of the {regime.n_latents} latents is {kinds}; transform keeps latent {first}, "
        "whose KL is the largest. The data may be noise to this model: try more steps, a smaller likelihood "
        "variance, or a smaller beta.",
        UserWarning,
        stacklevel=3,
    )
    return [first]


def _logging(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Fifty lines of log; each has a held-out loss if training may stop early, otherwise nothing is held out."""
    every = recipe.get("log_every") or max(1, recipe["steps"] // 50)
    return {"log_every": every, "validate_every": every if recipe["patience"] else every * 10**6}


def _scatter(
    values: Float[np.ndarray, "kept ..."], rows: Int[np.ndarray, " kept"] | None, n_samples: int
) -> Float[np.ndarray, "sample ..."]:
    """Return results of some observations in the places of all, with NaN for the others."""
    if rows is None:
        return values
    placed = np.full((n_samples, *values.shape[1:]), np.nan, dtype=values.dtype)
    placed[rows] = values
    return placed


def _is_auto(choice: Any) -> bool:
    return isinstance(choice, str) and choice == "auto"


def _precision(X: Shaped[np.ndarray, "sample ..."]) -> np.dtype:
    """Of results: that of the floats given, and float32 for anything else (bytes)."""
    return X.dtype if X.dtype in FLOATS else np.dtype(np.float32)


def _seed(random_state: Any) -> int:
    """A whole number as it is; otherwise one drawn from NumPy's global generator or the one given."""
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
