"""Number of latents with models that the caller's own function trains."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from polariscope.analysis.regime.diagnose import diagnose
from polariscope.analysis.representation import Representation
from polariscope.core.errors import Argument, InputError
from polariscope.core.function_digest import function_digest
from polariscope.core.options import check_options
from polariscope.core.progress import reporting
from polariscope.data.data_like import DataLike
from polariscope.data.inputs import as_dataset
from polariscope.runs.encode import encode
from polariscope.sizing.checks import BOUNDS, check_seeds
from polariscope.sizing.fondue_settings import SETTINGS
from polariscope.sizing.goal import Goal
from polariscope.sizing.methods import family
from polariscope.sizing.own_trainer import Algorithm, check_width, fondue
from polariscope.sizing.published import BINARY_CAP
from polariscope.sizing.result import Size
from polariscope.sizing.search import SearchSettings
from polariscope.sizing.search_progress import candidate_arguments, candidate_event
from polariscope.storage.artefacts import Artefacts, Key
from polariscope.storage.search_folder import SearchFolder

OPTIONS = ("threshold", "n_init", "cap", "seed", "seeds", "out", "progress")
"""Options of ``polariscope.size`` that a search with the user's trainer uses."""


def size_with(
    trainer: Callable[..., object], data: DataLike, method: str, options: Mapping[str, Any]
) -> tuple[Size, dict[str, Any]]:
    """Find the number of latents with models that the caller's function trains; return the size and its settings.

    The representations are cached in the folder ``out``, so an interrupted search does not train a model twice.

    :param trainer: a function of the number of latents, and optionally of ``seed``, that returns a trained model, or
        anything else that :func:`polariscope.encode` accepts, or a Representation.
    :param data: the data that the models encode.
    :param method: a method with the trait ``with_trainer``.
    :param options: options of the search, all in :data:`OPTIONS`.
    """
    algorithm: Algorithm = _check_trainer(trainer, method, options)
    dataset = as_dataset(data)
    first, n_seeds = options.get("seed", SearchSettings.seed), options.get("seeds", SearchSettings.seeds)
    goal = Goal(
        **check_options("the search", Goal, {name: options[name] for name in BOUNDS if name in options})
    )
    identity = {"trainer": function_digest(trainer), "data": dataset.fingerprint}
    takes_seed = _takes_seed(trainer)
    encoded: dict[tuple[int, int], Representation] = {}

    with reporting(options.get("progress", False), candidate_arguments) as progress:

        def encode_with(n_latents: int, seed: int = first) -> Representation:
            known = encoded.get((n_latents, seed))
            if known is not None:
                return known
            cache = _cache(options.get("out"), seed, identity)
            key = Key("representation", None, dataset.fingerprint, settings={"n_latents": n_latents})
            representation = None if cache is None else cache.read_arrays(key, Representation.from_arrays)
            if representation is None:
                if progress is not None:
                    progress(candidate_event(seed, n_latents, 0, 0.0))
                model: Any = trainer(n_latents, seed=seed) if takes_seed else trainer(n_latents)
                representation = _encoded(model, data, n_latents)
                if cache is not None:
                    cache.keep_arrays(key, *representation.to_arrays())
            encoded[n_latents, seed] = representation
            return representation

        result = fondue(
            encode_with if takes_seed else lambda n_latents: encode_with(n_latents),
            threshold=goal.threshold,
            n_init=goal.n_init or min(SETTINGS.first_width, goal.cap),
            algorithm=algorithm,
            cap=min(goal.cap, BINARY_CAP) if algorithm == "binary" else goal.cap,
            seeds=range(first, first + n_seeds),
        )
    return _completed(result, method, encoded), {**identity, "seed": first, "seeds": n_seeds}


def _encoded(model: Any, data: DataLike, n_latents: int) -> Representation:
    """Return the representation of a model that a trainer returned; it must have variances."""
    try:
        representation = model if isinstance(model, Representation) else encode(model, data)
    except InputError as error:
        raise InputError(problem=f"the result of trainer({n_latents}) cannot be encoded: {error}") from error
    check_width(representation, n_latents, "trainer")
    if not representation.variance.any():
        raise InputError(
            f"trainer({n_latents})",
            "return a model with posterior variances, from which the number of latents is found",
            got="a deterministic encoder",
            remedy="train a VAE; its number of latents suits autoencoders as well",
        )
    return representation


def _completed(result: Size, method: str, encoded: Mapping[tuple[int, int], Representation]) -> Size:
    """Add the method, the margin for other seeds and the verdict on the answer's model."""
    answer = result.value
    codes = [encoded[key] for key in encoded if key[0] == answer]
    verdict = diagnose(codes[0]).verdict if codes else None
    size = dataclasses.replace(result, method=method, verdict=verdict, summary=family.summary(method))
    if not answer:  # models that learned nothing do not bound the answer by one latent
        return size
    low, high = int(min(result.per_seed)), int(max(result.per_seed))
    margin = SETTINGS.seed_margin
    which = "the answer" if len(result.per_seed) == 1 else f"the answers of {len(result.per_seed)} seeds"
    meaning = f"one latent more or fewer than {which}, because another seed can differ by one"
    return dataclasses.replace(
        size, interval=(max(min(1, low), low - margin), high + margin), meaning_of_interval=meaning
    )


def _check_trainer(trainer: object, method: str, options: Mapping[str, object]) -> Algorithm:
    """Check that a trainer is a function and that method and options can be used with one; return the algorithm."""
    if not callable(trainer):
        raise InputError("trainer", "be a function of the number of latents", got=type(trainer).__name__)
    algorithm = family.traits(method).get("with_trainer")
    if algorithm is None:
        able = [name for name in family if family.traits(name).get("with_trainer")]
        raise InputError(
            problem=f"method {method!r} trains its own models",
            remedy=(
                "leave ",
                Argument("trainer"),
                f" out, or use one of the methods {', '.join(map(repr, able))}",
            ),
        )
    for name in options:
        if name not in OPTIONS:
            raise InputError(
                problem=(Argument(name), " is for models that Polariscope trains"),
                remedy=("leave it out, and set it inside ", Argument("trainer")),
            )
    n_seeds = options.get("seeds", SearchSettings.seeds)
    check_seeds(n_seeds)
    if n_seeds != 1 and not _takes_seed(trainer):
        raise InputError(
            "trainer",
            "have an argument seed if there are several seeds",
            got=f"{n_seeds} seeds",
            remedy="write trainer(n_latents, seed)",
        )
    return algorithm


def _takes_seed(trainer: Callable[..., object]) -> bool:
    return "seed" in inspect.signature(trainer).parameters


def _cache(out: str | Path | None, seed: int, identity: dict[str, Any]) -> Artefacts | None:
    """Return the cached representations of one seed; None without a folder."""
    if out is None:
        return None
    folder = SearchFolder(out).seed(seed)
    folder.path.mkdir(parents=True, exist_ok=True)
    folder.check_recipe(identity)
    return Artefacts(folder.path)
