"""A representation says in a few lines what it holds."""

from __future__ import annotations

import numpy as np

from polariscope.analysis.representation import Representation


def test_a_representation_is_summed_up_in_a_few_lines() -> None:
    mean = np.zeros((1200, 2))
    rep = Representation(
        mean,
        np.full((1200, 2), [0.5, 1.5]),
        mean,
        factors=np.zeros((1200, 1)),
        factor_names=("<shape>",),
        factor_kinds=("cyclic",),
        notes=("Codes were flattened.",),
    )
    said = repr(rep)
    assert "1,200 samples, 2 latents, float64" in said
    assert "0.5 to 1.5, mean 1" in said
    assert "<shape> (cyclic)" in said
    assert "Codes were flattened." in said
    assert len(said) < 400
    assert "&lt;shape&gt; (cyclic)" in rep._repr_html_()
    assert "conditional" in repr(Representation(mean, mean + 1, mean, prior_mean=mean))
    assert "not known" in repr(Representation(mean, mean + 1, mean))
