"""The folder of a sizing search: what was searched with, a run for each model, and the answer."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from polariscope import storage as layout
from polariscope.core import files
from polariscope.core.errors import Call, InputError
from polariscope.core.records import to_plain
from polariscope.core.types import Recordable
from polariscope.storage import documents
from polariscope.storage.folder import RunFolder


class SearchFolder:
    """A folder with the answer of one method, or with a folder for each of several methods."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.page = self.path / layout.SIZE_PAGE
        self.picture = self.path / layout.SIZE_PICTURE
        self.curve_bands = self.path / layout.CURVE_BANDS
        self.curve_models = self.path / layout.CURVE_MODELS
        self.curve_picture = self.path / layout.CURVE_PICTURE

    @property
    def has_answer(self) -> bool:
        """Whether a method has answered here."""
        return (self.path / layout.SIZE).is_file()

    @property
    def has_curve(self) -> bool:
        """Whether curves over the number of latents were made here."""
        return (self.path / layout.CURVE).is_file()

    @property
    def methods(self) -> list[Path]:
        """Of a comparison, the folders of the methods that have answered."""
        if not (self.path / layout.SIZES).is_file():
            return []
        return [file.parent for file in sorted(self.path.glob(f"*/{layout.SIZE}"))]

    def write_answer(self, size: Recordable, settings: Recordable) -> None:
        """Keep an answer beside its settings."""
        documents.write_document(self.path / layout.SIZE, "size", size, {"settings": to_plain(settings)})

    def read_answer(self) -> tuple[Any, dict[str, Any]]:
        """The answer and its settings, checked."""
        if not self.has_answer:
            raise InputError(
                problem=f"{self.path} has no {layout.SIZE}",
                remedy=("make one with ", Call("size", "data", out=str(self.path))),
            )
        document = documents.read_document(self.path / layout.SIZE, "size")
        return document.content, document.about["settings"]

    def write_answers(self, sizes: Sequence[object]) -> None:
        """Keep the answers of several methods."""
        documents.write_document(self.path / layout.SIZES, "sizes", list(sizes))

    def read_answers(self) -> list[Any]:
        """The answers of several methods, checked."""
        return documents.read_document(self.path / layout.SIZES, "sizes").content

    def write_curve(self, curve: Recordable, settings: Recordable) -> None:
        """Keep curves over the number of latents beside their settings."""
        documents.write_document(self.path / layout.CURVE, "curve", curve, {"settings": to_plain(settings)})

    def read_curve(self) -> tuple[Any, dict[str, Any]]:
        """The curves and their settings, checked."""
        if not self.has_curve:
            raise InputError(
                problem=f"{self.path} has no {layout.CURVE}",
                remedy="make curves in it first",
            )
        document = documents.read_document(self.path / layout.CURVE, "curve")
        return document.content, document.about["settings"]

    def table(self, ending: str) -> Path:
        """Where a table of many searches is written.

        :param ending: of the file's name: md, tex or csv.
        """
        return self.path / f"{layout.SIZE_TABLE}.{ending}"

    def seeds(self) -> list[SeedFolder]:
        """The folders of the seeds that were begun."""
        return [SeedFolder(file.parent) for file in sorted(self.path.glob(f"seed-*/{layout.RECIPE}"))]

    def seed(self, number: int) -> SeedFolder:
        """The folder of one seed's models."""
        return SeedFolder(self.path / f"seed-{number}")


class SeedFolder:
    """The models that were trained with one seed, each a run."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def check_recipe(
        self, recipe: dict[str, object], is_same: Callable[[Mapping[str, Any]], bool] | None = None
    ) -> None:
        """Refuse a folder whose models are of other data or another recipe: their curves would be read as ours.

        :param recipe: data and settings of the models.
        :param is_same: (default None: never) tells whether a recipe that is written differently is the same one.
        """
        file = self.path / layout.RECIPE
        recipe = to_plain(recipe)
        if not file.exists():
            documents.write_document(file, "recipe", recipe)
            return
        stored = documents.read_document(file, "recipe").content
        if stored != recipe and (is_same is None or not is_same(stored)):
            raise InputError(
                problem=f"{self.path} holds models of other data or other settings",
                remedy="choose another folder, or give the same to go on with it",
            )

    def model(self, name: str) -> RunFolder:
        """The run of one model."""
        return RunFolder(self.path / name)

    def models(self) -> list[RunFolder]:
        """The runs that were begun, by name."""
        return [RunFolder(file.parent) for file in sorted(self.path.glob(f"n-*/{layout.SETTINGS}"))]

    def has_any(self, beginning: str) -> bool:
        """Whether a run was begun whose name begins so.

        :param beginning: of the name of its folder.
        """
        return any(self.path.glob(f"{beginning}*/{layout.SETTINGS}"))

    def points(self) -> dict[str, Any]:
        """What was measured of models for curves, by what it was measured of."""
        file = self.path / layout.POINTS
        return documents.read_document(file, "points").content if file.exists() else {}

    def keep_point(self, key: str, point: Recordable) -> None:
        """Keep what was measured of a model.

        :param key: what it was measured of.
        :param point: as JSON has it.
        """
        documents.write_document(self.path / layout.POINTS, "points", {**self.points(), key: point})

    def memo(self, statistic: str) -> Path:
        """Where measured values of a statistic are stored."""
        return self.path / f"{statistic}.json"


def copy_run(source: RunFolder, target: Path) -> None:
    """Begin a new run with the model, log and checkpoints of another; what was measured of it is not copied."""
    measured = {artefact.path.name for artefact in source.artefacts}
    with files.atomic_folder(target) as part:
        for entry in source.path.iterdir():
            if entry.name.startswith(".") or entry.name in measured or entry.name == layout.REPORT:
                continue
            if entry.is_dir():
                shutil.copytree(entry, part / entry.name, ignore=shutil.ignore_patterns(".*"))
            else:
                shutil.copy2(entry, part / entry.name)
