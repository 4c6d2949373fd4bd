"""Contract of every metric."""

from __future__ import annotations

import functools
import inspect
import json
import math
import re
from typing import Any, Literal, get_args, get_origin

import numpy as np
import pytest

from polariscope.analysis.code_table import Table
from polariscope.analysis.metrics import INVARIANCES, Score, family
from polariscope.core.errors import InputError
from polariscope.core.options import options_of
from polariscope.testing.contract import AbstractContract, each

N = 240

SMALL = {"n_train": 400, "n_test": 300, "n_trees": 10, "sizes": (10, 100), "n_selection": 100}

"""Options that make the slower metrics fast; the contract does not depend on them."""


def variants(name: str) -> list[str]:
    annotation = options_of(family[name])["variant"].annotation
    assert get_origin(annotation) is Literal, f"the variants of {name} must be a Literal"
    return list(get_args(annotation))


def every_variant(contract: AbstractContract) -> list[tuple[str, str]]:
    """Return each metric under test with each of its variants."""
    return [(name, variant) for name in contract.names for variant in variants(name)]


def with_factors(contract: AbstractContract) -> list[str]:
    """Return the metrics that require factors."""
    return [name for name in contract.names if "factors" in family.traits(name)["needs"]]


def without_factors(contract: AbstractContract) -> list[str]:
    """Return the metrics that do not require factors."""
    return [name for name in contract.names if "factors" not in family.traits(name)["needs"]]


def of_codes(contract: AbstractContract) -> list[tuple[str, str]]:
    """Return the variants of metrics of a single model."""
    return [pair for pair in every_variant(contract) if "codes" in family.traits(pair[0])["needs"]]


def declared_invariances(contract: AbstractContract) -> list[tuple[str, str]]:
    """Return each metric with each change that it declares itself invariant to."""
    return [
        (name, change)
        for name in contract.names
        for change in INVARIANCES
        if change in family.traits(name)["invariant_to"]
    ]


@functools.cache
def factors() -> np.ndarray:
    return np.random.default_rng(0).integers([2, 3, 4], size=(N, 3))


@functools.cache
def codes(kind: str) -> np.ndarray:
    """Return multiples of 2⁻²⁰, so shifts and scales by powers of 2 are exact, without equal distances."""
    rng = np.random.default_rng(1)
    spread = rng.normal(size=(N, 4))
    if kind == "known":
        spread = np.hstack([factors() / factors().std(axis=0), np.zeros((N, 1))]) + 0.1 * spread
    elif kind == "mixed":
        spread = (
            np.hstack([factors() / factors().std(axis=0), np.zeros((N, 1))]) @ rng.normal(size=(4, 4))
            + spread
        )
    return np.round(spread * 2**20) / 2**20


def call(name: str, z: np.ndarray, w: Any = None, **options: Any) -> Score:
    """Call the metric with the arrays it requires; a metric of several models also gets the mixed codes."""
    signature = inspect.signature(family[name]).parameters
    needs = family.traits(name)["needs"]
    w = factors() if w is None else w
    options = {**{option: size for option, size in SMALL.items() if option in signature}, **options}
    variance = np.full(np.shape(z), 0.05)
    if needs == ("models",):
        return family[name](
            [z, codes("mixed")[: len(z)], codes("known")[: len(z)]], variance=[variance] * 3, **options
        )
    if "variance" in signature:
        options["variance"] = variance
    return family[name](*((z, w) if "factors" in needs else (z,)), **options)


@functools.cache
def score(name: str, variant: str, kind: str) -> Score:
    return call(name, codes(kind), variant=variant)


def default(name: str) -> str:
    return str(options_of(family[name])["variant"].default)


CHANGES = {
    "order": lambda z: z[:, [2, 0, 3, 1]],
    "shift": lambda z: z + np.array([4.0, -2.0, 8.0, 16.0]),
    "scale": lambda z: z * np.array([4.0, 0.5, 2.0, 16.0]),
    "sign": lambda z: z * np.array([-1.0, 1.0, -1.0, -1.0]),
    "monotone": lambda z: np.sinh(z),
    "rotation": lambda z: z @ np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0],
}


def broken(kind: str) -> tuple[Any, Any]:
    z, w = codes("known").copy(), factors().copy()
    if kind == "nan":
        z[3, 1] = math.nan
    elif kind == "short":
        return z, w[:-1]
    elif kind == "single":
        w[:, 1] = 2
    elif kind == "fraction":
        return z, w + 0.5
    elif kind == "many":
        w[:, 0] = np.arange(N)
    elif kind == "flat":
        return z[:, 0], w
    elif kind == "three axes":
        return z, w[:, :, None]
    elif kind == "one sample":
        return z[:1], w[:1]
    elif kind == "words":
        return z, w.astype(str)
    return z, w


BAD = {
    "nan": r"codes must be finite, got 1 NaN or infinite of 960 values",
    "short": r"a row for each sample, got 240 and 239 rows",
    "single": r"factor '1' has a single value in these 240 samples, so its entropy is 0; draw more samples or drop it",
    "fraction": r"factor '0' must contain integers \(classes\), got \d\.5; if it is measured, declare it in",
    "many": r"factor '0' has 240 classes in 240 samples; at least 2 samples per class",
    "flat": r"codes must have shape \(sample, latent\), got \(240,\)",
    "three axes": r"factors must have shape \(sample, factor\), got \(240, \d, 1\)",
    "one sample": r"codes must have at least 2 samples, got 1",
    "words": r"factors must be an array of real numbers",
}


class MetricContract(AbstractContract):
    """Contract of every metric."""

    def test_it_is_documented_with_its_equation_or_source(self, name: str) -> None:
        text = inspect.getdoc(family[name]) or ""
        assert re.search(r"\.\. math::|https?://", text)
        assert "Reference" in text
        assert ">>>" in text
        for variant in variants(name):
            assert len(variants(name)) == 1 or variant in text, f"variant {variant} is not explained"

    def test_it_declares_what_it_needs_and_its_options_have_defaults(self, name: str) -> None:
        traits, options = family.traits(name), options_of(family[name])
        assert traits["needs"] in (("codes",), ("codes", "factors"), ("models",))
        assert set(traits["invariant_to"]) <= set(INVARIANCES)
        assert traits["bounds"][0] < traits["bounds"][1]
        assert isinstance(traits["higher_is_better"], bool)
        assert set(traits["uses"]) <= {"variance", "types"}
        assert set(traits["posterior_variants"]) <= set(variants(name))
        assert not [option.name for option in options.values() if option.required]
        signature = inspect.signature(family[name]).parameters
        assert (signature["seed"].default, signature["seed"].annotation) == (0, int)
        assert not any(isinstance(parameter.annotation, str) for parameter in signature.values())
        positional = [p.name for p in signature.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        assert tuple(positional) == traits["needs"]
        described = ("factor_names", "factor_kinds") if "factors" in traits["needs"] else ()
        assert list(signature) == [*traits["needs"], *options, *traits["uses"], *described, "seed"]

    def test_the_attribute_and_the_name_give_one_callable_that_explains_every_argument(
        self, name: str
    ) -> None:
        metric = family[name]
        assert metric is getattr(family, name.replace("-", "_"))
        lines = re.findall(r"^:param (\w+): .+", inspect.getdoc(metric) or "", flags=re.MULTILINE)
        assert lines == list(inspect.signature(metric).parameters)

    def test_an_option_that_does_not_exist_is_refused_with_those_that_do(self, name: str) -> None:
        with pytest.raises(
            InputError, match=f"no option of metric '{name}' named 'varant'.*Did you mean 'variant'"
        ):
            call(name, codes("known"), varant="x")
        with pytest.raises(InputError, match="missing a required argument"):
            family[name]()

    @each("name, variant", every_variant)
    @pytest.mark.parametrize("kind", ["known", "noise"])
    def test_the_value_lies_in_its_bounds_and_in_its_interval(
        self, name: str, variant: str, kind: str
    ) -> None:
        result = score(name, variant, kind)
        low, high = result.bounds
        assert low - 1e-9 <= result.value <= high + 1e-9
        traits = family.traits(name)
        assert traits["bounds"][0] <= low
        assert high <= traits["bounds"][1]
        assert result.higher_is_better == traits["higher_is_better"]
        assert (result.metric, result.variant) == (name, variant)
        if result.interval is not None:
            assert result.interval[0] - 1e-9 <= result.value <= result.interval[1] + 1e-9
            assert low - 1e-9 <= result.interval[0]
            assert result.interval[1] <= high + 1e-9
        if result.chance is not None:
            assert low - 1e-9 <= result.chance <= high + 1e-9

    @each("name", with_factors)
    def test_codes_that_know_the_factors_score_better_than_noise_which_scores_near_chance(
        self, name: str
    ) -> None:
        known, noise = score(name, default(name), "known"), score(name, default(name), "noise")
        assert known.chance is not None
        assert noise.chance is not None
        sign = 1 if known.higher_is_better else -1
        assert sign * known.value > sign * noise.value
        assert sign * known.value > sign * known.chance
        assert abs(noise.value - noise.chance) < abs(known.value - noise.chance)

    def test_a_score_is_kept_as_json_and_repeats_with_its_seed(self, name: str) -> None:
        result = score(name, default(name), "mixed")
        text = json.dumps(result.to_dict(), allow_nan=False)
        assert json.loads(text)["metric"] == name
        assert (
            json.dumps(call(name, codes("mixed"), variant=default(name)).to_dict(), allow_nan=False) == text
        )
        assert name in str(result)

    @each("name, variant", of_codes)
    def test_shared_parts_do_not_change_the_score(self, name: str, variant: str) -> None:
        z = codes("mixed")
        table = Table(z, factors(), np.full(z.shape, 0.05))
        # Computed first, so the metric uses the shared parts.
        table.mi_table(), table.split(), table.resamples
        options = {option: size for option, size in SMALL.items() if option in options_of(family[name])}
        result = family[name].of(table, variant=variant, **options)
        assert result.to_dict() == score(name, variant, "mixed").to_dict()

    @each("name, change", declared_invariances)
    def test_what_it_declares_invariant_is(self, name: str, change: str) -> None:
        changed = call(name, CHANGES[change](codes("mixed")), variant=default(name))
        assert changed.value == pytest.approx(score(name, default(name), "mixed").value, abs=1e-9)

    @each("name", with_factors)
    def test_correlated_factors_and_missing_combinations_are_scored(self, name: str) -> None:
        w = factors()
        rows = w[:, 1] + w[:, 2] < 5
        result = call(name, codes("known")[rows], w[rows])
        assert math.isfinite(result.value)

    @each("name", with_factors)
    def test_factors_of_every_kind_are_scored(self, name: str) -> None:
        w = np.hstack([factors(), codes("mixed")[:, :1]])
        result = call(
            name, codes("known"), w, factor_kinds=("categorical", "ordinal", "cyclic", "continuous")
        )
        assert math.isfinite(result.value)
        assert result.bounds[0] <= result.value <= result.bounds[1]

    @pytest.mark.parametrize("kind", BAD)
    @each("name", with_factors)
    def test_bad_arrays_are_refused_with_the_reason(self, name: str, kind: str) -> None:
        z, w = broken(kind)
        with pytest.raises(InputError, match=BAD[kind]):
            call(name, z, w)

    @each("name", with_factors)
    def test_an_array_of_one_axis_is_one_factor(self, name: str) -> None:
        def outcome(w: np.ndarray) -> str | float:
            try:
                return float(call(name, codes("known"), w).value)
            except InputError as error:  # some metrics require several factors
                return str(error)

        column = factors()[:, 0]
        assert outcome(column) == outcome(column[:, None])

    @pytest.mark.parametrize("kind", ["nan", "flat", "one sample"])
    @each("name", without_factors)
    def test_bad_codes_are_refused_with_the_reason(self, name: str, kind: str) -> None:
        z, _ = broken(kind)
        with pytest.raises(InputError, match=BAD[kind].replace("codes", "codes.*")):
            call(name, z)
