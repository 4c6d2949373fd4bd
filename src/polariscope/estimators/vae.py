"""Variational autoencoder as a scikit-learn transformer."""

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
from polariscope.core.arrays import as_array, refuse_large_integers, refuse_masked
from polariscope.core.errors import Argument, InputError
from polariscope.core.paths import user_path
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
from polariscope.training.plan import FAMILIES, PartLike, choose, concept_of, is_auto, plan
from polariscope.training.planner import QUICK_IMAGES, Pace, Planned, planned_training
from polariscope.training.threads import check_threads, using_threads
from polariscope.training.train import build, choose_device, choose_threads

FLOATS = (np.float64, np.float32)
PACE = tuple(field.name for field in dataclasses.fields(Pace))
"""Parameters that the planner chooses unless they are set."""
MIN_STEPS = 400  # of a candidate of sizing, which cannot detect a trend with fewer
MIN_SAMPLES = 3
"""Minimum number of observations for training."""
NOT_OPTIONS = (*PACE, "patience", "seed")
"""Settings that are parameters of the estimator and therefore not accepted in ``options``."""


class VAE(TransformerMixin, BaseEstimator):
    r"""Embed a table or images with the latent variables that a variational autoencoder uses.

    ``fit`` chooses the number of latents, trains a model on all of ``X`` and determines which latents are in use.
    ``transform`` returns the posterior mean μ(x) of these latents. The means of the others vary little and add almost
    no information.

    ``X`` is a table (sample, feature), or images (sample, height, width), (sample, channel, height, width) or
    (sample, height, width, channel), of bytes or of floats in [0, 1]. Bytes are 0 … 255, or all 0 and 1.

    **Number of latents.** With ``n_latents="fondue"`` the number is estimated as by :func:`polariscope.size`, and by
    the command line, for the same table: the search uses its own learning rate and number of steps. Parameters that you
    set (net, objective, steps, learning_rate, batch_size, options) also apply to the models of the search.

    **Noise of a table.** A latent is active if it explains more variance than the decoder treats as noise. In a linear
    model, direction i of the data, with variance λ_i, is active if and only if λ_i > γ, the variance of the decoder
    (β = 1). Therefore γ determines which latents are passive. With the usual γ = 1 on standardised features, every
    direction with less than the variance of one feature would be dropped. Here, as in :func:`polariscope.train`, one γ
    for all features is learned. It starts at a tenth of their mean variance and converges to the reconstruction error,
    as the noise of probabilistic PCA does (Lucas et al., Don't Blame the ELBO!, lucas2019), but not below 1e-4 of the
    mean variance. A learned γ also makes values of p(x) comparable. To set γ, pass ``options={"variance": 0.05}``, in
    units of the mean variance of the features. Images and tables of 0 and 1 have a Bernoulli likelihood, and tables of
    counts a Poisson or negative-binomial one; their values are not changed.

    **Units.** A table is centred and divided by one number, the square root of the mean variance of its features, so
    learning rate and γ do not depend on units. Outputs are in the units of ``X``. With ``standardise=True`` every
    feature has variance 1, and with ``scale=True`` every feature has values from 0 to 1.

    Parameters
    ----------
    n_latents:
        Number of latents, or the method that estimates it: "fondue" (:func:`polariscope.size`).
    objective, net, posterior, prior, likelihood:
        As in :func:`polariscope.train`, by name, as a mapping or as an object; those that require factors or labels are
        not supported. net "auto" is a convolutional network for images of at least 16 × 16 pixels, otherwise two hidden
        layers of 16 to 128 units, one for every 16 samples. likelihood "auto" is chosen as described above, by
        :func:`polariscope.training.likelihood.choose_likelihood`; "bernoulli" for a table requires values in [0, 1],
        which are not changed.
    variables:
        Latents that ``transform`` returns: "in-use", "active+mixed", "active" or "all". If there is none of that kind,
        the latent with the largest KL is returned, with a warning, because an array without columns would break a
        pipeline.
    steps, learning_rate, batch_size:
        Settings of the training. By default (None), tables are trained as in :func:`polariscope.train`, for 100 passes
        (2,000 to 20,000 steps) with rate 1e-3 and batches of 64, and images for 2,000 steps with 3e-3 and 128. The
        learning rate decreases to 0 along a cosine. A batch contains at most all of ``X``. If they are set, they also
        apply to the models of sizing, with at least 400 steps and a constant rate.
    patience:
        Number of lines of the log (50 in all) without a lower held-out loss after which training stops. ``steps`` is
        then the maximum, the model is that of the lowest loss, and a tenth of ``X`` is held out. With 0, the default,
        the model is trained on all of ``X`` for all steps.
    standardise:
        If True, divide each feature of a table by its standard deviation.
    scale:
        If True, scale each feature of a table to [0, 1] by its minimum and maximum in ``fit``; likelihood "auto" is
        then Bernoulli. Values outside this range are accepted by ``transform``, but not by ``score_samples``.
    missing:
        Treatment of missing values (NaN) of a table. "refuse" raises an error that names their columns. "drop" fits
        without rows that have missing values; ``transform`` and ``score_samples`` return NaN for such rows, so other
        rows keep their positions. "median" replaces missing values by the median of the column in ``fit``, also in
        ``transform``. Infinite values raise an error.
    threshold:
        Maximum Σ E[σ²] of FONDUE; above it a latent is unused.
    n_draws:
        Number of posterior samples for each log-density of ``score_samples``.
    layout:
        "channels-first" or "channels-last", required if the shape of the images is ambiguous.
    random_state:
        Seed. With a number, including the default, results are identical byte for byte. With None a seed is drawn from
        NumPy's global generator, and with a RandomState from that generator.
    device:
        "auto", "cpu", "cuda" or "mps".
    threads:
        Number of PyTorch threads; None chooses it from the work per step and the number of cores, 1 for a table.
    options:
        Further options of the parts and of the training by name, as in :func:`polariscope.train`: ``{"beta": 4.0}``.

    Attributes
    ----------
    model_, regime_, size_:
        The trained model, its diagnosis, and the answer of the search for the number of latents (None if a number was
        set).
    chosen_:
        Descriptions of the settings that were chosen automatically: reading and scaling of the data, net, likelihood
        and its variance, learning rate, batch size and length.
    planned_:
        Learning rate, batch size and length chosen by the planner, without those that you set.
    medians_, n_missing_:
        Medians that replace missing values (None unless ``missing="median"``), and the number of missing values that
        were replaced, or of rows that were dropped.
    likelihood_:
        The likelihood chosen by "auto", with the reason and the facts it is based on; None if you set one.
    noise_:
        Variance γ of the decoder, in units of the mean variance of the features; ``size_.noise`` is that of the models
        of sizing. None for images.
    n_latents_, types_, kept_:
        Number of latents, type of each, and indices of those that ``transform`` returns.
    loss_curve_, history_:
        The training loss in nats, and the lines of the log.
    units_, seed_, n_features_in_, feature_names_in_:
        Scale and shape of the observations, the seed, the number of values in one observation, and their names if ``X``
        has names.

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
        # scikit-learn requires that parameters are only stored here; fit checks them.
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
        """Choose the number of latents, train a model, and determine the type of each latent.

        :param X: a table or images, as the class describes.
        :param y: not used.
        """
        check_missing(self.missing)
        X = self._learn_gaps(self._checked(X, reset=True))
        for name in ("standardise", "scale"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise InputError(name, "be True or False", got=f"{getattr(self, name)!r}")
        shorthands(
            standardise=bool(self.standardise), scale=bool(self.scale)
        )  # raises an error if both are set
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
            n_latents = max(1, size.n_latents)  # an answer of 0 means that the models treat the data as noise
        model, history = _train(data, n_latents, recipe, self.device, threads)
        stopped_at = model.step if model.step is not None and model.step < history[-1]["step"] else None
        state = training_state(history, threshold=INFORMATION, stopped_at=stopped_at)
        regime = diagnose(dataclasses.replace(encode(model, data, seed=seed), training=state), seed=seed)
        latents = select_latents(regime, self.variables)
        self._set_fitted(model, regime, size, units, latents, history, seed, suitable)
        self.planned_ = self._planned(data, recipe)
        return self

    def _learn_gaps(self, X: Shaped[np.ndarray, "sample ..."]) -> Shaped[np.ndarray, "kept ..."]:
        """Return the table that the model is fitted on, without missing values, and store the medians."""
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
                f"have at least {MIN_SAMPLES} rows without missing values",
                got=len(gaps.complete),
                remedy=("drop columns with many missing values, or use ", Argument("missing", "median")),
            )
        return X[gaps.complete]

    def _without_gaps(
        self, X: Shaped[np.ndarray, "sample ..."]
    ) -> tuple[Shaped[np.ndarray, "part ..."], Int[np.ndarray, " part"] | None]:
        """Return observations without missing values, and their indices if others were dropped."""
        if self.medians_ is not None:
            return fill(X, self.medians_), None
        if X.ndim != 2 or self.missing == "refuse":
            return X, None
        complete = find_gaps([(0, X)]).complete
        return (X, None) if len(complete) == len(X) else (X[complete], complete)

    def _suitable_likelihood(self, X: Shaped[np.ndarray, "sample ..."]) -> LikelihoodChoice | None:
        """Return the likelihood chosen by "auto", with its reason; None if the user set one."""
        if not is_auto(self.likelihood):
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
        """Descriptions of the settings that were chosen automatically."""
        check_is_fitted(self)
        parts = {kind: getattr(self, kind) for kind in ("net", "posterior", "prior", "likelihood")}
        assert self.options is None or isinstance(self.options, Mapping)
        options = {key.removeprefix("likelihood_"): value for key, value in (self.options or {}).items()}
        units = self.units_
        read = [] if self.layout is not None or len(units.shape) < 3 else [units.kind.replace("-", " ")]
        if self.n_missing_ and self.medians_ is not None:
            read.append(f"{self.n_missing_:,} missing values replaced by the median of the column in fit")
        elif self.n_missing_:
            read.append(f"fitted without {self.n_missing_:,} rows with missing values")
        if units.white is not None:
            read.append("bytes divided by 255" if units.white == 255 else "bytes 0 and 1 are black and white")
        if units.scale is not None:
            read.append(
                "each feature of the table scaled to [0, 1]"
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
        """Variance γ of the decoder, in the units of training; None if γ is not one number."""
        check_is_fitted(self)
        return Noise.of_run({"model": self.model_.blueprint.describe()}, {"gamma": self.model_.gamma})

    def _set_fitted(
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
        """Set the attributes of a fitted or loaded estimator."""
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
        """Return the posterior means of the selected latents, (sample, latent), in the precision of ``X``.

        :param X: observations with the same shape as in ``fit``.
        """
        check_is_fitted(self)
        checked = self._checked(X, reset=False)
        X, rows = self._without_gaps(checked)
        model = self._model(_precision(X))
        with torch.inference_mode():
            means = [model.encode(x).mean[:, self.kept_].cpu().numpy() for x in self._batches(model, X)]
        # The empty array is the result if no row is complete.
        codes = np.concatenate([np.empty((0, len(self.kept_))), *means]).astype(_precision(X), copy=False)
        return _scatter(codes, rows, len(checked))

    def inverse_transform(self, Z: Any) -> Shaped[np.ndarray, "sample ..."]:
        """Decode latents, as returned by ``transform``, to the shape and units of ``X``.

        Other latents are set to the mean of the prior. If ``X`` was images of bytes, the output is bytes; if all bytes
        were 0 or 1, it is floats, which can represent grey.

        :param Z: latents as returned by ``transform``, (sample, latent).
        """
        check_is_fitted(self)
        refuse_masked(Z, "Z")
        Z = check_array(Z, dtype=FLOATS, input_name="Z")
        if Z.shape[1] != len(self.kept_):
            raise InputError(
                "Z",
                f"have a column for each of the {len(self.kept_)} latents that transform returns",
                got=Z.shape[1],
            )
        model = self._model(Z.dtype)
        latents = np.tile(model.prior.passive_shape()[0].detach().cpu().numpy(), (len(Z), 1))
        latents[:, self.kept_] = Z
        return self._decoded(model, torch.from_numpy(latents).to(model.device, model.dtype), None, Z.dtype)

    def sample(
        self, n_samples: object = 1, *, seed: int = 0, noise: bool = True
    ) -> Shaped[np.ndarray, "sample ..."]:
        """Sample observations from the model: z ~ p(z), then x ~ p(x|z).

        :param n_samples: (default 1) number of observations.
        :param seed: (default 0) seed of the samples.
        :param noise: (default True) if True, sample x ~ p(x|z); otherwise return its mean.
        """
        check_is_fitted(self)
        if isinstance(n_samples, bool) or not isinstance(n_samples, int | np.integer) or n_samples < 1:
            raise InputError("n_samples", "be an integer of at least 1", got=f"{n_samples!r}")
        generator = torch.Generator(self.model_.device).manual_seed(derive(seed, "draw"))
        with torch.inference_mode():
            z = self.model_.prior.given(None).sample(int(n_samples), generator)
        return self._decoded(self.model_, z, generator if noise else None, np.float64)

    def score_samples(self, X: DataLike) -> Float[np.ndarray, " sample"]:
        """Estimate log p(x) of each observation in nats, with ``n_draws`` importance-weighted samples.

        The result is a log-density in the units of ``X``, and in expectation at most log p(x); see
        :func:`polariscope.estimators.evidence.log_evidence`. For images with a Bernoulli likelihood it is a
        log-probability if pixels are 0 or 1, and a cross-entropy if they are grey. For counts it is a log-probability,
        given the total of each observation if the likelihood has sizes.

        :param X: observations with the same shape as in ``fit``.
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
        """Return the mean log-density of the observations in nats; higher is better.

        With ``missing="drop"``, rows with missing values are ignored.

        :param X: observations with the same shape as in ``fit``.
        :param y: not used.
        """
        scores = self.score_samples(X)
        return float(scores[~np.isnan(scores)].mean() if self.missing == "drop" else scores.mean())

    def get_feature_names_out(self, input_features: object = None) -> Shaped[np.ndarray, " kept"]:
        """Return the names of the columns of ``transform``: "vae3" is latent 3.

        :param input_features: not used.
        """
        check_is_fitted(self)
        return np.array([f"vae{latent}" for latent in self.kept_], dtype=object)

    def save(self, folder: str | Path) -> None:
        """Write the fitted estimator to a folder that :meth:`load` reads, without pickle.

        :param folder: folder to write.
        """
        from polariscope.estimators.store import save

        check_is_fitted(self)
        save(self, user_path(folder, "folder"))

    @classmethod
    def load(cls, folder: str | Path, device: str = "cpu") -> VAE:
        """Load and check an estimator written by :meth:`save`; loading never executes code from the files.

        :param folder: folder written by :meth:`save`.
        :param device: (default "cpu") PyTorch device of the model.
        """
        from polariscope.estimators.store import load

        return load(VAE, user_path(folder, "folder"), device)

    def _checked(self, X: Any, reset: bool) -> Shaped[np.ndarray, "sample ..."]:
        """Apply scikit-learn's checks to X; store the features if ``reset`` is True, otherwise compare them."""
        try:
            return self._validated(X, reset)
        except InputError:
            raise
        except ValueError as error:  # scikit-learn's message, as one of ours
            raise InputError(problem=str(error).rstrip(".")) from error

    def _validated(self, X: Any, reset: bool) -> Shaped[np.ndarray, "sample ..."]:
        refuse_masked(X, "X")
        if getattr(X, "is_meta", False):
            raise InputError("X", "contain numbers", got="a tensor on the meta device, which has none")
        min_samples = MIN_SAMPLES if reset else 1
        # as_array, because __array__ of another library can raise anything.
        array = X if hasattr(X, "ndim") else as_array(X, "X")
        if array.ndim == 0 and array.dtype == object:
            # An object in an array raises the TypeError of scikit-learn, which its checks of estimators require.
            raise InputError("X", "be an array of numbers", got=type(X).__name__)
        if array.ndim <= 2:
            _refuse_large_integers(X)
            try:
                # NaN passes this check, because our own error about missing values names their columns.
                checked = validate_data(
                    self,
                    X,
                    reset=reset,
                    dtype=FLOATS,
                    ensure_min_samples=min_samples,
                    ensure_all_finite="allow-nan",
                )
                # The minimum is NaN if any value is, and needs no mask of the size of X.
                if self.missing == "refuse" and np.isnan(checked.min(initial=0)):
                    find_gaps([(0, checked)]).refuse("X", tuple(getattr(self, "feature_names_in_", ())))
                return checked
            # InputError is a ValueError, too.
            except InputError:
                raise
            # The message of scikit-learn does not name the columns.
            except ValueError as error:
                if not (names := _text_columns(X)):
                    raise
                raise InputError(
                    problem=f"X has columns of text: {', '.join(names)}",
                    remedy="drop them, or encode them as numbers",
                ) from error
        X = check_array(X, dtype="numeric", allow_nd=True, ensure_min_samples=min_samples, input_name="X")
        if reset:
            self.n_features_in_ = int(np.prod(X.shape[1:]))
            # An earlier fit on a table can have left names.
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        return X

    def _recipe(self, data: AbstractDataset, likelihood: PartLike, seed: int) -> dict[str, Any]:
        """Return the parts and training settings as arguments of :func:`polariscope.train`."""
        options = {} if self.options is None else self.options
        if not isinstance(options, Mapping):
            raise InputError("options", "be a mapping of names to values", got=f"{self.options!r}")
        for name in NOT_OPTIONS:
            if name in options:
                parameter = "random_state" if name == "seed" else name
                raise InputError(
                    "options", f"not contain {name!r}", remedy=f"set the parameter {parameter} of VAE instead"
                )
        parts = choose(data, self.objective, self.net, self.posterior, self.prior, likelihood)
        if (
            concept_of("objective", self.objective).needs
            or concept_of("prior", parts["prior"]).is_conditional
        ):
            raise InputError(
                problem=(
                    f"objective {self.objective!r} requires factors, labels or pairs besides X, which a "
                    "transformer does not receive"
                ),
                remedy="use polariscope.train",
            )
        training = {**self._planned(data, parts).options, **self._training()}
        training |= {"patience": self.patience, "seed": seed}
        return {**parts, "schedule": "cosine", **training, **options}

    def _planned(self, data: AbstractDataset, parts: Mapping[str, Any]) -> Planned:
        """Return the learning rate, batch size and length chosen by the planner, without those that were set."""
        pace = QUICK_IMAGES if len(data.shape) == 3 else None
        return planned_training(data, concept_of("net", parts["net"]), self._training(), pace=pace)

    def _training(self) -> dict[str, Any]:
        """Return the training settings that were set."""
        if self.steps is not None and (
            isinstance(self.steps, bool) or not isinstance(self.steps, int | np.integer) or self.steps < 1
        ):
            raise InputError("steps", "be an integer of at least 1", got=f"{self.steps!r}")
        settings = {name: getattr(self, name) for name in PACE}
        settings |= {} if self.steps is None else {"steps": int(self.steps)}
        return {name: value for name, value in settings.items() if value is not None}

    def _size(self, data: AbstractDataset, method: str, seed: int, threads: int | None) -> Size:
        """Estimate the number of latents with :func:`polariscope.size` and the parameters that were set."""
        from polariscope.sizing.checks import supported_options
        from polariscope.sizing.size import size

        parts = {kind: getattr(self, kind) for kind in FAMILIES if not is_auto(getattr(self, kind))}
        assert self.options is None or isinstance(self.options, Mapping)
        # Candidates are trained until they are decided, which requires a rate that does not decrease to 0.
        further = {name: value for name, value in (self.options or {}).items() if name != "schedule"}
        settings = {**parts, **self._training(), **further, "threshold": self.threshold}
        settings |= {"steps": max(MIN_STEPS, settings["steps"])} if "steps" in settings else {}
        settings |= {"standardise": bool(self.standardise), "scale": bool(self.scale)}
        settings |= {"seed": seed, "device": self.device, "threads": threads}
        return size(data, method, **supported_options(method, settings))

    def _model(self, precision: np.dtype) -> Model:
        """Return the model with weights in a precision, if the device supports it."""
        dtype = torch.float64 if precision == np.float64 else torch.float32
        # MPS does not support float64.
        if dtype == self.model_.dtype or self.model_.device.type == "mps":
            return self.model_
        # A copy, because converting a module changes it in place.
        return copy.deepcopy(self.model_).to(dtype)

    def _batches(self, model: Model, X: Shaped[np.ndarray, "sample ..."]) -> Iterator[torch.Tensor]:
        for rows in chunks(len(X), batch_size(math.prod(X.shape[1:]))):
            values = np.ascontiguousarray(self.units_.values(X[rows]))
            if model.needs_counts:
                refuse_non_counts(values, "X")
            yield model.place(torch.from_numpy(values))

    def _decoded(
        self, model: Model, z: torch.Tensor, generator: torch.Generator | None, dtype: Any
    ) -> Shaped[np.ndarray, "sample ..."]:
        """Decode latents to means, or to samples if there is a ``generator``."""
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
    """Train a model on all data, or on nine tenths with early stopping, and return it with the lines of its log."""
    # The data are already in the units of the network.
    job = plan(data, n_latents=n_latents, keep_units=True, **{**_logging(recipe), **recipe})
    everything = np.arange(len(data))
    model = build(job, choose_device(device))
    history: list[dict[str, Any]] = []

    def listen(_: int, line: dict[str, Any] | None) -> None:
        if line is not None:
            history.append(line)

    # Without early stopping all observations are used for training, and the log is measured on the same ones.
    split = Split(everything, everything, everything[:0])
    if job.settings.patience:
        # A fit has no later use for a test part, so both parts are used for validation.
        held_out = np.concatenate([job.split.validation, job.split.test])
        split = Split(job.split.train, held_out, everything[:0])
    with using_threads(threads or choose_threads(job, model, split.train)):
        fit(model, job.objective, data, split, job.settings, None, (listen,))
    return model, history


def _text_columns(X: Any) -> list[str]:
    """Return the names of the columns of a pandas or polars frame that contain text; empty for arrays."""
    names = getattr(X, "columns", None)
    if names is None:
        return []
    return [str(name) for name in names if any(isinstance(value, str) for value in X[name])]


def _refuse_large_integers(X: Any) -> None:
    """Reject integers that scikit-learn would round when it converts them to floats; frames are checked by column."""
    if (names := getattr(X, "columns", None)) is not None:
        for name in names:
            refuse_large_integers(np.asarray(X[name]), f"column {str(name)!r} of X")
    elif not hasattr(X, "tocsr"):  # sparse matrices are refused by the checks that follow
        refuse_large_integers(np.asarray(X), "X")


def select_latents(regime: Regime, variables: object) -> list[int]:
    """Return the indices of the selected latents; if there is none, that of the largest KL, with a warning."""
    if not isinstance(variables, str):
        raise InputError("variables", 'be "in-use", "active+mixed", "active" or "all"', got=f"{variables!r}")
    latents = regime.select("full" if variables == "all" else variables)
    if latents:
        return latents
    first, kinds = regime.order[0], variables.replace("+", " or ").replace("-", " ")
    warnings.warn(
        f"none of the {regime.n_latents} latents is {kinds}; transform returns latent {first}, "
        "which has the largest KL. The model might treat the data as noise: try more steps, a smaller likelihood "
        "variance, or a smaller beta.",
        UserWarning,
        # The line of the user's code that calls fit.
        stacklevel=3,
    )
    return [first]


def _logging(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options for 50 lines of log, with a held-out loss in each if early stopping is on."""
    every = recipe.get("log_every") or max(1, recipe["steps"] // 50)
    # Never, but a multiple of log_every is required.
    return {"log_every": every, "validate_every": every if recipe["patience"] else every * 10**6}


def _scatter(
    values: Float[np.ndarray, "kept ..."], rows: Int[np.ndarray, " kept"] | None, n_samples: int
) -> Float[np.ndarray, "sample ..."]:
    """Return results of some observations at their positions among all, with NaN for the others."""
    if rows is None:
        return values
    scattered = np.full((n_samples, *values.shape[1:]), np.nan, dtype=values.dtype)
    scattered[rows] = values
    return scattered


def _precision(X: Shaped[np.ndarray, "sample ..."]) -> np.dtype:
    """Return the precision of results: that of floating-point input, otherwise float32."""
    return X.dtype if X.dtype in FLOATS else np.dtype(np.float32)


def _seed(random_state: Any) -> int:
    """Return an integer unchanged; otherwise draw one from NumPy's global generator or the one passed."""
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
