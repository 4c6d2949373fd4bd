"""Methods of sizing: each asks for models of some widths and derives an answer from them.

A method sees models through :class:`~polariscope.sizing.candidates.AbstractCandidates` only, so it can be tested
against the closed form of the linear VAE without training anything, and used with any trainer.
"""

from __future__ import annotations

from polariscope.core.registry import open_family

method = family = open_family(
    __name__,
    "sizing method",
    traits=("statistic", "trains", "needs_variances", "threshold", "interval", "uses"),
)
"""The family, which is also the decorator of its members.

Traits: ``statistic`` is what the trials measure. ``needs_variances``: the method compares posterior variances with
those of the prior N(0, I), which not every model has. ``threshold`` is "goal", a number of the method's own, or None.
``interval`` is the meaning of the interval of one seed. ``uses`` lists the options of the goal that the method uses.
Options of one method are keyword-only arguments of its function. Optional traits: ``needs_factors`` (for data with
known factors only), ``finds_beta`` (it can search the largest β) and ``rate``: "sizing" if its models learn at the
goal's ``careful_rate``, as a model of the size that it returns should, "quick" for the goal's ``rate``; without it they
learn at the published rate."""
