"""Outputs without names are read by their values, and never guessed."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
import torch

import polariscope as ps
from polariscope.core.errors import InputError
from polariscope.models.adapters.support.outputs import (
    MIN_VALUES,
    N_ERRORS,
    UndecidedError,
    check_outputs,
    name_parts,
    read_posterior,
)

N, WIDTH = 400, 3
NOISE = torch.Generator().manual_seed(0)
X = torch.randn(N, 7, generator=NOISE)
MEAN = torch.randn(N, WIDTH, generator=NOISE)
LOG_VARIANCE = -2 + torch.randn(N, WIDTH, generator=NOISE)
Z = MEAN + torch.exp(LOG_VARIANCE / 2) * torch.randn(N, WIDTH, generator=NOISE)
SECONDS = {
    "log_variance": LOG_VARIANCE,
    "variance": torch.exp(LOG_VARIANCE),
    "std": torch.exp(LOG_VARIANCE / 2),
    "log_std": LOG_VARIANCE / 2,
}


@pytest.mark.parametrize("kind", SECONDS)
@pytest.mark.parametrize("order", [("z", "mean", "second"), ("mean", "second", "z")])
def test_the_residual_of_the_draw_shows_the_order_and_the_meaning_of_the_variance(kind, order):
    parts = [{"z": Z, "mean": MEAN, "second": SECONDS[kind]}[name] for name in order]
    reading = name_parts(parts, N, "log_variance", X)
    assert reading.roles == tuple(kind if name == "second" else name for name in order)
    assert "standardised residual" in reading.note
    posterior = read_posterior(tuple(parts), N, x=X).posterior
    torch.testing.assert_close(posterior.mean, MEAN)
    torch.testing.assert_close(posterior.log_variance, LOG_VARIANCE)


def test_a_draw_that_equals_the_mean_shows_the_mean():
    for parts in itertools.permutations([MEAN, MEAN.clone(), LOG_VARIANCE]):
        posterior = read_posterior(parts, N, x=X).posterior
        assert torch.equal(posterior.mean, MEAN)
        assert torch.equal(posterior.log_variance, LOG_VARIANCE)


@pytest.mark.parametrize("reconstruction", [X + 1, X[:, :, None].expand(-1, -1, 2).reshape(N, 14)])
def test_an_array_of_the_shape_of_observations_is_a_reconstruction(reconstruction):
    x = reconstruction - 1
    for parts, roles in (
        ((reconstruction, MEAN, LOG_VARIANCE), ("reconstruction", "mean", "log_variance")),
        ((reconstruction, x, MEAN, LOG_VARIANCE), ("reconstruction", "other", "mean", "log_variance")),
        ((reconstruction, Z, MEAN, LOG_VARIANCE), ("reconstruction", "z", "mean", "log_variance")),
        ((MEAN, LOG_VARIANCE, Z, reconstruction), ("mean", "log_variance", "z", "reconstruction")),
        ((torch.tensor(3.0), MEAN, LOG_VARIANCE), ("other", "mean", "log_variance")),
    ):
        assert name_parts(parts, N, "log_variance", x).roles == roles
    inner = read_posterior((reconstruction, (MEAN, LOG_VARIANCE)), N, x=x).posterior
    assert torch.equal(inner.mean, MEAN)


def test_a_flattened_reconstruction_is_recognised():
    images = X[:, :6].reshape(N, 1, 2, 3)
    assert (
        name_parts((X[:, :6] + 1, MEAN, LOG_VARIANCE), N, "log_variance", images).roles[0] == "reconstruction"
    )


def test_a_reconstruction_as_wide_as_the_codes_is_no_draw():
    """The published mistake: (reconstruction, mean, log_variance) was read as (mean, log_variance, draw)."""
    x = X[:, :WIDTH]
    parts = (x + 0.1 * MEAN, MEAN, LOG_VARIANCE)
    assert name_parts(parts, N, "log_variance", x).roles == ("reconstruction", "mean", "log_variance")
    for parts, roles in (
        ((Z, MEAN, LOG_VARIANCE), ("z", "mean", "log_variance")),
        ((MEAN, LOG_VARIANCE, Z), ("mean", "log_variance", "z")),
    ):
        assert name_parts(parts, N, "log_variance", x).roles == roles
    few = tuple(part[:20] for part in parts)
    with pytest.raises(UndecidedError, match=r"60 values are too few .* \(200 are needed\)"):
        name_parts(few, 20, "log_variance", x[:20])


def test_a_reconstruction_as_wide_as_the_codes_can_be_last():
    x = X[:, :WIDTH]
    near = x + 0.1 * MEAN
    assert name_parts((MEAN, LOG_VARIANCE, near), N, "log_variance", x).roles == (
        *("mean", "log_variance", "reconstruction"),
    )
    assert name_parts((near, Z, MEAN, LOG_VARIANCE), N, "log_variance", x).roles[0] == "reconstruction"
    assert name_parts((MEAN, LOG_VARIANCE, Z, near), N, "log_variance", x).roles[3] == "reconstruction"
    remedy = r"outputs=\('reconstruction', 'mean', 'log_variance'\)"
    # The mean is a copy of the observations with a little noise.
    with pytest.raises(UndecidedError, match=f"both the first and the last array are close.*{remedy}"):
        name_parts((x + 0.2 * MEAN, LOG_VARIANCE, near), N, "log_variance", x)
    with pytest.raises(UndecidedError, match=f"neither the first nor the last array is close.*{remedy}"):
        name_parts((MEAN, LOG_VARIANCE, 5 * near), N, "log_variance", x)
    # Only the reconstruction of a draw changes.
    parts, again = (x + 0.2 * MEAN, LOG_VARIANCE, near), (x + 0.2 * MEAN, LOG_VARIANCE, near + 0.1 * Z)
    assert name_parts(parts, N, "log_variance", x, again).roles[2] == "reconstruction"


def test_the_array_that_changes_is_the_draw():
    """The residual of (mean, z, variance) equals that of (z, mean, variance); a second call tells them apart."""
    noise = torch.Generator().manual_seed(3)
    other = MEAN + torch.exp(LOG_VARIANCE / 2) * torch.randn(N, WIDTH, generator=noise)
    for names in (
        ("mean", "z", "log_variance"),
        ("z", "mean", "log_variance"),
        ("mean", "log_variance", "z"),
    ):
        parts, again = (
            [{"z": draw, "mean": MEAN, "log_variance": LOG_VARIANCE}[name] for name in names]
            for draw in (Z, other)
        )
        assert name_parts(parts, N, "log_variance", X, again).roles == names

    def encoder(x):
        mean, log_variance = x[:, :3], -2 + x[:, 3:6]
        return mean, mean + torch.exp(log_variance / 2) * torch.randn_like(mean), log_variance

    rep = ps.encode(encoder, X.numpy(), n_samples=None)
    np.testing.assert_array_equal(rep.mean, X.numpy()[:, :3])
    assert any("read as (mean, z, log_variance)" in note for note in rep.notes)


def test_a_log_variance_that_is_positive_everywhere_is_refused():
    rows = X.numpy()
    positive = 1 + torch.exp(LOG_VARIANCE)

    def pair(x):
        return x[:, :3], torch.exp(x[:, 3:6])

    for encoder in (pair, lambda x: (x + 1, *pair(x))):
        roles = ("mean", "log_variance") if encoder is pair else ("reconstruction", "mean", "log_variance")
        remedy = rf"second='variance'\) or second='std', .*outputs={re.escape(repr(roles))}\)"
        with pytest.raises(InputError, match=f"positive everywhere, .*{remedy}"):
            ps.encode(encoder, rows)
    with pytest.raises(InputError, match=r"positive everywhere, .*as 'variance' or 'std', not as 'logvar'"):
        ps.encode(lambda x: dict(zip(("mu", "logvar"), pair(x), strict=True)), rows)
    np.testing.assert_allclose(
        ps.encode(pair, rows, n_samples=None, second="variance").variance, np.exp(rows[:, 3:6]), rtol=1e-5
    )
    # A declared log-variance is accepted, and so is that of a draw with the same variance.
    declared = ps.encode(pair, rows, n_samples=None, outputs=("mean", "log_variance"))
    np.testing.assert_allclose(declared.variance, np.exp(np.exp(rows[:, 3:6])), rtol=1e-5)
    draw = MEAN + torch.exp(positive / 2) * torch.randn(N, WIDTH, generator=torch.Generator().manual_seed(4))
    parts = (draw, MEAN, positive)
    reading = name_parts(parts, N, "log_variance", X)
    posterior = read_posterior(parts, N, reading=reading, x=X, is_first=True).posterior
    torch.testing.assert_close(posterior.log_variance, positive)


def test_two_means_that_differ_are_refused():
    named = {"mu": MEAN, "z_mean": MEAN.clone(), "logvar": LOG_VARIANCE}
    assert torch.equal(read_posterior(named, N).posterior.mean, MEAN)
    for other in (MEAN + 1, MEAN[:, :2]):
        with pytest.raises(InputError, match="the encoder returns mu, z_mean, which do not agree"):
            read_posterior({**named, "z_mean": other}, N)
    with pytest.raises(InputError, match="the encoder returns mu, z_mean, which do not agree"):
        read_posterior({"mu": MEAN, "z_mean": MEAN + 1}, N, is_point=True)


def test_none_several_and_too_few_are_refused_with_the_option():
    remedy = r"outputs=\('z', 'mean', 'log_variance'\)"
    with pytest.raises(UndecidedError, match=f"no reading of them .*{remedy}"):
        read_posterior((MEAN, LOG_VARIANCE, 7 * MEAN), N, x=X)
    # The posterior of a collapsed model: a log-variance of about 0 is also a log-SD, and a variance of 1 an SD.
    narrow = 0.02 * LOG_VARIANCE
    noise = torch.randn(N, WIDTH, generator=torch.Generator().manual_seed(1))
    draw = MEAN + torch.exp(narrow / 2) * noise
    with pytest.raises(UndecidedError, match=f"2 readings of them .*{remedy}"):
        read_posterior((MEAN, narrow, draw), N, x=X)
    rows = MIN_VALUES // WIDTH
    with pytest.raises(UndecidedError, match=f"{rows * WIDTH} values are too few .*{remedy}"):
        read_posterior((Z[:rows], MEAN[:rows], LOG_VARIANCE[:rows]), rows, x=X[:rows])
    assert read_posterior(
        (Z[: rows + 1], MEAN[: rows + 1], LOG_VARIANCE[: rows + 1]), rows + 1, x=X[: rows + 1]
    )


def test_the_limit_is_four_standard_errors():
    """Residuals with mean square 1 ± d are accepted if and only if d is at most 4 √(2/n)."""
    residual = torch.sign(torch.randn(N, WIDTH, generator=torch.Generator().manual_seed(2)))
    limit = N_ERRORS * (2 / (N * WIDTH)) ** 0.5
    for factor, accepted in ((0.99, True), (1.01, False)):
        draw = MEAN + torch.exp(LOG_VARIANCE / 2) * residual * (1 + factor * limit) ** 0.5
        if accepted:
            assert name_parts((draw, MEAN, LOG_VARIANCE), N, "log_variance", X).roles[0] == "z"
        else:
            with pytest.raises(UndecidedError):
                name_parts((draw, MEAN, LOG_VARIANCE), N, "log_variance", X)


def test_declared_outputs_are_used_and_wrong_ones_refused():
    rows = X.numpy()

    def encoder(x):
        mean = x[:, :3]
        return 7 * mean, mean, -1 - mean**2

    rep = ps.encode(encoder, rows, outputs=("z", "mean", "log_variance"))
    np.testing.assert_array_equal(rep.mean, rows[:, :3])
    np.testing.assert_allclose(rep.variance, np.exp(-1 - rows[:, :3] ** 2), rtol=1e-5)
    wrapped = ps.encode(ps.wrap(encoder, outputs=("other", "mean", "log_variance")), rows)
    np.testing.assert_array_equal(wrapped.variance, rep.variance)
    with pytest.raises(InputError, match="outputs must name each output of the encoder, got 2 names for 3"):
        ps.encode(encoder, rows, outputs=("mean", "log_variance"))
    with pytest.raises(InputError, match=r"no output of an encoder named 'sd'; there are .*log_std"):
        check_outputs(("mean", "sd"))
    for wrong in (("z", "log_variance"), ("mean", "std", "variance")):
        with pytest.raises(InputError, match="outputs must contain 'mean' once and at most one of"):
            check_outputs(wrong)
    with pytest.raises(InputError, match="outputs must be a tuple of names"):
        check_outputs("mean")


def test_the_reading_of_the_first_batch_is_kept_and_noted():
    rows = np.random.default_rng(0).normal(size=(1300, 6)).astype(np.float32)

    def encoder(x):
        mean, log_variance = x[:, :3], -2 + x[:, 3:]
        return mean + torch.exp(log_variance / 2) * torch.randn_like(mean), mean, log_variance

    # The last batch has too few values to decide.
    rep = ps.encode(encoder, rows[:1030], n_samples=None)
    np.testing.assert_array_equal(rep.mean, rows[:1030, :3])
    notes = [note for note in ps.diagnose(rep).notes if "read as (z, mean, log_variance)" in note]
    assert len(notes) == 1


def test_more_names_are_known():
    for names, second in (
        (("z_mean", "z_log_var"), LOG_VARIANCE),
        (("qz_m", "qz_v"), torch.exp(LOG_VARIANCE)),
        (("mu", "log_std"), LOG_VARIANCE / 2),
        (("loc", "log_sigma"), LOG_VARIANCE / 2),
    ):
        posterior = read_posterior(dict(zip(names, (MEAN, second), strict=True)), N).posterior
        torch.testing.assert_close(posterior.log_variance, LOG_VARIANCE)


def test_a_multivariate_normal_keeps_its_covariance_and_others_are_refused():
    factor = torch.tril(0.3 * torch.randn(N, WIDTH, WIDTH, generator=NOISE), -1) + torch.eye(WIDTH)
    normal = torch.distributions.MultivariateNormal(MEAN, scale_tril=factor)
    posterior = read_posterior(normal, N).posterior
    torch.testing.assert_close(posterior.covariance, normal.covariance_matrix)
    named = read_posterior({"qz": normal, "z": Z}, N).posterior
    torch.testing.assert_close(named.covariance, normal.covariance_matrix)
    torch.testing.assert_close(posterior.log_density(Z).sum(1), normal.log_prob(Z), rtol=1e-4, atol=1e-4)
    rep = ps.encode(
        lambda x: torch.distributions.MultivariateNormal(
            x[:, :2], scale_tril=torch.tensor([[1.0, 0.0], [0.5, 1.0]])
        ),
        X.numpy(),
    )
    np.testing.assert_allclose(rep.covariance[0], [[1, 0.5], [0.5, 1.25]], rtol=1e-6)
    for other in (
        torch.distributions.Laplace(MEAN, MEAN.exp()),
        torch.distributions.Independent(torch.distributions.Cauchy(MEAN, MEAN.exp()), 1),
    ):
        with pytest.raises(InputError, match=r"got a (Laplace|Cauchy) distribution; only normal posteriors"):
            read_posterior(other, N)


def test_one_array_is_a_code_only_if_this_is_declared():
    rows = X.numpy()
    with pytest.raises(
        InputError,
        match=r"got one array of shape \(400, 3\); use polariscope.wrap\(model, outputs=\('mean',\)\)",
    ):
        ps.encode(lambda x: x[:, :3], rows)
    rep = ps.encode(lambda x: x[:, :3], rows, outputs=("mean",))
    assert rep.rate is None
    assert rep.variance.max() == 0
    assert any("deterministic" in note for note in ps.diagnose(rep).notes)


def test_bad_outputs_are_refused_in_words():
    bad = MEAN.clone()
    bad[3, 1] = torch.nan
    with pytest.raises(InputError, match=r"returned a mean that is not finite \(1 of 1200 values\)"):
        read_posterior((bad, LOG_VARIANCE), N)
    with pytest.raises(InputError, match=r"two arrays of shape \(400, latent\).*got shapes \(399, 3\)"):
        read_posterior((MEAN[1:], LOG_VARIANCE[1:]), N)
    with pytest.raises(InputError, match="meta device, which contains no numbers; load its weights"):
        read_posterior((MEAN.to("meta"), LOG_VARIANCE.to("meta")), N)
    with pytest.raises(InputError, match="meta device"):
        read_posterior((Z.to("meta"), MEAN.to("meta"), LOG_VARIANCE.to("meta")), N)
    with pytest.raises(InputError, match="got 5 outputs, 5 of which could be codes"):
        read_posterior((MEAN, MEAN, MEAN, MEAN, MEAN), N)


class Fussy(torch.nn.Module):
    def forward(self, x):
        return torch.tensor("text", dtype=torch.float32)

    def __repr__(self):
        raise AssertionError("the repr of a foreign object is not needed")


@pytest.mark.parametrize(
    ("encoder", "words"),
    [
        (
            Fussy(),
            r"the encoder Fussy does not accept a batch of shape \(\d+, 7\) and type float32: TypeError: .*wrap",
        ),
        (
            lambda x: x["data"],
            r"(IndexError|TypeError|KeyError): .*it might take more than a batch of numbers",
        ),
        (torch.nn.Linear(5, 4), r"the encoder Linear does not accept .*an observation has shape 7 here"),
        (
            torch.nn.Linear(7, 4, device="meta"),
            r"(the encoder Linear|the encoder returned a tensor on the meta)",
        ),
    ],
)
def test_an_error_in_the_module_names_its_class_the_shape_and_the_remedy(encoder, words):
    with pytest.raises(InputError, match=words):
        ps.encode(encoder, X.numpy(), outputs=("mean",))


def test_an_error_with_another_cause_is_quoted_without_a_remedy():
    class Broken(torch.nn.Module):
        def encode(self, x):
            raise RuntimeError("boom")

    message = r"^the encoder Broken.encode raised RuntimeError: boom for a batch of shape \(400, 7\)\.$"
    with pytest.raises(InputError, match=message):
        ps.encode(Broken().encode, X.numpy())
