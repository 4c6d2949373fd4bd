"""Folder of a sizing search: the recipe of the models, a run for each model, and the answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from polariscope import storage as layout
from polariscope.core import files
from polariscope.core.errors import Call, InputError
from polariscope.core.paths import user_path
from polariscope.core.records import to_plain
from polariscope.core.types import Recordable
from polariscope.storage import documents
from polariscope.storage.folder import RunFolder, repair

logger = logging.getLogger("polariscope")
RECIPES = "recipes"
"""Entry of a result with the hash of the recipe of each seed."""


class SearchFolder:
    """Folder with the answer of one method, or with a subfolder for each of several methods."""

    def __init__(self, path: str | Path) -> None:
        self.path = user_path(path)
        self.page = self.path / layout.SIZE_PAGE
        self.picture = self.path / layout.SIZE_PICTURE
        self.curve_bands = self.path / layout.CURVE_BANDS
        self.curve_models = self.path / layout.CURVE_MODELS
        self.curve_picture = self.path / layout.CURVE_PICTURE

    @property
    def has_answer(self) -> bool:
        """True if the folder contains the answer of a method."""
        return (self.path / layout.SIZE).is_file()

    @property
    def has_curve(self) -> bool:
        """True if the folder contains curves over the number of latents."""
        return (self.path / layout.CURVE).is_file()

    @property
    def methods(self) -> list[Path]:
        """Folders of the methods of a comparison that have an answer."""
        if not (self.path / layout.SIZES).is_file():
            return []
        return [file.parent for file in sorted(self.path.glob(f"*/{layout.SIZE}"))]

    def write_answer(self, size: Recordable, settings: Recordable) -> None:
        """Write an answer and its settings."""
        documents.write_document(self.path / layout.SIZE, "size", size, self._about(settings))

    def read_answer(self) -> tuple[Any, dict[str, Any]]:
        """Read the answer and its settings, and check them."""
        if not self.has_answer:
            raise InputError(
                problem=f"{self.path} has no {layout.SIZE}",
                remedy=("make one with ", Call("size", "data", out=str(self.path))),
            )
        return self._read_own(layout.SIZE, "size")

    def write_answers(self, sizes: Sequence[object]) -> None:
        """Write the answers of several methods."""
        documents.write_document(self.path / layout.SIZES, "sizes", list(sizes))

    def write_curve(self, curve: Recordable, settings: Recordable, *, bands: str, models: str) -> None:
        """Write curves over the number of latents, their settings and tables of their numbers.

        :param curve: the curves as JSON values.
        :param settings: their settings.
        :param bands: table with a row for each number of latents, as comma-separated values.
        :param models: table with a row for each model, as comma-separated values.
        """
        documents.write_document(self.path / layout.CURVE, "curve", curve, self._about(settings))
        files.write_text(self.curve_bands, bands)
        files.write_text(self.curve_models, models)

    def read_curve(self) -> tuple[Any, dict[str, Any]]:
        """Read the curves and their settings, and check them."""
        if not self.has_curve:
            raise InputError(
                problem=f"{self.path} has no {layout.CURVE}",
                remedy="measure the curves first, with size_curve in Python or polariscope size-curve",
            )
        return self._read_own(layout.CURVE, "curve")

    def _about(self, settings: Recordable) -> dict[str, object]:
        """Return the origin of a result: its settings, and a hash of the recipe of each seed in this folder."""
        digests = {seed.path.name: seed.recipe_digest() for seed in self.seeds()}
        recipes = {name: digest for name, digest in digests.items() if digest is not None}
        return {"settings": to_plain(settings), RECIPES: recipes}

    def _read_own(self, name: str, kind: str) -> tuple[Any, dict[str, Any]]:
        """Read a result and its settings, and check that it was computed from the models in this folder.

        :param name: name of the file.
        :param kind: kind of the document.
        """
        document = documents.read_document(self.path / name, kind)
        # Answers of 0.2.0 have no hashes.
        recipes = document.about.get(RECIPES, {})
        if not isinstance(recipes, dict):
            raise documents.DamagedError(f"{self.path / name} is damaged: its {RECIPES} are not a table.")
        present = {seed.path.name: seed.recipe_digest() for seed in self.seeds()}
        for seed, digest in recipes.items():
            # An answer can be copied without models. A recipe that is damaged (None) is a finding of its own.
            if present and present.get(seed, "") not in (digest, None):
                raise documents.ForeignError(
                    f"{self.path / name} is the result of another search: its models of {seed} had other data or "
                    f"settings than those in {self.path}. Run the command of this search again, which reuses its "
                    "models and replaces the file."
                )
        return document.content, document.about["settings"]

    def table(self, ending: str) -> Path:
        """Return the path of a table of many searches.

        :param ending: suffix of the file: md, tex or csv.
        """
        return self.path / f"{layout.SIZE_TABLE}.{ending}"

    def write_tables(self, texts: Mapping[str, str]) -> list[Path]:
        """Write a table of many searches in several formats, and return the paths.

        :param texts: contents of the files by suffix: md, tex or csv.
        """
        for ending, text in texts.items():
            files.write_text(self.table(ending), text)
        return [self.table(ending) for ending in texts]

    def seeds(self) -> list[SeedFolder]:
        """Return the folders of the seeds that were begun."""
        return [SeedFolder(file.parent) for file in sorted(self.path.glob(f"seed-*/{layout.RECIPE}"))]

    def seed(self, number: int) -> SeedFolder:
        """Return the folder of one seed's models."""
        return SeedFolder(self.path / f"seed-{number}")


class SeedFolder:
    """Folder of the models that were trained with one seed, each a run."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def check_recipe(
        self, recipe: dict[str, object], is_same: Callable[[Mapping[str, Any]], bool] | None = None
    ) -> None:
        """Check that the models in the folder have the same data and recipe, because they are going to be reused.

        :param recipe: data and settings of the models.
        :param is_same: (default None: never) function that returns True if a stored recipe with a different text is
            equivalent.
        """
        file = self.path / layout.RECIPE
        recipe = to_plain(recipe)
        if not file.exists():
            documents.write_document(file, "recipe", recipe)
            return
        try:
            stored = documents.read_document(file, "recipe").content
        except documents.DamagedError as error:
            # Models of other settings are still refused, one by one, when they are resumed.
            logger.warning("%s It is written again from the present settings.", error)
            documents.write_document(file, "recipe", recipe)
            return
        if stored != recipe and (is_same is None or not is_same(stored)):
            raise InputError(
                problem=f"{self.path} contains models of other data or other settings",
                remedy="choose another folder, or use the same data and settings to resume the search",
            )

    def recipe_digest(self) -> str | None:
        """Return a hash of the data and settings of the models; None if their file is damaged."""
        try:
            return files.digest(documents.read_document(self.path / layout.RECIPE, "recipe").content)
        except documents.DamagedError:
            return None

    def model(self, name: str) -> RunFolder:
        """Return the run of one model."""
        return RunFolder(self.path / name)

    def models(self) -> list[RunFolder]:
        """Return the runs that were begun and trained from scratch, sorted by name."""
        return [run for run in self.all_models() if run.path.name.startswith("n-")]

    def all_models(self) -> list[RunFolder]:
        """Return all runs that were begun, also those that began with latents of a wider model, sorted by name."""
        settings = sorted(self.path.glob(f"*/{layout.SETTINGS}"))
        # Hidden folders are copies that are not complete.
        return [RunFolder(file.parent) for file in settings if not file.parent.name.startswith(".")]

    def repair(self) -> None:
        """Set aside the models with damaged files, so they are trained again; those in training are left alone."""
        for folder in sorted((*self.path.glob("n-*"), *self.path.glob("from-*"))):
            run = RunFolder(folder)
            if folder.is_dir() and not run.is_held:
                repair(run, checkpoints=True)

    def has_any(self, beginning: str) -> bool:
        """Return True if a run was begun whose name has this prefix.

        :param beginning: prefix of the name of its folder.
        """
        return any(self.path.glob(f"{beginning}*/{layout.SETTINGS}"))

    def points(self) -> dict[str, Any]:
        """Return the stored measurements of models of curves, by key."""
        file = self.path / layout.POINTS
        return documents.read_document(file, "points").content if file.exists() else {}

    def keep_point(self, key: str, point: Recordable) -> None:
        """Store the measurements of a model.

        :param key: description of the model and its measurement.
        :param point: measurements as JSON values.
        """
        documents.write_document(self.path / layout.POINTS, "points", {**self.points(), key: point})

    def memo(self, statistic: str) -> Path:
        """Return the path of the measured values of a statistic."""
        return self.path / f"{statistic}.json"
