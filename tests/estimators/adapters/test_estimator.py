"""Fitted estimators, their folders, and pipelines."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import polariscope as ps
from polariscope.core.errors import InputError

RNG = np.random.default_rng(0)
ROWS = 5 + 3 * RNG.normal(size=(200, 2)) @ RNG.normal(size=(2, 6)) + 0.1 * RNG.normal(size=(200, 6))


@pytest.mark.parametrize("options", [{}, {"standardise": True}, {"scale": True}])
def test_all_latents_are_encoded_in_the_units_of_the_fit(options, tmp_path):
    vae = ps.VAE(n_latents=3, steps=60, variables="all", **options).fit(ROWS)
    rep = ps.encode(vae, ROWS, n_samples=None)
    assert rep.mean.shape == (200, 3)
    np.testing.assert_allclose(rep.mean, vae.transform(ROWS), atol=1e-4)
    np.testing.assert_allclose(ps.diagnose(vae, ROWS).trace, vae.regime_.trace, rtol=1e-5)
    assert ps.diagnose(vae, ROWS).training == vae.regime_.training
    vae.save(tmp_path / "vae")
    np.testing.assert_array_equal(ps.encode(tmp_path / "vae", ROWS, n_samples=None).mean, rep.mean)


def test_a_pipeline_that_ends_in_an_estimator_is_encoded(tmp_path):
    pipeline = make_pipeline(StandardScaler(), ps.VAE(n_latents=2, steps=60, variables="all")).fit(ROWS)
    data = ps.from_arrays(ROWS, (ROWS[:, :1] > 5).astype(int), factor_names=["large"])
    rep = ps.encode(pipeline, data, n_samples=None)
    np.testing.assert_allclose(rep.mean, pipeline.transform(ROWS), atol=1e-4)
    assert rep.factor_names == ("large",)
    assert ps.report(pipeline, ROWS, out=tmp_path / "page.html").is_file()


def test_unfitted_estimators_and_options_are_refused():
    with pytest.raises(InputError, match=r"model must be fitted, got a VAE that is not; call its fit"):
        ps.encode(ps.VAE(), ROWS)
    with pytest.raises(InputError, match="outputs is for functions and modules"):
        ps.encode(ps.VAE(n_latents=1, steps=5).fit(ROWS), ROWS, outputs=("mean",))
