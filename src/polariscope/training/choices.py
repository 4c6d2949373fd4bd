"""What was chosen for the user, in words, so nothing is decided in silence."""

from __future__ import annotations

from collections.abc import Mapping

from polariscope.core.options import describe_concept
from polariscope.models.likelihoods import family as likelihoods
from polariscope.models.model import Blueprint
from polariscope.models.nets import family as nets
from polariscope.models.posteriors import family as posteriors
from polariscope.models.priors import family as priors

USUAL = {"posterior": "diagonal", "prior": "isotropic"}
"""Parts that are only worth a word where an objective brings another one."""


def choices(
    given: Mapping[str, object],
    blueprint: Blueprint,
    likelihood_options: Mapping[str, object],
    *,
    is_unit_interval: bool,
) -> tuple[str, ...]:
    """What nobody asked for by name: the net, the likelihood and its variance.

    :param given: net, posterior, prior and likelihood as the user gave them, "auto" where they did not
    :param blueprint: the model that came of it
    :param likelihood_options: options of the likelihood that the user gave
    :param is_unit_interval: whether every value of the data lies in [0, 1]
    """
    names = {
        "net": nets.name_of(blueprint.net),
        "posterior": posteriors.name_of(blueprint.posterior),
        "prior": priors.name_of(blueprint.prior),
    }
    is_open = {kind: isinstance(choice, str) and choice == "auto" for kind, choice in given.items()}
    found = []
    if is_open["net"]:
        found.append(f"net {names['net']}{_widths(blueprint)}")
    found += [
        f"{kind} {names[kind]} (the objective's)"
        for kind, usual in USUAL.items()
        if is_open[kind] and names[kind] != usual
    ]
    if not blueprint.decodes:
        return tuple(found)
    if is_open["likelihood"]:
        values = "values lie" if is_unit_interval else "values need not lie"
        found.append(f"likelihood {likelihoods.name_of(blueprint.likelihood)} ({values} in [0, 1])")
    own = given["likelihood"]
    asked = set(likelihood_options) | (set(own) if isinstance(own, Mapping) else set())
    is_named = isinstance(own, str | Mapping)  # an object brings its options along
    if is_named and (scale := blueprint.likelihood.scale_in_words) and not asked & {"variance", "learned"}:
        found.append(scale)
    return tuple(found)


def _widths(blueprint: Blueprint) -> str:
    """Sizes of the hidden layers, where the net has such an option."""
    widths = describe_concept(nets, blueprint.net).get("encoder_widths")
    return f" with hidden layers of {' and '.join(map(str, widths))} units" if widths else ""


def announcement(chosen: tuple[str, ...] | list[str]) -> str:
    """One line for the terminal; empty when nothing was chosen.

    >>> announcement(("net conv", "2 threads"))
    'Chosen for you: net conv; 2 threads.'
    """
    return f"Chosen for you: {'; '.join(chosen)}." if chosen else ""
