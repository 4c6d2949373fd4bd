"""What was chosen for the user, in words, so nothing is decided in silence."""

from __future__ import annotations

from collections.abc import Mapping

from polariscope.core.errors import PYTHON, Spelling, Worded
from polariscope.core.option_values import show
from polariscope.core.options import describe_concept
from polariscope.models.model import Blueprint
from polariscope.models.nets import conv
from polariscope.models.nets import family as nets
from polariscope.models.posteriors import family as posteriors
from polariscope.models.priors import family as priors
from polariscope.training.likelihood import LikelihoodChoice

USUAL = {"posterior": "diagonal", "prior": "isotropic"}
"""Parts that are only worth a word where an objective brings another one."""


def choices(
    given: Mapping[str, object],
    blueprint: Blueprint,
    likelihood_options: Mapping[str, object],
    likelihood: LikelihoodChoice | None = None,
) -> tuple[str, ...]:
    """What nobody asked for by name: the net, the likelihood and its variance.

    :param given: net, posterior, prior and likelihood as the user gave them, "auto" where they did not
    :param blueprint: the model that came of it
    :param likelihood_options: options of the likelihood that the user gave
    :param likelihood: (default None: the user named one) the likelihood that was chosen, with its reason
    """
    names = {
        "net": nets.name_of(blueprint.net),
        "posterior": posteriors.name_of(blueprint.posterior),
        "prior": priors.name_of(blueprint.prior),
    }
    is_open = {kind: isinstance(choice, str) and choice == "auto" for kind, choice in given.items()}
    choices_made = []
    if is_open["net"]:
        small = len(blueprint.shape) == 3 and not conv.takes(blueprint.shape)
        why = f" (images below {conv.SMALLEST} pixels are too small for conv)" if small else ""
        choices_made.append(f"net {names['net']}{_widths(blueprint)}{why}")
    choices_made += [
        f"{kind} {names[kind]} (the objective's)"
        for kind, usual in USUAL.items()
        if is_open[kind] and names[kind] != usual
    ]
    if not blueprint.decodes:
        return tuple(choices_made)
    if likelihood is not None:
        choices_made.append(Worded(likelihood.text))
    own = given["likelihood"]
    asked = set(likelihood_options) | (set(own) if isinstance(own, Mapping) else set())
    is_named = isinstance(own, str | Mapping)  # an object brings its options along
    if (
        is_named
        and (scale := blueprint.likelihood.scale_in_words)
        and not asked & {"variance", "dispersion", "learned"}
    ):
        choices_made.append(scale)
    return tuple(choices_made)


def training_choices(brought: Mapping[str, object]) -> tuple[str, ...]:
    """Options of the training that the objective brought along.

    :param brought: these options by name, without those that the user gave

    >>> training_choices({"optimiser": "adam", "learning_rate": 1e-3})
    ("optimiser adam, learning rate 0.001 (the objective's)",)
    """
    if not brought:
        return ()
    listed = ", ".join(f"{name.replace('_', ' ')} {show(value)}" for name, value in brought.items())
    return (f"{listed} (the objective's)",)


def split_choices(split: Mapping[str, str | int], *, by_column: bool) -> tuple[str, ...]:
    """How the data are split, where the dataset decided it, and what validation is where nothing is held out.

    :param split: how they were split, as it is recorded
    :param by_column: whether the user named the column that says it

    >>> split_choices({"by": "random", "held_out": False, "train": 20, "validation": 1, "test": 0}, by_column=False)
    ('trained on everything, validated on 1 of the 20 training samples',)
    """
    choices_made = []
    if split["by"] in ("official", "groups") and not by_column:
        sizes = ", ".join(f"{split[name]:,} {name}" for name in ("train", "validation", "test"))
        what = "official split" if split["by"] == "official" else "split that keeps groups together"
        choices_made.append(f"{what} ({sizes})")
    if not split["held_out"]:
        choices_made.append(
            f"trained on everything, validated on {split['validation']:,} of the {split['train']:,} training samples"
        )
    return tuple(choices_made)


def _widths(blueprint: Blueprint) -> str:
    """Sizes of the hidden layers, where the net has such an option."""
    widths = describe_concept(nets, blueprint.net).get("encoder_widths")
    return f" with hidden layers of {' and '.join(map(str, widths))} units" if widths else ""


def announcement(chosen: tuple[str, ...] | list[str], spelling: Spelling = PYTHON) -> str:
    """One line for the terminal; empty when nothing was chosen.

    :param chosen: what was chosen, in a few words each
    :param spelling: (default: as in Python) how the reader writes arguments

    >>> announcement(("net conv", "2 threads"))
    'Chosen for you: net conv; 2 threads.'
    """
    texts = (Worded.worded(each, spelling) for each in chosen)
    return f"Chosen for you: {'; '.join(texts)}." if chosen else ""
