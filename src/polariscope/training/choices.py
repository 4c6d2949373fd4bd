"""Descriptions of the choices made for the user, so no decision is silent."""

from __future__ import annotations

from collections.abc import Mapping

from polariscope.core.errors import PYTHON, Spelling, Worded
from polariscope.core.option_values import show
from polariscope.core.options import to_record
from polariscope.models.model import Blueprint
from polariscope.models.nets import conv
from polariscope.models.nets import family as nets
from polariscope.models.posteriors import family as posteriors
from polariscope.models.priors import family as priors
from polariscope.training.likelihood import LikelihoodChoice

DEFAULTS = {"posterior": "diagonal", "prior": "isotropic"}
"""Default parts, which are mentioned only if an objective replaces them."""


def choices(
    requested: Mapping[str, object],
    blueprint: Blueprint,
    likelihood_options: Mapping[str, object],
    likelihood: LikelihoodChoice | None = None,
) -> tuple[str, ...]:
    """Describe the parts that the user did not select: the net, the likelihood and its variance.

    :param requested: net, posterior, prior and likelihood as the user passed them, "auto" for those left out
    :param blueprint: the resulting model
    :param likelihood_options: options of the likelihood that the user passed
    :param likelihood: (default None: selected by the user) the likelihood that was selected automatically, with the
        reason
    """
    names = {
        "net": nets.name_of(blueprint.net),
        "posterior": posteriors.name_of(blueprint.posterior),
        "prior": priors.name_of(blueprint.prior),
    }
    is_open = {kind: isinstance(choice, str) and choice == "auto" for kind, choice in requested.items()}
    described = []
    if is_open["net"]:
        small = len(blueprint.shape) == 3 and not conv.takes(blueprint.shape)
        why = f" (images below {conv.MIN_SIDE} pixels are too small for conv)" if small else ""
        described.append(f"net {names['net']}{_widths(blueprint)}{why}")
    described += [
        f"{kind} {names[kind]} (the objective's)"
        for kind, default in DEFAULTS.items()
        if is_open[kind] and names[kind] != default
    ]
    if not blueprint.decodes:
        return tuple(described)
    if likelihood is not None:
        described.append(Worded(likelihood.text))
    requested_likelihood = requested["likelihood"]
    # Options of the likelihood can be keyword arguments, or entries of the mapping that names it.
    option_names = set(likelihood_options)
    if isinstance(requested_likelihood, Mapping):
        option_names |= set(requested_likelihood)
    is_named = isinstance(requested_likelihood, str | Mapping)  # an object includes its options
    if (
        is_named
        and (scale := blueprint.likelihood.scale_in_words)
        and not option_names & {"variance", "dispersion", "learned"}
    ):
        described.append(scale)
    return tuple(described)


def training_choices(options: Mapping[str, object]) -> tuple[str, ...]:
    """Describe the options of the training that the objective sets.

    :param options: these options by name, without those that the user passed

    >>> training_choices({"optimiser": "adam", "learning_rate": 1e-3})
    ("optimiser adam, learning rate 0.001 (the objective's)",)
    """
    if not options:
        return ()
    listed = ", ".join(f"{name.replace('_', ' ')} {show(value)}" for name, value in options.items())
    return (f"{listed} (the objective's)",)


def split_choices(split: Mapping[str, str | int], *, by_column: bool) -> tuple[str, ...]:
    """Describe the split if the dataset determined it, and the validation samples if nothing is held out.

    :param split: the record of the split
    :param by_column: if True, the user selected the column that defines the split

    >>> split_choices({"by": "random", "held_out": False, "train": 20, "validation": 1, "test": 0}, by_column=False)
    ('trained on everything, validated on 1 of the 20 training samples',)
    """
    described = []
    if split["by"] in ("official", "groups") and not by_column:
        sizes = ", ".join(f"{split[name]:,} {name}" for name in ("train", "validation", "test"))
        kind = "official split" if split["by"] == "official" else "split that keeps groups together"
        described.append(f"{kind} ({sizes})")
    if not split["held_out"]:
        described.append(
            f"trained on everything, validated on {split['validation']:,} of the {split['train']:,} training samples"
        )
    return tuple(described)


def _widths(blueprint: Blueprint) -> str:
    """Describe the sizes of the hidden layers, if the net has such an option."""
    widths = to_record(blueprint.net, nets).get("encoder_widths")
    return f" with hidden layers of {' and '.join(map(str, widths))} units" if widths else ""


def announcement(choices: tuple[str, ...] | list[str], spelling: Spelling = PYTHON) -> str:
    """Return one line for the terminal; empty if there are no choices.

    :param choices: descriptions of the choices, in a few words each
    :param spelling: (default: that of Python) spelling of arguments

    >>> announcement(("net conv", "2 threads"))
    'Chosen for you: net conv; 2 threads.'
    """
    texts = (Worded.worded(each, spelling) for each in choices)
    return f"Chosen for you: {'; '.join(texts)}." if choices else ""
