"""The design of a study: which runs, what is measured of them, and how much it may cost.

A TOML file has the fields of :class:`StudyDesign` as keys::

    objective = "beta"
    seeds = 3

    [data]
    name = "sprites"
    image_size = 32

    [settings]
    steps = 10_000

    [grid]
    beta = [1, 4, 16]

    [each.diagnose]
    [each.score]
    metrics = "mig,dci"
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_args

from annotated_types import Ge, Gt

from polariscope.core.errors import Argument, InputError, unknown
from polariscope.core.option_values import show
from polariscope.core.options import build, check_options, checked
from polariscope.core.records import to_plain
from polariscope.studies.analyses import family as analyses

Options: TypeAlias = Mapping[str, object]
"""Values by name."""
Entries: TypeAlias = str | Mapping[str, object] | Sequence[str | Mapping[str, object]]
"""One part or several: a name, or a table with a ``name`` and options."""
Design = TypeVar("Design", bound="StudyDesign")
Diverged = Literal["fail", "discard", "stop"]
PARTS = ("data", "objective")
"""Parts of a design that are given as tables."""
LONGEST_NAME = 120


@checked
@dataclasses.dataclass(frozen=True)
class Budget:
    """How much a study may cost."""

    max_hours: Annotated[float, Gt(0)] | None = None
    """Hours after which one call of ``run`` stops: runs save where they are, and the next call goes on."""
    max_runs: Annotated[int, Ge(1)] | None = None
    """Most runs of the design that are made, the first ones; the others wait."""
    timeout_per_run: Annotated[float, Gt(0)] | None = None
    """Seconds that one run may take, its analyses included; one that takes longer has failed."""


@dataclasses.dataclass(frozen=True)
class Point:
    """One run of a design, before it is checked: what it is trained on, and with which settings."""

    data: Options
    """Name and options of the dataset."""
    settings: Options
    """What :func:`polariscope.train` is given, the seed included."""
    axes: Options
    """All of it by name, as a table has it; options of the data begin with ``data.``."""

    @property
    def arguments(self) -> dict[str, Any]:
        """The settings as arguments by name."""
        return dict(self.settings)


@dataclasses.dataclass(frozen=True)
class StudyDesign:
    """Many runs: data × objectives × settings × seeds, and what is measured of them.

    What is given once is the same for all runs. ``grid`` makes every combination of its values, ``zipped`` takes values
    at the same position together, ``listed`` writes settings out one by one; all three are combined with each other,
    with every data, every objective and every seed.
    """

    data: Entries
    """Dataset: a name, a table with ``name`` and options, or a list of these. A table may have a ``grid`` of its own
    options."""
    objective: Entries = "vae"
    """Objective: a name, a table with ``name`` and options, or a list of these. A table may have a ``grid`` of its own
    options."""
    settings: Options = dataclasses.field(default_factory=dict)
    """What :func:`polariscope.train` takes by name, the same for all runs: ``net``, ``n_latents``, ``steps`` …"""
    grid: Options = dataclasses.field(default_factory=dict)
    """Lists of values by name; every combination is run. ``data.NAME`` is an option of the data."""
    zipped: Options | Sequence[Options] = ()
    """A table of lists of equal length, or several: values at the same position belong together."""
    listed: Sequence[Options] = ()
    """Tables of settings, one after the other."""
    seeds: int | Sequence[int] = 1
    """A number of seeds, from 0, or a list of them."""
    each: Options = dataclasses.field(default_factory=dict)
    """What is measured of each run, with options: encode, diagnose, decompose, score, geometry, dimension, prior-fit,
    sparsity, decoder-use, coordinates."""
    once: Options = dataclasses.field(default_factory=dict)
    """What is done once for each data and objective, with options: size."""
    over: Options = dataclasses.field(default_factory=dict)
    """What is measured over all runs that differ in the seed only, with options: udr, agreement, compare."""
    budget: Budget | Options = dataclasses.field(default_factory=Budget)
    """How much it may cost."""
    diverged: Diverged = "fail"
    """What happens to a run whose loss is no longer finite. fail: it counts as failed, and its row says why. discard:
    it is left out of the table, which says how many were. stop: no further run is started."""
    checkpoints: bool = False
    """Whether every checkpoint is stored and measured, not only the finished model."""
    device: str = "auto"
    """Where the models are trained."""
    threads: Annotated[int, Ge(1)] | None = None
    """Threads of each run; by default the cores are divided by the number of workers."""
    out: str = "study"
    """Folder of the study."""
    runs: str | None = None
    """Folder of the run folders; studies that have the same one share their runs. By default inside ``out``."""
    name: str = ""
    """What the study is called; by default the name of its folder."""

    def __post_init__(self) -> None:
        put = object.__setattr__
        for part in PARTS:
            put(self, part, tuple(_tables(part, getattr(self, part))))
            if not getattr(self, part):
                raise InputError(part, "name at least one")
        for name in ("settings", "grid", "each", "once", "over"):
            put(self, name, _table(name, getattr(self, name)))
        put(self, "grid", _lists("grid", self.grid))
        zipped = [self.zipped] if isinstance(self.zipped, Mapping) else _sequence("zipped", self.zipped)
        put(self, "zipped", tuple(_zip_table(_lists("zipped", table)) for table in zipped))
        put(self, "listed", tuple(_table("listed", table) for table in _sequence("listed", self.listed)))
        put(self, "seeds", _seeds(self.seeds))
        if not isinstance(self.budget, Budget):
            put(self, "budget", Budget(**check_options("budget", Budget, _table("budget", self.budget))))
        for scope in ("each", "once", "over"):
            options_by_name = {
                name.replace("_", "-"): options for name, options in getattr(self, scope).items()
            }
            put(
                self,
                scope,
                {name: _measurement(scope, name, options) for name, options in options_by_name.items()},
            )
        if self.diverged not in get_args(Diverged):
            raise unknown("way to deal with diverged runs", str(self.diverged), get_args(Diverged))
        if not isinstance(self.checkpoints, bool):
            raise InputError("checkpoints", "be true or false", got=f"{self.checkpoints!r}")
        if not isinstance(self.out, str | Path) or not str(self.out):
            raise InputError("out", "be a folder", got=f"{self.out!r}")
        if not isinstance(self.runs, str | Path | None) or self.runs == "":
            raise InputError("runs", "be a folder", got=f"{self.runs!r}")
        for name in ("name", "device"):
            if not isinstance(getattr(self, name), str):
                raise InputError(name, "be a word", got=f"{getattr(self, name)!r}")
        if self.threads is not None and (type(self.threads) is not int or self.threads < 1):
            raise InputError("threads", "be an integer, at least 1", got=f"{self.threads!r}")
        put(self, "out", str(self.out))
        put(self, "runs", str(Path(self.out) / "runs") if self.runs is None else str(self.runs))
        put(self, "name", self.name or Path(self.out).resolve().name)
        self._check_names()

    def _check_names(self) -> None:
        """Refuse a setting that is given in two parts."""
        seen: dict[str, str] = {}
        listed = {name: None for table in self.listed for name in table}
        parts = [
            ("settings", self.settings),
            ("grid", self.grid),
            *(("zipped", table) for table in self.zipped),
            ("listed", listed),
        ]
        for part, table in parts:
            for name in table:
                if name in ("seed", "seeds"):
                    raise InputError(
                        problem=f"{part} has {name!r}", remedy=("give ", Argument("seeds"), " instead")
                    )
                if name in PARTS:
                    raise InputError(
                        problem=f"{part} has {name!r}, which is no setting",
                        remedy=("give ", Argument(name), " instead"),
                    )
                if name in seen:
                    raise InputError(
                        problem=f"{name!r} is in {seen[name]} and in {part}", remedy="give it once"
                    )
                seen[name] = part

    @classmethod
    def load(cls: type[Design], path: str | Path) -> Design:
        """The study of a TOML file. ``out`` and ``runs`` are beside the file; by default ``out`` is named like it.

        :param path: the file, or the name of a study that comes with polariscope.
        """
        from polariscope.studies.shipped import find

        file = find(path)
        try:
            tables = tomllib.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError("study", "be a file that can be read", got=f"{file}: {error.strerror}") from None
        except ValueError as error:
            raise InputError("study", "be a TOML file", got=f"{file}: {error}") from None
        folder = file.parent if file == Path(path) else Path()
        tables = {"out": file.stem, **tables}
        for name in ("out", "runs"):
            if isinstance(tables.get(name), str):
                tables[name] = str(folder / tables[name])
        try:
            return cls.from_dict(tables)
        except InputError as error:
            raise InputError(problem=f"{file}: {error}") from None

    @classmethod
    def from_dict(cls: type[Design], tables: Options) -> Design:
        """The study that tables describe; keys that are none are refused.

        :param tables: values of the fields by name.
        """
        known = [field.name for field in dataclasses.fields(cls)]
        for key in tables:
            if key not in known:
                raise unknown("key of a study", key, known)
        if "data" not in tables:
            raise InputError("data", "be given", remedy="it says what the models are trained on")
        fields: dict[str, Any] = dict(tables)
        return cls(**fields)

    def to_dict(self) -> dict[str, Any]:
        """As JSON; :meth:`from_dict` makes an equal one of it."""
        record = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for scope in ("each", "once", "over"):
            record[scope] = {name: to_plain(analysis) for name, analysis in record[scope].items()}
        return to_plain(record)

    def analyses(self, scope: str) -> dict[str, Any]:
        """What is measured, by name, with its options.

        :param scope: "each", "once" or "over".
        """
        return dict(getattr(self, scope))

    @property
    def limits(self) -> Budget:
        """How much it may cost."""
        assert isinstance(self.budget, Budget)
        return self.budget

    def points(self) -> list[Point]:
        """Every run of the design, those of the same data one after the other."""
        grid, zipped, seeds = (self._resolved(name) for name in ("grid", "zipped", "seeds"))
        points = []
        for data, objective in itertools.product(self._parts("data"), self._parts("objective")):
            for listed, cell in itertools.product(self.listed or ({},), _cells(grid)):
                for rows in itertools.product(*(_rows(table) for table in zipped)):
                    combination = {
                        **listed,
                        **cell,
                        **{key: value for row in rows for key, value in row.items()},
                    }
                    points += [self._point(data, objective, combination, seed) for seed in seeds]
        return points

    def _resolved(self, name: str) -> Any:
        """A field in the one form that it has once the study is made, however it was given."""
        return getattr(self, name)

    def _parts(self, part: str) -> Iterator[dict[str, Any]]:
        for table in getattr(self, part):
            fixed = {key: value for key, value in table.items() if key != "grid"}
            for cell in _cells(_lists(f"{part}.grid", table.get("grid", {}))):
                if twice := set(fixed) & set(cell):
                    raise InputError(
                        problem=f"{part} {fixed['name']!r} has {min(twice)!r} twice", remedy="give it once"
                    )
                yield {**fixed, **cell}

    def _point(self, data: Options, objective: Options, combination: Options, seed: int) -> Point:
        data_options = {
            key.removeprefix("data."): value for key, value in combination.items() if key.startswith("data.")
        }
        rest = {key: value for key, value in combination.items() if not key.startswith("data.")}
        options = {key: value for key, value in objective.items() if key != "name"}
        settings = {**self.settings, **rest, "seed": seed}
        if self.checkpoints:
            settings["keep_checkpoints"] = "all"
        axes = {
            "data": data["name"],
            **{f"data.{key}": value for key, value in {**data, **data_options}.items() if key != "name"},
            "objective": objective["name"],
            **options,
            **settings,
        }
        return Point({**data, **data_options}, {**settings, "objective": dict(objective)}, axes)


def names_of(points: Sequence[Point]) -> list[str]:
    """A readable name for each run, of what varies: ``beta=4,seed=0``.

    :param points: the runs of one design.
    """
    varying = varying_axes(points)
    names = []
    for point in points:
        parts = [f"{key}={word(point.axes[key])}" for key in varying if key in point.axes]
        names.append(re.sub(r"[^\w.,=+-]", "_", ",".join(parts))[:LONGEST_NAME])
    counts = Counter(names)
    return [name if counts[name] == 1 else f"{name},{number}" for number, name in enumerate(names)]


def varying_axes(points: Sequence[Point]) -> list[str]:
    """Names of what is not the same in all runs, the seed always and last.

    :param points: the runs of one design.
    """
    keys = dict.fromkeys(key for point in points for key in point.axes if key != "seed")
    return [*(key for key in keys if len({repr(point.axes.get(key)) for point in points}) > 1), "seed"]


def word(value: object) -> str:
    """A value of a setting in a name or a table.

    >>> word({"name": "mlp", "activation": "tanh"}), word(["colour", "grey"]), word(4.0)
    ('mlp-tanh', 'colour+grey', '4')
    """
    if isinstance(value, Mapping):
        return "-".join([str(value.get("name", "")), *(show(v) for k, v in value.items() if k != "name")])
    if isinstance(value, (list, tuple)):
        return "+".join(map(word, value)) or "none"
    return show(value)


def _measurement(scope: str, name: str, options: Any) -> Any:
    """An analysis with its options; the scopes have analyses of their own."""
    members = [member for member in analyses if analyses.traits(member)["scope"] == scope]
    if name not in members:
        raise unknown(f"analysis in {scope!r}", name, members)
    if dataclasses.is_dataclass(options) and not isinstance(options, type):
        return build(analyses, options)
    return build(analyses, name, _table(f"{scope}.{name}", {} if options is True else options))


def _table(name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(name, "be a table", got=f"{value!r}")
    return {str(key).replace("-", "_"): item for key, item in value.items()}


def _sequence(name: str, value: object) -> Sequence[Any]:
    if isinstance(value, str | Mapping) or not isinstance(value, Sequence):
        raise InputError(name, "be a list", got=f"{value!r}")
    return value


def _tables(part: str, value: object) -> Iterator[dict[str, Any]]:
    for entry in [value] if isinstance(value, str | Mapping) else _sequence(part, value):
        table = {"name": entry} if isinstance(entry, str) else _table(part, entry)
        if not isinstance(table.get("name"), str):
            raise InputError(part, "be a name, or a table with a 'name'", got=f"{entry!r}")
        yield table


def _lists(name: str, value: object) -> dict[str, tuple[Any, ...]]:
    lists = {}
    for key, values in _table(name, value).items():
        if isinstance(values, str | Mapping) or not isinstance(values, Sequence) or not values:
            raise InputError(f"{name}: {key}", "be a list of values, at least one", got=f"{values!r}")
        if name != "zipped" and len({repr(entry) for entry in values}) < len(values):
            raise InputError(f"{name}: {key}", "have each value once", got=f"{values!r}")
        lists[key] = tuple(values)
    return lists


def _zip_table(table: dict[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    if len({len(values) for values in table.values()}) != 1:
        lengths = ", ".join(f"{key} {len(values)}" for key, values in table.items())
        raise InputError("lists in zipped", "have equal lengths", got=lengths or "none")
    return table


def _seeds(value: Any) -> tuple[int, ...]:
    candidates = range(value) if isinstance(value, int) and not isinstance(value, bool) else value
    seeds = tuple(candidates) if isinstance(candidates, Sequence) and not isinstance(candidates, str) else ()
    whole = all(isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0 for seed in seeds)
    if not seeds or not whole or len(set(seeds)) < len(seeds):
        raise InputError(
            "seeds", "be a number of seeds or a list of different integers from 0", got=f"{value!r}"
        )
    return seeds


def _cells(grid: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def _rows(table: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]
