"""No decision outside a member's file depends on its name; other code uses its traits."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path

import polariscope as ps
from polariscope.core.registry import Family

PACKAGE = Path(ps.__file__).parent
FAMILIES: Mapping[str, Family] = {
    name: getattr(ps, name) for name in dir(ps) if isinstance(getattr(ps, name), Family)
}
OTHER_THINGS = {
    "beta": (
        "what a sizing search is for, latents or β",
        *("cli/size_search.py", "cli/sizes.py", "cli/train.py", "pages/sections/size.py", "pages/size.py"),
        *("sizing/checks.py", "sizing/merge.py", "sizing/result.py", "sizing/search.py"),
    ),
    "conditional": (
        "a kind of prior, which several members have",
        *("analysis/aggregate_posterior.py", "analysis/decomposition.py"),
        *("analysis/regime/notes.py", "analysis/regime/latent_types.py"),
    ),
    "diagonal": ("a form of covariance in the closed form of the linear VAE", "analysis/theory.py"),
    "full": (
        "a form of covariance, all of the latents, all of the samples",
        *("analysis/theory.py", "analysis/regime/latent_types.py", "pages/sections/scores.py"),
    ),
    "gaussian": (
        "the form of a prior, a variant of tc, and what the outputs of a decoder from elsewhere are",
        *("analysis/decomposition.py", "analysis/metrics/tc.py", "models/adapters/wrapped.py"),
    ),
    "cars": ("a folder of the original archive", "data/published/cars3d.py"),
    "grey": ("a layout of images", "estimators/units.py", "data/own/support/layout.py"),
    "linear": ("a path between two codes", "geometry/interpolation.py"),
    "local": (
        "a cluster of this machine, in the words of Ray and submitit",
        *("cli/study.py", "studies/workers/slurm.py"),
    ),
    "slurm": ("a value of --slurm", "cli/study.py"),
    "size": ("a kind of artefact", "runs/listing.py", "storage/inspection.py"),
    "subset": ("a chain of variants whose record is tested", "testing/variants.py"),
    "unique": ("a chain of variants whose record is tested", "testing/variants.py"),
    "standardised": ("a variant of the metric", "analysis/metrics/beta_vae.py"),
}
"""Words that are the name of a member and mean something else in these files; the reason comes first."""
EXCEPTIONS = {(place, word) for word, (_, *places) in OTHER_THINGS.items() for place in places}


def decisions(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of every string that is used in a comparison, a match or a look-up."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            sides = [node.value]
        else:
            continue
        for side in sides:
            parts = side.elts if isinstance(side, ast.Tuple | ast.List | ast.Set) else [side]
            for part in parts:
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield node.lineno, part.value


def tables(tree: ast.AST) -> Iterator[tuple[int, set[str]]]:
    """Yield line and keys of every dictionary with two or more keys that are all strings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict) and len(node.keys) > 1:
            keys = [key.value for key in node.keys if isinstance(key, ast.Constant)]
            if len(keys) == len(node.keys) and all(isinstance(key, str) for key in keys):
                yield node.lineno, {str(key) for key in keys}


@functools.cache
def found() -> list[tuple[str, str, int]]:
    names = {name for family in FAMILIES.values() for name in family}
    result = []
    for file in sorted(PACKAGE.rglob("*.py")):
        place = file.relative_to(PACKAGE).as_posix()
        tree = ast.parse(file.read_text(encoding="utf-8"))
        own = file.stem.replace("_", "-")
        result += [(place, word, line) for line, word in decisions(tree) if word in names - {own}]
        for line, keys in tables(tree):
            if any(keys <= set(family) for family in FAMILIES.values()):
                result += [(place, word, line) for word in sorted(keys - {own})]
    return result


def test_no_members_name_decides_outside_its_file() -> None:
    unexpected = [
        f"{place}:{line} {word!r}" for place, word, line in found() if (place, word) not in EXCEPTIONS
    ]
    assert unexpected == []


def test_every_exception_is_still_needed() -> None:
    assert {(place, word) for place, word, _ in found()} >= set(EXCEPTIONS)


def test_a_decision_by_name_would_be_found() -> None:
    code = "if method == 'fondue': pass\nx = name in ('mig', other)\nT = {'cka': 1, 'rsa': 2}\n"
    tree = ast.parse(code)
    assert [word for _, word in decisions(tree)] == ["fondue", "mig"]
    assert [keys for _, keys in tables(tree)] == [{"cka", "rsa"}]
