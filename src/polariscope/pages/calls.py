"""Python calls and commands on a page: those that repeat a run, and those that compute more results."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from typing import Any

from polariscope.training.planner import Pace
from polariscope.training.settings import TrainSettings


def source_call(data: Mapping[str, object]) -> str:
    """Return Python code that opens a recorded dataset again."""
    hidden = ("name", "fingerprint", "root_fingerprint", "shape")
    options = {key: value for key, value in data.items() if key not in hidden}
    # The data were arrays in memory, which only the user has.
    if "path" in data and data["path"] is None:
        options.pop("path")
        variants = options.pop("variants", None)
        arguments = "".join(f", {key}={value!r}" for key, value in options.items() if value is not None)
        made = f"ps.from_arrays(X{arguments})"
        made = made if variants is None else f"ps.apply_variants({made}, {variants!r})"
        return f"data = {made}  # the same arrays, with their factors"
    arguments = "".join(f", {key}={value!r}" for key, value in options.items())
    return f"data = ps.load_dataset({data['name']!r}{arguments})"


def repeat_call(settings: Mapping[str, Any], run: str) -> str:
    """Return Python code that repeats a run; training options at their defaults are omitted."""
    source = source_call(settings["data"])
    arguments: dict[str, Any] = {"objective": settings["objective"], **settings["model"]}
    # These are derived from the data, the prior and the objective, and are not arguments of train.
    for derived in ("shape", "n_auxiliary", "decodes", "normalises"):
        arguments.pop(derived, None)
    likelihood = arguments["likelihood"]
    # Runs of earlier versions were trained without a floor, which is not the default any more.
    if likelihood.get("learned") == "shared" and "floor" not in likelihood:
        arguments["likelihood"] = {**likelihood, "floor": None}
    # By default a table is rescaled, so one that was not has to be trained with this option.
    if len(settings["model"]["shape"]) == 1 and not _has_other_units(settings["data"]):
        arguments["keep_units"] = True
    defaults = {field.name: field.default for field in dataclasses.fields(TrainSettings)}
    # The defaults of rate, batch size and length depend on the data, so their values are always written.
    always = {"seed", *(field.name for field in dataclasses.fields(Pace))}
    # The objective of the run sets other defaults for these options.
    always |= {*settings.get("defaults_of_objective", ())}
    training = {**{key: defaults[key] for key in defaults if key in always}, **settings["training"]}
    arguments |= {
        key: value for key, value in training.items() if value != defaults.get(key) or key in always
    }
    arguments["out"] = run
    lines = [f"    {key}={_code(value)}," for key, value in arguments.items()]
    return "\n".join(["import polariscope as ps", "", source, "model = ps.train(", "    data,", *lines, ")"])


def _has_other_units(data: Mapping[str, Any]) -> bool:
    if "variants" not in data:
        return False
    from polariscope.data.chain import changes_of_units

    return bool(changes_of_units(data["variants"]))


def _code(value: Any) -> str:
    is_bare = isinstance(value, Mapping) and set(value) == {"name"}
    return repr(value["name"] if is_bare else value)


def commands(run: str) -> dict[str, str]:
    """Return the commands that compute the results of optional sections.

    >>> commands("my run")["score"]
    "polariscope score 'my run'"
    """
    name = shlex.quote(run)
    names = ("score", "compare", "course", "report", "check")
    return {command: f"polariscope {command} {name}" for command in names}
