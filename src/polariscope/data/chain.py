"""Variants applied to a dataset by name, one after the other."""

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

VariantsLike: TypeAlias = "str | Mapping[str, object] | Sequence[str | Mapping[str, object]]"
"""One variant or several: a name, NAME:OPTION=VALUE,… or a mapping with a ``name`` and its options."""
SHORTHANDS = {"standardise": "standardised", "scale": "scaled"}
"""Arguments that are short for a variant, and the name of that variant."""
DEFAULT_UNITS = "centred"
"""The variant that rescales a table for training if no other rescaling is requested."""


def apply_variants(
    data: DataLike,
    variants: VariantsLike = (),
    *,
    standardise: bool = False,
    scale: bool = False,
    missing: Missing = "refuse",
) -> AbstractDataset:
    """Apply variants to a dataset, in the given order.

    :param data: a dataset, or an array of observations.
    :param variants: (default none) names, strings such as ``"subset:n=50000,seed=1"``, or mappings such as
        ``{"name": "subset", "n": 50_000}``; members of ``polariscope.variants``.
    :param standardise: (default False) if True, also rescale every feature of a table to mean 0 and standard
        deviation 1, with the variant ``standardised``, after the others.
    :param scale: (default False) if True, also rescale every feature of a table to [0, 1], with the variant
        ``scaled``, after the others.
    :param missing: (default "refuse") treatment of missing values of an array, as in
        :func:`polariscope.from_arrays`.

    >>> from polariscope.data.rendered.sprites import SpritesDataset
    >>> data = apply_variants(SpritesDataset(), ["subset:n=100", {"name": "colour", "seed": 1}])
    >>> len(data), data.shape
    (100, (3, 64, 64))
    """
    dataset = as_dataset(data, missing)
    for each in _listed(variants):
        dataset = _apply(dataset, each)
    for name in shorthands(standardise=standardise, scale=scale):
        dataset = _apply(dataset, name)
    return dataset


def units_of_rows(
    rows: Float[np.ndarray, "sample feature"], *, standardise: bool, scale: bool, keep_units: bool = False
) -> Rescaling | None:
    """Return the units in which rows of a table are trained, measured in the rows' own precision.

    The result is None if the rows keep their units. Otherwise these are the units of :func:`apply_variants` and
    :func:`in_default_units`. A dataset stores single precision, so rows with a large mean keep more digits if they are
    rescaled before they become a dataset.

    :param rows: observations of a table.
    :param standardise: if True, each feature gets mean 0 and standard deviation 1.
    :param scale: if True, each feature is rescaled to [0, 1].
    :param keep_units: (default False) if True, the table is not rescaled.
    """
    names = shorthands(standardise=standardise, scale=scale, keep_units=keep_units)
    if keep_units:
        return None
    # The variant needs a base only for its shape. A dataset of the rows would round them to single precision first.
    shape_only = as_dataset(np.zeros_like(rows[:1]))
    rescaled = _apply(shape_only, names[0] if names else DEFAULT_UNITS)
    assert isinstance(rescaled, AbstractRescaling)
    return rescaled.measured_on(merged([rows]))


def in_default_units(data: AbstractDataset, *, keep_units: object = False) -> AbstractDataset:
    """Rescale a table for training: centre it and divide it by the root of its mean feature variance.

    Images, tables of values in [0, 1] and data that were already rescaled are returned unchanged.

    :param data: the dataset, with the requested variants.
    :param keep_units: (default False) if True, a table is returned unchanged as well.
    """
    if not isinstance(keep_units, bool):
        raise InputError("keep_units", "be True or False", got=f"{keep_units!r}")
    # Data in [0, 1] have a natural unit, which a Bernoulli likelihood requires.
    if keep_units or len(data.shape) != 1 or data.is_unit_interval or _has_other_units(data):
        return data
    return _apply(data, DEFAULT_UNITS)


def _has_other_units(data: AbstractDataset) -> bool:
    return isinstance(data, AbstractVariant) and (data.is_change_of_units or _has_other_units(data.base))


def before_units_changed(data: AbstractDataset) -> AbstractDataset | None:
    """Return the dataset in its original units, before the innermost rescaling; None if it was not rescaled.

    :param data: a dataset, possibly with variants.
    """
    if not isinstance(data, AbstractVariant):
        return None
    # The recursion comes first, so the innermost rescaling wins.
    return before_units_changed(data.base) or (data.base if data.is_change_of_units else None)


def shorthands(*, standardise: object, scale: object, keep_units: object = False) -> list[str]:
    """Return the variants that the arguments are short for; at most one argument can be True."""
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
                " both rescale features",
            ),
            remedy="pass one of them",
        )
    names = [name for name, value in units.items() if value]
    if keep_units and names:
        raise InputError(
            problem=(Argument("keep_units"), " and ", Argument(names[0]), " contradict each other"),
            remedy="pass one of them",
        )
    return [SHORTHANDS[name] for name in names]


def parse_variant(text: str) -> dict[str, Any]:
    """Parse a variant as it is written on the command line.

    >>> parse_variant("subset:n=50000,seed=1"), parse_variant("manipulated:attack")
    ({'name': 'subset', 'n': '50000', 'seed': '1'}, {'name': 'manipulated', 'folder': 'attack'})
    """
    name, _, rest = text.partition(":")
    record: dict[str, Any] = {"name": name.strip()}
    parts = rest.split(",") if rest.strip() else []
    # Only some variants have a main option whose name can be omitted.
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
        # Names of factors can contain hyphens; names of options contain underscores.
        option = option if option in record or not _is_option(name, option) else option.replace("-", "_")
        if option in record:
            raise InputError("variant", f"set {option!r} only once", got=f"{text!r}")
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
    """Apply one variant."""
    if isinstance(variant, str):
        variant = parse_variant(variant)
    if not isinstance(variant, Mapping) or not isinstance(variant.get("name"), str):
        raise InputError("variants", "be names, or mappings with a 'name' and options", got=f"{variant!r}")
    name = variant["name"]
    concept = family[name]
    options = concept.read_options(base, {key: value for key, value in variant.items() if key != "name"})
    return concept(base, **check_options(f"variant {name!r}", concept, options))


def restore(record: Mapping[str, object], data: AbstractDataset) -> AbstractDataset:
    """Return data as a run or model was trained on them, with the variants that its record requires.

    Data that were already rescaled, and the recorded data themselves, are returned unchanged. All other data are
    rescaled with the numbers that were measured in training. The remaining variants are applied only if the recorded
    data cannot be loaded again (arrays in memory) and ``data`` are the same arrays. The caller applies them to
    other data.

    :param record: the result of ``describe()`` of the training data.
    :param data: the data to prepare.
    """
    variants = variants_of(record)
    if not variants or _has_other_units(data) or data.fingerprint == record.get("fingerprint"):
        return data
    # Arrays in memory have the path None, and cannot be loaded again.
    is_from_memory = "path" in record and record["path"] is None and not isinstance(data, AbstractVariant)
    if is_from_memory and data.fingerprint == record.get("root_fingerprint"):
        return apply_variants(data, variants)
    return in_units(data, changes_of_units(variants))


def variants_of(record: Mapping[str, object]) -> list[dict[str, object]]:
    """Return the records of the variants of a dataset, the innermost first.

    :param record: the result of ``describe()``.
    """
    records = record.get("variants", [])
    assert isinstance(records, list)
    return records


def changes_of_units(variants: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """Return the records of those variants that only change units.

    :param variants: records, the innermost first.
    """
    return [dict(each) for each in variants if family[str(each["name"])].is_change_of_units]


def in_units(data: AbstractDataset, units: Sequence[Mapping[str, object]]) -> AbstractDataset:
    """Return data in the units that a model was trained in; data that were already rescaled are returned unchanged.

    :param data: input of the model.
    :param units: records of the variants that changed units in training.
    """
    return data if _has_other_units(data) else apply_variants(data, units)


def in_words(variants: Sequence[Mapping[str, object]]) -> str:
    """Describe variants in a few words.

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
