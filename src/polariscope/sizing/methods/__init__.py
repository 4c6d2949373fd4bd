"""Methods of sizing: each trains models of some widths and derives an answer from them.

A method accesses models only through :class:`~polariscope.sizing.candidates.AbstractCandidates`. It can therefore be
tested against the closed form of the linear VAE without training, and used with any trainer.
"""

from __future__ import annotations

from polariscope.core.registry import open_family

method = family = open_family(
    __name__,
    "sizing method",
    traits=("statistic", "trains", "needs_variances", "threshold", "interval", "uses"),
)
"""The family, which is also the decorator of its members.

Traits: ``statistic`` is the quantity that the trials measure. ``trains`` is True if the method trains models.
``needs_variances`` is True if it compares posterior variances with those of the prior N(0, I), which not every model
has. ``threshold`` is "goal", a number that the method defines, or None. ``interval`` is the meaning of the interval of
one seed. ``uses`` lists the options of the goal that the method uses. Options of one method are keyword-only arguments
of its function.

Optional traits: ``needs_factors`` (the method requires data with known factors), ``finds_beta`` (it can search for the
largest β), ``with_trainer`` (the algorithm of :func:`~polariscope.sizing.own_trainer.fondue` with which it searches if
the caller trains the models) and ``rate``, the learning rate of its models. A method without ``with_trainer`` accepts
no trainer. ``rate`` is "sizing" for the goal's ``careful_rate``, which also suits a model of the size that it returns,
and "quick" for the goal's ``rate``. Without it, models use the published rate."""
