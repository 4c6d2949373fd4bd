"""Variants by name, one after the other, over a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float

from polariscope.core.errors import Argument, InputError
from polariscope.core.option_values import show
from polariscope.core.options import check_options, options_of
from polariscope.data.data_like import DataLike
from polariscope.data.dataset import AbstractDataset
from polariscope.data.inputs import as_dataset
from polariscope.data.missing import Missing
from polariscope.data.rescaling import AbstractRescaling, Rescaling
from polariscope.data.streamed_statistics import merged
from polariscope.data.variants import AbstractVariant, family

Given: TypeAlias = "str | Mapping[str, object] | Sequence[str | Mapping[str, object]]"
"""One variant or several: a name, NAME:OPTION=VALUE,… or a mapping with a ``name`` and its options."""
SHORTHANDS = {"standardise": "standardised", "scale": "scaled"}
"""Arguments that stand for a variant."""
USUAL_UNITS = "centred"
"""The variant that puts a table into the units it is trained in, unless others are asked for."""


def apply_variants(
    data: DataLike,
    variants: Given = (),
    *,
    standardise: bool = False,
    scale: bool = False,
    missing: Missing = "refuse",
) -> AbstractDataset:
    """A dataset with variants over it, the first one innermost.

    :param data: a dataset, or an array of observations.
    :param variants: (default none) names, texts as ``"subset:n=50000,seed=1"``, or mappings as
        ``{"name": "subset", "n": 50_000}``; members of ``polariscope.variants``.
    :param standardise: (default False) also bring every feature of a table to mean 0 and standard deviation 1: the
        variant ``standardised``, after the others.
    :param scale: (default False) also bring every feature of a table to [0, 1]: the variant ``scaled``, after the
        others.
    :param missing: (default "refuse") what is done about missing values of an array, as in
        :func:`polariscope.from_arrays`.

    >>> from polariscope.data.rendered.sprites import SpritesDataset
    >>> data = apply_variants(SpritesDataset(), ["subset:n=100", {"name": "colour", "seed": 1}])
    >>> len(data), data.shape
    (100, (3, 64, 64))
    """
    made = as_dataset(data, missing)
    for each in _listed(variants):
        made = _apply(made, each)
    for name in shorthands(standardise=standardise, scale=scale):
        made = _apply(made, name)
    return made


def units_of_rows(
    rows: Float[np.ndarray, "sample feature"], *, standardise: bool, scale: bool, keep_units: bool = False
) -> Rescaling | None:
    """Return the units in which rows of a table are trained, measured in their own precision; None: their own.

    These are the units of :func:`apply_variants` and :func:`in_usual_units`. A dataset holds single precision, so rows
    with a large mean keep more digits if they are put into units before they become one.

    :param rows: observations of a table.
    :param standardise: whether each feature gets mean 0 and standard deviation 1.
    :param scale: whether each feature is brought to [0, 1].
    :param keep_units: (default False) whether the table stays as it is.
    """
    names = shorthands(standardise=standardise, scale=scale, keep_units=keep_units)
    if keep_units:
        return None
    # The variant needs a base for its shape only: a dataset of the rows would round them to single precision first.
    shape_only = as_dataset(np.zeros_like(rows[:1]))
    rescaled = _apply(shape_only, names[0] if names else USUAL_UNITS)
    assert isinstance(rescaled, AbstractRescaling)
    return rescaled.measured_on(merged([rows]))


def in_usual_units(data: AbstractDataset, *, keep_units: object = False) -> AbstractDataset:
    """The units in which data are trained: a table is centred and divided by the root of its mean feature variance.

    Images, tables of values in [0, 1] and data whose units were changed already stay as they are.

    :param data: the dataset, with the variants that were asked for.
    :param keep_units: (default False) leave a table as it is, too.
    """
    if not isinstance(keep_units, bool):
        raise InputError("keep_units", "be True or False", got=f"{keep_units!r}")
    if keep_units or len(data.shape) != 1 or data.is_unit_interval or _has_other_units(data):
        return data
    return _apply(data, USUAL_UNITS)


def _has_other_units(data: AbstractDataset) -> bool:
    return isinstance(data, AbstractVariant) and (data.is_change_of_units or _has_other_units(data.base))


def before_units_changed(data: AbstractDataset) -> AbstractDataset | None:
    """Return the dataset in the units of its owner, before the innermost change; None if units were not changed.

    :param data: a dataset, perhaps with variants.
    """
    if not isinstance(data, AbstractVariant):
        return None
    return before_units_changed(data.base) or (data.base if data.is_change_of_units else None)


def shorthands(*, standardise: object, scale: object, keep_units: object = False) -> list[str]:
    """The variants that the arguments stand for; only one of them may be given."""
    units = {"standardise": standardise, "scale": scale}
    for name, value in units.items():
        if not isinstance(value, bool):
            remedy = "put the part in front for the scale of a prior" if name == "scale" else None
            raise InputError(name, "be True or False", got=f"{value!r}", remedy=remedy)
    if standardise and scale:
        raise InputError(
            problem=(
                Argument("standardise"),
                " and ",
                Argument("scale"),
                " both say how to rescale features",
            ),
            remedy="give one of them",
        )
    names = [name for name, value in units.items() if value]
    if keep_units and names:
        raise InputError(
            problem=(Argument("keep_units"), " and ", Argument(names[0]), " contradict each other"),
            remedy="give one of them",
        )
    return [SHORTHANDS[name] for name in names]


def parse_variant(text: str) -> dict[str, Any]:
    """A variant as the command line writes it.

    >>> parse_variant("subset:n=50000,seed=1"), parse_variant("manipulated:attack")
    ({'name': 'subset', 'n': '50000', 'seed': '1'}, {'name': 'manipulated', 'folder': 'attack'})
    """
    name, _, rest = text.partition(":")
    record: dict[str, Any] = {"name": name.strip()}
    parts = rest.split(",") if rest.strip() else []
    bare = family.traits(name.strip()).get("bare") if parts else None
    if bare is not None and not _is_option(name, parts[0].partition("=")[0].strip()):
        record[bare] = parts.pop(0).strip()
    for part in parts:
        option, equals, value = part.partition("=")
        option = option.strip()
        if not equals or not option or option == "name":
            raise InputError(
                "variant", "be NAME or NAME:OPTION=VALUE, with commas between options", got=f"{text!r}"
            )
        # A factor may have hyphens in its name, an option has underscores.
        option = option if option in record or not _is_option(name, option) else option.replace("-", "_")
        if option in record:
            raise InputError("variant", f"give {option!r} once", got=f"{text!r}")
        record[option] = value.strip()
    return record


def _is_option(name: str, option: str) -> bool:
    return option.replace("-", "_") in options_of(family[name.strip()])


def _listed(variants: object) -> list[Any]:
    if isinstance(variants, str | Mapping):
        return [variants]
    if isinstance(variants, AbstractDataset) or not isinstance(variants, Sequence):
        raise InputError(
            "variants", "be names, or mappings with a 'name' and options, in a list", got=f"{variants!r}"
        )
    return list(variants)


def _apply(base: AbstractDataset, variant: object) -> AbstractVariant:
    """One variant by name."""
    if isinstance(variant, str):
        variant = parse_variant(variant)
    if not isinstance(variant, Mapping) or not isinstance(variant.get("name"), str):
        raise InputError("variants", "be names, or mappings with a 'name' and options", got=f"{variant!r}")
    name = variant["name"]
    concept = family[name]
    options = concept.read_options(base, {key: value for key, value in variant.items() if key != "name"})
    return concept(base, **check_options(f"variant {name!r}", concept, options))


def restore(record: Mapping[str, object], data: AbstractDataset) -> AbstractDataset:
    """Data that are given for a run or a model, as it was trained: with the variants that its record says they need.

    Data whose units were changed already, and those that are the recorded ones, stay as they are. A change of units
    is needed by all others, with the numbers measured in training. The other variants are applied only where the
    recorded data cannot be loaded again (arrays in memory) and these are the same arrays; to other data, put them
    yourself.

    :param record: what ``describe()`` of the training data returned.
    :param data: what is given now.
    """
    variants = variants_of(record)
    if not variants or _has_other_units(data) or data.fingerprint == record.get("fingerprint"):
        return data
    is_from_memory = "path" in record and record["path"] is None and not isinstance(data, AbstractVariant)
    if is_from_memory and data.fingerprint == record.get("root_fingerprint"):
        return apply_variants(data, variants)
    return in_units(data, changes_of_units(variants))


def variants_of(record: Mapping[str, object]) -> list[dict[str, object]]:
    """Records of the variants that a dataset's record has, the innermost first.

    :param record: what ``describe()`` returned.
    """
    records = record.get("variants", [])
    assert isinstance(records, list)
    return records


def changes_of_units(variants: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """Those of some records of variants that only change units.

    :param variants: records, the innermost first.
    """
    return [dict(each) for each in variants if family[str(each["name"])].is_change_of_units]


def in_units(data: AbstractDataset, units: Sequence[Mapping[str, object]]) -> AbstractDataset:
    """Data in the units that a model was trained in; data whose units were changed already stay as they are.

    :param data: what a model is shown.
    :param units: records of the variants that changed units in training.
    """
    return data if _has_other_units(data) else apply_variants(data, units)


def in_words(variants: Sequence[Mapping[str, object]]) -> str:
    """Records of variants in a few words.

    :param variants: records, the innermost first.

    >>> in_words([{"name": "subset", "n": 5, "seed": 0, "where": ["x=3"]}, {"name": "scaled", "low": [0.0] * 9}])
    'subset (n = 5, seed = 0, where = x=3), scaled (low = 9 numbers)'
    """
    return ", ".join(_one_in_words(each) for each in variants)


def _one_in_words(record: Mapping[str, object]) -> str:
    options = []
    for name, value in record.items():
        if name == "name" or value is None or value == []:
            continue
        shown = f"{len(value)} numbers" if isinstance(value, list) and len(value) > 3 else show(value)
        options.append(f"{name} = {shown}")
    return f"{record['name']} ({', '.join(options)})" if options else str(record["name"])
