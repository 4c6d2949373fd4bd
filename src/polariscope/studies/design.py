"""The design of a study: its runs, its analyses, and its budget.

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
import datetime
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_args

from annotated_types import Ge, Gt

from polariscope.core.errors import Argument, InputError, unknown
from polariscope.core.option_values import show
from polariscope.core.options import build, check_options, checked
from polariscope.core.parsing import read_toml
from polariscope.core.paths import user_path
from polariscope.core.records import to_plain
from polariscope.runs.given_run import GivenModel
from polariscope.studies.analyses import family as analyses

Options: TypeAlias = Mapping[str, object]
"""Values by name."""
Entries: TypeAlias = str | Mapping[str, object] | Sequence[str | Mapping[str, object]]
"""One or several entries: each is a name, or a table with a ``name`` and options."""
Design = TypeVar("Design", bound="StudyDesign")
Diverged = Literal["fail", "discard", "stop"]
PARTS = ("data", "objective")
"""Parts of a design that are written as tables."""
MAX_NAME_LENGTH = 120


@checked
@dataclasses.dataclass(frozen=True)
class Budget:
    """Limits on the cost of a study."""

    max_hours: Annotated[float, Gt(0)] | None = None
    """Hours after which a call of ``run`` stops; runs save a checkpoint, and the next call resumes them."""
    max_runs: Annotated[int, Ge(1)] | None = None
    """Maximum number of runs, counted from the first of the design; the others are not started."""
    max_planned: Annotated[int, Ge(1)] = 100_000
    """Maximum number of runs that a design can have; a larger design is refused before its runs are listed."""
    timeout_per_run: Annotated[float, Gt(0)] | None = None
    """Maximum number of seconds for one run and its analyses; a run that takes longer has failed."""


@dataclasses.dataclass(frozen=True)
class Point:
    """One run of a design before it is checked: its data and its settings."""

    data: Options
    """Name and options of the dataset."""
    settings: Options
    """Arguments of :func:`polariscope.train`, including the seed."""
    axes: Options
    """Data and settings together, by the names of table columns; options of the data begin with ``data.``."""

    @property
    def arguments(self) -> dict[str, Any]:
        """Settings as keyword arguments."""
        return dict(self.settings)


@dataclasses.dataclass(frozen=True)
class StudyDesign:
    """Many runs: data × objectives × settings × seeds, and the analyses of these runs.

    Single values are shared by all runs. ``grid`` makes every combination of its values, ``zipped`` combines values at
    the same position, and ``listed`` contains complete sets of settings. All three are combined with each other, with
    every dataset, every objective and every seed.
    """

    data: Entries = ()
    """Dataset: a name, a table with ``name`` and options, or a list of these. A table can have a ``grid`` of its own
    options."""
    objective: Entries | None = None
    """Objective: a name, a table with ``name`` and options, or a list of these. A table can have a ``grid`` of its own
    options. By default "vae", and no models are trained if the study has ``models``."""
    models: Sequence[Options | GivenModel] = ()
    """Models that were trained elsewhere, a list of tables: ``name``, and either ``path`` (a file or folder of a model,
    a run folder, or a file of codes) or ``import`` (``module:function``, a function that returns the model). Other
    entries are options of :func:`polariscope.wrap`. Every model encodes every dataset."""
    settings: Options = dataclasses.field(default_factory=dict)
    """Keyword arguments of :func:`polariscope.train` shared by all runs: ``net``, ``n_latents``, ``steps`` …"""
    grid: Options = dataclasses.field(default_factory=dict)
    """Lists of values by name; every combination is run. ``data.NAME`` is an option of the data."""
    zipped: Options | Sequence[Options] = ()
    """A table of lists of equal length, or several such tables; values at the same position are combined."""
    listed: Sequence[Options] = ()
    """List of tables; each contains one set of settings."""
    seeds: int | Sequence[int] = 1
    """Number of seeds, counted from 0, or a list of seeds."""
    each: Options = dataclasses.field(default_factory=dict)
    """Analyses of each run, with options: encode, diagnose, decompose, score, geometry, dimension, prior-fit, sparsity,
    decoder-use, coordinates."""
    once: Options = dataclasses.field(default_factory=dict)
    """Analyses that are done once for each dataset and objective, with options: size."""
    over: Options = dataclasses.field(default_factory=dict)
    """Analyses over all runs that differ only in the seed, with options: udr, agreement, compare."""
    budget: Budget | Options = dataclasses.field(default_factory=Budget)
    """Limits on the cost."""
    diverged: Diverged = "fail"
    """Treatment of runs whose loss is no longer finite. fail: the run counts as failed, and its row contains the
    reason. discard: the run is left out of the table, and a note counts such runs. stop: no further run is started."""
    checkpoints: bool = False
    """If True, every checkpoint is stored and analysed, not only the finished model."""
    device: str = "auto"
    """Device on which the models are trained."""
    threads: Annotated[int, Ge(1)] | None = None
    """Number of threads of each run; by default the cores are divided by the number of workers."""
    out: str = "study"
    """Folder of the study."""
    runs: str | None = None
    """Folder of the run folders; studies with the same folder share their runs. By default inside ``out``."""
    name: str = ""
    """Name of the study; by default the name of its folder."""

    def __post_init__(self) -> None:
        # The dataclass is frozen, so normalised values are set this way.
        put = object.__setattr__
        put(self, "models", given_models(_sequence("models", self.models)))
        if self.objective is None:
            put(self, "objective", () if self.models else "vae")
        for part in PARTS:
            put(self, part, tuple(_tables(part, getattr(self, part))))
        if not self.data and (self.objective or not self.models):
            raise InputError(
                "data", "name at least one", remedy="it is the dataset that models are trained on"
            )
        if not self.objective and not self.models:
            raise InputError("objective", "name at least one")
        for name in ("settings", "grid", "each", "once", "over"):
            put(self, name, _table(name, getattr(self, name)))
        put(self, "grid", _lists("grid", self.grid))
        zipped = [self.zipped] if isinstance(self.zipped, Mapping) else _sequence("zipped", self.zipped)
        put(self, "zipped", tuple(_zip_table(_lists("zipped", table)) for table in zipped))
        put(self, "listed", tuple(_table("listed", table) for table in _sequence("listed", self.listed)))
        if not isinstance(self.budget, Budget):
            put(self, "budget", Budget(**check_options("budget", Budget, _table("budget", self.budget))))
        # After the budget, which limits their number.
        put(self, "seeds", _seeds(self.seeds, self.limits.max_planned))
        self._check_count()
        for scope in ("each", "once", "over"):
            # _table has replaced hyphens in keys, but names of analyses contain them.
            options_by_name = {
                name.replace("_", "-"): options for name, options in getattr(self, scope).items()
            }
            put(
                self,
                scope,
                {name: _measurement(scope, name, options) for name, options in options_by_name.items()},
            )
        if self.diverged not in get_args(Diverged):
            raise unknown("treatment of diverged runs", str(self.diverged), get_args(Diverged))
        if not isinstance(self.checkpoints, bool):
            raise InputError("checkpoints", "be true or false", got=f"{self.checkpoints!r}")
        if not isinstance(self.out, str | Path) or not str(self.out):
            raise InputError("out", "be a folder", got=f"{self.out!r}")
        if not isinstance(self.runs, str | Path | None) or self.runs == "":
            raise InputError("runs", "be a folder", got=f"{self.runs!r}")
        for name in ("name", "device"):
            if not isinstance(getattr(self, name), str):
                raise InputError(name, "be a string", got=f"{getattr(self, name)!r}")
        if self.threads is not None and (type(self.threads) is not int or self.threads < 1):
            raise InputError("threads", "be an integer, at least 1", got=f"{self.threads!r}")
        put(self, "out", str(user_path(self.out, "out")))
        put(
            self,
            "runs",
            str(Path(self.out) / "runs") if self.runs is None else str(user_path(self.runs, "runs")),
        )
        put(self, "name", self.name or Path(self.out).resolve().name)
        self._check_names()

    def _check_count(self) -> None:
        """Refuse a design with too many runs; its combinations are counted, not listed."""
        counts = [
            len(self.listed) or 1,
            len(self._resolved("seeds")),
            *map(len, self._resolved("grid").values()),
        ]
        counts += [len(next(iter(table.values()))) for table in self._resolved("zipped")]
        for part in PARTS:
            tables = getattr(self, part)
            grids = [_lists(f"{part}.grid", table.get("grid", {})) for table in tables]
            # Each table of a part has its own grid, so their runs add up.
            counts.append(sum(math.prod(map(len, grid.values())) for grid in grids))
        if (
            n_runs := math.prod(counts) + len(self.models) * max(1, len(self.data))
        ) > self.limits.max_planned:
            raise InputError(
                problem=f"the design has {n_runs:,} runs, more than the limit of {self.limits.max_planned:,}",
                remedy="use fewer values or seeds, or raise the limit with max_planned in [budget]",
            )

    def _check_names(self) -> None:
        """Refuse a setting that occurs in two parts of the design."""
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
                        problem=f"{part} has {name!r}", remedy=("use ", Argument("seeds"), " instead")
                    )
                if name in PARTS:
                    raise InputError(
                        problem=f"{part} has {name!r}, which is not a setting",
                        remedy=("use ", Argument(name), " instead"),
                    )
                if name in seen:
                    raise InputError(
                        problem=f"{name!r} is in {seen[name]} and in {part}", remedy="set it once"
                    )
                seen[name] = part

    @classmethod
    def load(cls: type[Design], path: str | Path) -> Design:
        """Read a study from a TOML file.

        ``out``, ``runs`` and paths of models are relative to the folder of the file; by default ``out`` has its name.

        :param path: path of the file, or the name of a study that comes with polariscope.
        """
        from polariscope.studies.shipped import find

        file = find(path)
        try:
            tables = read_toml(file)
        except OSError as error:
            raise InputError(
                problem=f"the study file {file} cannot be read ({error.strerror})",
                remedy="check the path, or use a name from 'polariscope study list'",
            ) from None
        except InputError:  # it is a pipe, for example
            raise
        except ValueError as error:
            raise InputError("study", "be a TOML file", got=str(error).rstrip(".")) from None
        # A shipped study writes to the current folder, not into the package.
        folder = file.parent if file == user_path(path) else Path()
        tables = {"out": file.stem, **tables}
        for name in ("out", "runs"):
            if isinstance(tables.get(name), str):
                tables[name] = str(folder / user_path(tables[name], name))
        if isinstance(tables.get("models"), list):
            tables["models"] = [_beside(folder, entry) for entry in tables["models"]]
        try:
            return cls.from_dict(tables)
        except InputError as error:
            raise InputError(problem=f"{file}: {error}") from None

    @classmethod
    def from_dict(cls: type[Design], tables: Options) -> Design:
        """Build a study from its tables; unknown keys are refused.

        :param tables: values of the fields by name.
        """
        known = [field.name for field in dataclasses.fields(cls)]
        for key in tables:
            if key not in known:
                raise unknown("key of a study", key, known)
        fields: dict[str, Any] = dict(tables)
        return cls(**fields)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; :meth:`from_dict` builds an equal study from them."""
        record = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for scope in ("each", "once", "over"):
            record[scope] = {name: to_plain(analysis) for name, analysis in record[scope].items()}
        record["models"] = [table_of(model) for model in self.given()]
        return to_plain(record)

    def given(self) -> tuple[GivenModel, ...]:
        """Return the models that were trained elsewhere."""
        return self._resolved("models")

    def analyses(self, scope: str) -> dict[str, Any]:
        """Return the analyses of one scope, by name, with their options.

        :param scope: "each", "once" or "over".
        """
        return dict(getattr(self, scope))

    @property
    def limits(self) -> Budget:
        """Limits on the cost."""
        assert isinstance(self.budget, Budget)
        return self.budget

    def points(self) -> list[Point]:
        """Return every run of the design; runs with the same data follow each other."""
        grid, zipped, seeds = (self._resolved(name) for name in ("grid", "zipped", "seeds"))
        points = []
        for data, objective in itertools.product(self.parts("data"), self.parts("objective")):
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
        """Return a field in its normalised form; ``__post_init__`` has converted the other forms."""
        return getattr(self, name)

    def parts(self, part: str) -> Iterator[dict[str, Any]]:
        """Yield every entry of a part, with each combination of its own grid.

        :param part: "data" or "objective".
        """
        for table in getattr(self, part):
            fixed = {key: value for key, value in table.items() if key != "grid"}
            for cell in _cells(_lists(f"{part}.grid", table.get("grid", {}))):
                if twice := set(fixed) & set(cell):
                    raise InputError(
                        problem=f"{part} {fixed['name']!r} has {min(twice)!r} twice", remedy="set it once"
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


def given_models(tables: Sequence[Options | GivenModel]) -> tuple[GivenModel, ...]:
    """Return the models of a study that were trained elsewhere.

    :param tables: tables with ``name``, ``path`` or ``import``, and options.
    """
    models = []
    for entry in tables:
        if isinstance(entry, GivenModel):
            models.append(entry)
            continue
        table = _table("models", entry)
        name, path, imported = (table.pop(key, None) for key in ("name", "path", "import"))
        if (path is None) == (imported is None) or not isinstance(path or imported, str):
            raise InputError(
                "an entry of models",
                "have either path or import, a text",
                got=f"{', '.join(map(str, entry)) or 'an empty table'}",
            )
        if imported is not None and not re.fullmatch(r"[\w.]+:\w+", imported):
            raise InputError("import", "have the form module:function", got=f"{imported!r}")
        name = (Path(path).stem if path else imported) if name is None else name
        if not isinstance(name, str) or not name:
            raise InputError("name of a model", "be a text", got=f"{name!r}")
        models.append(GivenModel(name, path, imported, table))
    twice = [name for name, count in Counter(model.name for model in models).items() if count > 1]
    if twice:
        raise InputError(problem=f"two models are named {twice[0]!r}", remedy="use different names")
    return tuple(models)


def table_of(model: GivenModel) -> dict[str, Any]:
    """Return the entry of a study file that describes a model trained elsewhere.

    :param model: the model.
    """
    source = {"path": model.path} if model.path is not None else {"import": model.imported}
    return {"name": model.name, **source, **to_plain(model.options)}


def _beside(folder: Path, entry: Any) -> Any:
    """Return an entry of a study file whose path is relative to the folder of the file."""
    if not (isinstance(entry, Mapping) and isinstance(entry.get("path"), str)):
        return entry
    return {**entry, "path": str(folder / user_path(entry["path"], "path"))}


def names_of(points: Sequence[Point]) -> list[str]:
    """Return a readable name for each run, made of the settings that vary: ``beta=4,seed=0``.

    :param points: the runs of one design.
    """
    varying = varying_axes(points)
    names = []
    for point in points:
        parts = [f"{key}={word(point.axes[key])}" for key in varying if key in point.axes]
        # Names are also those of links on disk.
        names.append(re.sub(r"[^\w.,=+-]", "_", ",".join(parts))[:MAX_NAME_LENGTH])
    counts = Counter(names)
    return [name if counts[name] == 1 else f"{name},{number}" for number, name in enumerate(names)]


def varying_axes(points: Sequence[Point]) -> list[str]:
    """Return the names of the settings that differ between runs; the seed is always included, and last.

    :param points: the runs of one design.
    """
    keys = dict.fromkeys(key for point in points for key in point.axes if key != "seed")
    # repr, because values can be lists or tables, which are not hashable.
    return [*(key for key in keys if len({repr(point.axes.get(key)) for point in points}) > 1), "seed"]


def word(value: object) -> str:
    """Return the text for the value of a setting in a name or a table.

    >>> word({"name": "mlp", "activation": "tanh"}), word(["colour", "grey"]), word(4.0)
    ('mlp-tanh', 'colour+grey', '4')
    """
    if isinstance(value, Mapping):
        return "-".join([str(value.get("name", "")), *(show(v) for k, v in value.items() if k != "name")])
    if isinstance(value, (list, tuple)):
        return "+".join(map(word, value)) or "none"
    return show(value)


def _measurement(scope: str, name: str, options: Any) -> Any:
    """Return an analysis with its options; each scope has its own analyses."""
    members = [member for member in analyses if analyses.traits(member)["scope"] == scope]
    if name not in members:
        raise unknown(f"analysis in {scope!r}", name, members)
    # In Python an analysis can be passed as an object.
    if dataclasses.is_dataclass(options) and not isinstance(options, type):
        return build(analyses, options)
    # True is short for an empty table.
    return build(analyses, name, _table(f"{scope}.{name}", {} if options is True else options))


def _table(name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(name, "be a table", got=f"{value!r}")
    return {str(key).replace("-", "_"): _plain(item) for key, item in value.items()}


def _plain(value: Any) -> Any:
    """Return numbers of NumPy and PyTorch as Python numbers, because a design is stored as JSON."""
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, datetime.date | datetime.time):
        raise InputError(problem=f"a study has no dates or times, got {value}", remedy="write text in quotes")
    value = value.item() if getattr(value, "shape", None) == () else value
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(problem=f"a study has finite numbers only, got {value}", remedy="write a number")
    return value


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
        # Values in zipped can repeat, because only their combination has to differ.
        if name != "zipped" and len({repr(entry) for entry in values}) < len(values):
            raise InputError(f"{name}: {key}", "not repeat a value", got=f"{values!r}")
        lists[key] = tuple(values)
    return lists


def _zip_table(table: dict[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    if len({len(values) for values in table.values()}) != 1:
        lengths = ", ".join(f"{key} {len(values)}" for key, values in table.items())
        raise InputError("lists in zipped", "have equal lengths", got=lengths or "none")
    return table


def _seeds(value: Any, limit: int = Budget.max_planned) -> tuple[int, ...]:
    # Checked before the range is listed, which could exhaust memory.
    if type(value) is int and value > limit:
        raise InputError(
            "seeds",
            f"be at most {limit:,}",
            got=f"{value:,}",
            remedy="use fewer seeds, or raise the limit with max_planned in [budget]",
        )
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
