"""How many latents does this data need?"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from polariscope import files
from polariscope.data import AbstractDataset
from polariscope.data.arrays import from_arrays
from polariscope.dimension.answer import Size, Target, settle
from polariscope.dimension.fondue import check_threshold
from polariscope.errors import InputError, PolariscopeError
from polariscope.priors.isotropic import IsotropicPrior
from polariscope.settings import plain
from polariscope.sizing import Found, Goal, family
from polariscope.sizing.beta import largest_beta
from polariscope.sizing.candidates import TrainedCandidates
from polariscope.training.run import plan

CAP = Goal.cap
COMPARED = ("fondue", "active-units", "ard", "elbow", "probe-elbow", "id")
"""What ``compare_sizes`` runs unless told otherwise: affordable together, and each a different idea."""


def size(
    data: Any,
    method: str = "fondue",
    *,
    threshold: float | int = 1.0,
    target: Any = "latents",
    n_latents: int | None = None,
    seed: int = 0,
    seeds: int = 1,
    n_init: int | None = None,
    cap: int = CAP,
    steps: int | None = None,
    epochs: int | None = None,
    learning_rate: float | None = None,
    out: str | Path | None = None,
    device: Any = "auto",
    progress: bool | Callable[[int, int, int, float], None] = False,
    **recipe: Any,
) -> Size:
    """How many latents the data need, or with ``target="beta"`` how large β may be for ``n_latents``.

    ``data`` is a dataset or an array of observations, ``method`` a name of :data:`polariscope.sizing.family`:
    ``fondue`` (the largest n whose Σ E[σ²] stays within ``threshold``, in few steps), the published searches, and
    rivals. The ``recipe`` says what is trained: ``objective``, ``net``, ``likelihood`` … as in
    :func:`polariscope.train`.

    ``seeds`` models' seeds are ``seed``, ``seed`` + 1, …; the answer is their median, the interval their range
    together with what each may still become. ``n_init`` is a first guess (the answer does not depend on it),
    ``cap`` the most latents that are tried. ``steps`` bounds each model (see :class:`~polariscope.sizing.Goal`);
    ``epochs`` is for the published searches.

    With ``out``, every model is a run in that folder and nothing is trained twice: an interrupted search goes on
    where it stopped, and ``size.json`` keeps the answer. ``device`` as in ``train``; ``progress`` is a function
    called with (seed, n_latents, step, Σ E[σ²]), or True for a line on the terminal.
    """
    dataset = data if isinstance(data, AbstractDataset) else from_arrays(data)
    _check(method, target, n_latents, seeds, recipe)
    check_threshold(threshold, positive=family.traits(method)["statistic"] == "Σ E[σ²]")
    goal = make_goal(threshold, n_init, cap, steps, epochs, learning_rate)
    given = {"threshold": threshold, "n_init": n_init, "cap": cap, "steps": steps, "epochs": epochs}
    check_used(method, target, {**given, "learning_rate": learning_rate})
    most = n_latents if target == "beta" else cap
    if family.traits(method)["threshold"] == "goal" and most is not None and threshold >= most:
        raise InputError(
            f"threshold must be below the {most} that so many latents can reach, got {threshold:g}."
        )
    check_varies(dataset)
    if learning_rate is not None:
        recipe["learning_rate"] = learning_rate
    check_recipe(dataset, method, recipe)
    found: list[Found] = []
    spent = 0
    with _place(out) as folder, _listener(progress) as listen:
        for number in range(seed, seed + seeds):
            candidates = TrainedCandidates(
                dataset,
                folder / f"seed-{number}",
                number,
                {**recipe, "device": device},
                None if listen is None else functools.partial(listen, number),
            )
            if target == "beta":
                assert n_latents is not None
                found.append(largest_beta(candidates, goal, n_latents))
            else:
                found.append(family[method](candidates, goal))
            spent += candidates.n_steps
        result = merge(found, method, target, goal, spent)
        if out is not None:
            settings = {
                "data": {**dataset.describe(), "fingerprint": dataset.fingerprint},
                "method": method,
                "target": target,
                "seed": seed,
                "seeds": seeds,
                "goal": dataclasses.asdict(goal),
                "recipe": plain(recipe),
            }
            write_size(Path(out) / "size.json", result, settings)
    return result


def compare_sizes(
    data: Any,
    methods: Sequence[str] | None = None,
    *,
    out: str | Path | None = None,
    begin: Callable[[str], None] | None = None,
    **options: Any,
) -> tuple[Size, ...]:
    """The answers of several methods, side by side; arguments as in :func:`size`, each for the methods that use it.

    ``methods`` are by default one of each idea, without those that need factors where the data have none. In
    ``out`` each method has a folder of its own, so that their costs can be compared, and ``sizes.json`` has all
    answers. ``begin`` is told the name of each method when its turn comes.
    """
    dataset = data if isinstance(data, AbstractDataset) else from_arrays(data)
    chosen = methods or [name for name in COMPARED if name != "probe-elbow" or dataset.factor_names]
    keys = set(inspect.signature(size).parameters) - {"data", "method"}
    recipe = {key: value for key, value in options.items() if key not in keys}
    for name in chosen:  # refuse what is wrong with the call before anything is trained
        check_recipe(dataset, name, recipe)
    check_varies(dataset)
    answers = []
    for name in chosen:
        place = None if out is None else Path(out) / name
        if begin is not None:
            begin(name)
        try:
            answers.append(size(dataset, name, out=place, **heeded(name, options)))
        except PolariscopeError as error:  # no answer is also a result, beside the others'
            statistic = family.traits(name)["statistic"]
            answers.append(Size(None, None, name, statistic=statistic, notes=(f"{name}: {error}",)))
    if out is not None:
        record = {"sizes": [plain(answer.to_dict()) for answer in answers]}
        files.write_json(Path(out) / "sizes.json", {**record, "hash": files.digest(record)})
    return tuple(answers)


BOUNDS = {
    "threshold": Goal.threshold,
    "n_init": None,
    "cap": CAP,
    "steps": None,
    "epochs": None,
    "learning_rate": None,
}
"""What a goal holds, with the value that says nothing."""


def used_by(method: str) -> set[str]:
    """The bounds that a method heeds."""
    traits = family.traits(method)
    used = {*traits["uses"]}
    used |= {"learning_rate"} if traits["trains"] else set()
    return used | ({"threshold"} if traits["threshold"] == "goal" else set())


def heeded(method: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options without those bounds that mean nothing to a method."""
    used = used_by(method)
    return {name: value for name, value in options.items() if name not in BOUNDS or name in used}


def check_used(method: str, target: Target, given: Mapping[str, Any]) -> None:
    """Refuse a bound that would be passed over in silence."""
    used = {"threshold", "steps", "learning_rate"} if target == "beta" else used_by(method)
    who = "target 'beta'" if target == "beta" else f"method {method!r}"
    for name, value in given.items():
        if name not in used and value != BOUNDS[name]:
            raise InputError(f"{name} means nothing to {who}; leave it out.")


def make_goal(
    threshold: float | int,
    n_init: int | None,
    cap: int,
    steps: int | None,
    epochs: int | None,
    learning_rate: float | None,
) -> Goal:
    """The goal with its arguments checked."""
    for name, value in (("n_init", n_init), ("cap", cap), ("steps", steps), ("epochs", epochs)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise InputError(f"{name} must be an integer from 1, got {value!r}.")
    if n_init is not None and n_init > cap:
        raise InputError(f"n_init must be at most cap, got {n_init} and {cap}.")
    if steps is not None and epochs is not None:
        raise InputError("steps and epochs both say how long to train; give one of them.")
    if steps is not None and steps < 400:
        raise InputError(f"steps must be at least 400, below which no trend can be seen, got {steps}.")
    rate = {} if learning_rate is None else {"learning_rate": float(learning_rate)}
    return Goal(float(threshold), n_init, cap, steps, epochs, **rate)


def merge(found: Sequence[Found], method: str, target: Target, goal: Goal, spent: int) -> Size:
    """One answer of several seeds: the median, and the range of all that each may be."""
    answered = [each for each in found if each.value is not None and each.interval is not None]
    several = f"lowest and highest of {len(found)} seeds, with what each may still become"
    traits = family.traits(method)
    alone = f"one seed: {traits['interval']}; other seeds are not in it"
    notes = [
        f"Seed {each.trials[0].seed}: {note}" if len(found) > 1 and each.trials else note
        for each in found
        for note in each.notes
    ]
    if len(answered) < len(found):
        notes.append(f"{len(found) - len(answered)} of {len(found)} seeds have no answer.")
    return Size(
        value=settle([each.value for each in answered]) if answered else None,  # type: ignore[misc]
        interval=(
            (min(each.interval[0] for each in answered), max(each.interval[1] for each in answered))  # type: ignore[index]
            if answered
            else None
        ),
        method=method,
        target=target,
        statistic=traits["statistic"],
        threshold=goal.threshold if traits["threshold"] == "goal" else traits["threshold"],
        per_seed=tuple(each.value for each in answered),  # type: ignore[misc]
        trials=tuple(trial for each in found for trial in each.trials),
        n_steps=spent,
        meaning_of_interval=several if len(found) > 1 else alone,
        notes=tuple(notes),
    )


def check_varies(data: AbstractDataset) -> None:
    """Refuse observations that are all the same: there is nothing to encode."""
    rows = data.values(np.linspace(0, len(data) - 1, min(1000, len(data)), dtype=np.int64))
    if (rows == rows[0]).all():
        raise InputError(f"data must vary, but the {len(rows)} observations looked at are all the same.")


def check_recipe(data: AbstractDataset, method: str, recipe: dict[str, Any]) -> None:
    """Refuse, before anything is trained, models whose posterior variances do not tell surplus latents."""
    if not family.traits(method)["trains"]:
        return
    job = plan(data, n_latents=1, steps=400, **recipe)
    if not job.blueprint.posterior.has_density:
        raise InputError(
            "sizing needs posterior variances, which a deterministic encoder does not have; use objective='vae' (the "
            "answer suits autoencoders as well)."
        )
    if job.settings.schedule != "constant":
        raise InputError(
            f"sizing trains a model on until it is decided, and schedule {job.settings.schedule!r} must know the end "
            "beforehand; leave schedule out."
        )
    if not isinstance(job.blueprint.prior, IsotropicPrior):
        raise InputError(
            "sizing measures posterior variances against the prior N(0, I), got another prior; leave prior out."
        )


def write_size(file: Path, size: Size, settings: dict[str, Any]) -> None:
    """Keep an answer beside its settings."""
    record = {"size": plain(size.to_dict()), "settings": settings}
    files.write_json(file, {**record, "hash": files.digest(record)})


def read_size(file: Path) -> Size:
    """Read what :func:`write_size` wrote, and check it."""
    record = files.read_json(file)
    if not isinstance(record, dict) or record.pop("hash", None) != files.digest(record):
        raise PolariscopeError(
            f"{file} does not match its hash: it was changed by hand or is damaged; size again."
        )
    return Size.from_dict(record["size"])


def _check(method: str, target: str, n_latents: int | None, seeds: Any, recipe: dict[str, Any]) -> None:
    family[method]
    if isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1:
        raise InputError(f"seeds must be an integer from 1, got {seeds!r}.")
    if target not in ("latents", "beta"):
        raise InputError(f"target must be 'latents' or 'beta', got {target!r}.")
    if target == "latents" and n_latents is not None:
        raise InputError("n_latents is what is sought; give it with target='beta' only.")
    if target == "beta":
        if (
            n_latents is None
            or isinstance(n_latents, bool)
            or not isinstance(n_latents, int)
            or n_latents < 1
        ):
            raise InputError(f"target='beta' needs n_latents, an integer from 1, got {n_latents!r}.")
        if method != "fondue":
            raise InputError(f"target='beta' is searched by method 'fondue' only, got {method!r}.")
        if "beta" in recipe:
            raise InputError("beta is what is sought; leave it out with target='beta'.")
        if recipe.setdefault("objective", "beta") != "beta":
            raise InputError(f"target='beta' needs objective='beta', got {recipe['objective']!r}.")


@contextmanager
def _place(out: str | Path | None) -> Iterator[Path]:
    """The folder of the candidates; without ``out`` one that is deleted afterwards."""
    if out is not None:
        yield Path(out)
        return
    with tempfile.TemporaryDirectory(prefix="polariscope-size-") as folder:
        yield Path(folder)


@contextmanager
def _listener(progress: Any) -> Iterator[Callable[[int, int, int, float], None] | None]:
    if progress is not True:
        yield progress or None
        return
    from rich.console import Console

    console = Console(stderr=True)
    with console.status("sizing …") as status:
        yield lambda seed, n, step, trace: status.update(
            f"seed {seed}: {n} latents, step {step:,}, Σ E[σ²] {trace:.2f}"
        )
