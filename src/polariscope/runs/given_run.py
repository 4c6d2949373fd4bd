"""Models and codes that no run of this package trained: their results are cached in a folder like those of a run."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polariscope.analysis.convergence import TrainingState
from polariscope.analysis.likelihood_fit import LikelihoodFit
from polariscope.analysis.representation import Representation
from polariscope.core import files
from polariscope.core.errors import Argument, InputError
from polariscope.core.paths import user_path
from polariscope.core.records import AbstractRecord
from polariscope.data.codes import ENDINGS, open_codes
from polariscope.data.observations import Observations
from polariscope.runs.results import CachedResults, NotCachedError
from polariscope.runs.run import Run, load_model
from polariscope.storage import is_run
from polariscope.storage.folder import RunFolder

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Int

    from polariscope.data.dataset import AbstractDataset
    from polariscope.data.splits import Split
    from polariscope.models.protocol import AbstractModel

BY_SAMPLE = ("mean", "variance", "sampled", "factors", "ids", "indices", "rate", "covariance")
"""Arrays of a representation whose first axis is always the sample."""


@dataclasses.dataclass(frozen=True)
class GivenModel(AbstractRecord):
    """A model or a file of codes: a path, or the name of a function that returns a model."""

    name: str
    """Name in tables."""
    path: str | None = None
    """A file or folder of a model, a run folder, or a file of codes."""
    imported: str | None = None
    """Module and function that returns the model, ``module:function``; it is imported only if the user allows it."""
    options: Mapping[str, object] = dataclasses.field(default_factory=dict)
    """Options of :func:`polariscope.wrap`, such as ``likelihood``."""

    @property
    def has_codes(self) -> bool:
        """True for a file of codes, which requires no data."""
        return self.path is not None and Path(self.path).suffix in ENDINGS

    def digest(self) -> str:
        """Return a hash of the contents of the file or folder, or of the name of the function, and of the options."""
        if self.path is None:
            return files.digest(["import", self.imported, dict(self.options)])
        path = user_path(self.path, "path")
        if path.is_dir():
            # Results that a run folder caches later are not part of the model.
            members = [load_model(path).digest] if is_run(path) else _digest_folder(path)
        elif path.is_file():
            members = [files.digest_file(path)]
        else:
            raise InputError(problem=f"model {self.name!r}: there is no file or folder {path}")
        return files.digest([*members, dict(self.options)])


def _digest_folder(path: Path) -> list[Any]:
    """Return names and hashes of all files in a folder."""
    return [
        [str(file.relative_to(path)), files.digest_file(file)]
        for file in sorted(path.rglob("*"))
        if file.is_file()
    ]


class GivenRun(Run):
    """Results of a model or of codes that no run trained; the methods are those of a run.

    There is no training: the log is empty, the state of the training is unknown, and the only part of the data is
    "all". The folder records the hash of the model and of the data, so cached results are read without opening either.

    :param folder: folder of the results.
    :param source: the model or the file of codes.
    :param data: (default None: only cached results are read) the data that the model encodes.
    :param guard: (default None) function called before every write.
    :param read_only: (default False) if True, missing results are not computed.
    :param allow_import: (default False) if True, a function can be imported by its name.
    """

    def __init__(
        self,
        folder: str | Path,
        source: GivenModel,
        data: AbstractDataset | None = None,
        *,
        guard: files.Guard | None = None,
        read_only: bool = False,
        allow_import: bool = False,
    ) -> None:
        # The constructor of a run reads the settings of a training.
        self.folder = RunFolder(folder, guard)
        self.source, self.allow_import = source, allow_import
        self.settings = {}
        self.other_data = self._data = data
        self._opened: AbstractModel | Representation | None = None
        self.results = CachedResults(self, read_only)
        if not read_only:
            self.folder.path.mkdir(parents=True, exist_ok=True)
            self.folder.remove_leftovers()
            self.folder.keep_given(self._facts())
        self.facts = self._recorded()

    def _facts(self) -> dict[str, Any]:
        """Return the hashes of the model and of the data, and the number of observations."""
        digest = self.source.digest()
        if self.source.has_codes:
            return {"model": digest, "data": digest, "n_observations": self._codes().n_samples}
        if self._data is None:
            raise InputError(
                "data", f"be given for the model {self.source.name!r}, which is not a file of codes"
            )
        return {"model": digest, "data": self._data.fingerprint, "n_observations": len(self._data)}

    def _recorded(self) -> dict[str, Any]:
        facts = self.folder.given()
        if facts is None:
            raise NotCachedError(f"{self.path} has no results of the model {self.source.name!r} yet.")
        return facts

    # Data and model.

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def fingerprint(self) -> str:
        return str(self.facts["data"])

    @property
    def n_observations(self) -> int:
        return int(self.facts["n_observations"])

    @property
    def has_its_own_data(self) -> bool:
        return False

    def data(self) -> AbstractDataset:
        self._open()
        if self._data is None:
            raise InputError(problem=f"{self.source.name!r} is a file of codes, which has no observations")
        return self._data

    def split(self) -> Split:
        raise InputError(
            problem=f"the model {self.source.name!r} was not trained by a run, so its data have no split",
            remedy=("use ", Argument("part", "all")),
        )

    def digest_and_step(self, step: int | None) -> tuple[str, int]:
        self._refuse_step(step)
        return str(self.facts["model"]), 0

    def measured_model(self, step: int | None) -> Any:
        self._refuse_step(step)
        opened = self._open()
        if isinstance(opened, Representation):
            raise InputError(
                problem=f"{self.source.name!r} is a file of codes, and this analysis requires a model",
                remedy="leave the analysis out, or pass the model",
            )
        return opened

    def _refuse_step(self, step: int | None) -> None:
        if step is not None:
            raise InputError(problem=f"the model {self.source.name!r} has no checkpoints", got=f"step {step}")

    def _open(self) -> AbstractModel | Representation:
        """Open the model or the codes once; the data are put into the units of the model."""
        if self._opened is None:
            if self.source.has_codes:
                self._opened = self._codes()
            else:
                self._opened = self._open_model()
        return self._opened

    def _codes(self) -> Representation:
        assert self.source.path is not None
        return open_codes(self.source.path)

    def _open_model(self) -> AbstractModel:
        from polariscope.models.open_model import open_model

        thing: Any = self._imported() if self.source.path is None else user_path(self.source.path)
        if isinstance(thing, Path) and is_run(thing):
            thing = load_model(thing)
        model, self._data = open_model(thing, self._data, **self.source.options)
        return model

    def _imported(self) -> object:
        """Import the function of a study file by its name and call it, if the user allows it."""
        imported = str(self.source.imported)
        if not self.allow_import:
            raise InputError(
                problem=f"the model {self.source.name!r} runs the code of {imported!r}",
                remedy=("if you trust it, allow it with ", Argument("allow_import", True)),
            )
        module, _, function = imported.partition(":")
        try:
            make = getattr(importlib.import_module(module), function)
        except (ImportError, AttributeError) as error:
            raise InputError(
                problem=f"the model {self.source.name!r} cannot be imported from {imported!r} ({error})",
                remedy="write module:function, with a module that Python finds",
            ) from None
        return make()

    # Results.

    def _representation(self, observations: Observations) -> Representation:
        key = self.results.key("representation", observations, {})
        fit_key = self.results.key("likelihood-fit", observations, {})
        self.used.add(self.folder.artefacts.file(key, ".safetensors"))
        representation = self.folder.artefacts.read_arrays(key, Representation.from_arrays)
        is_new = representation is None
        if representation is None:
            self.results.check_may_compute(key)
            representation = self._encode(observations)
            with self.results.writing("representation"):
                self.folder.artefacts.keep_arrays(key, *representation.to_arrays())
        # The arrays do not include the fit of the likelihood.
        fit = self.results.read_or_compute(
            fit_key, LikelihoodFit, lambda: (representation if is_new else self._encode(observations)).fit
        )
        return dataclasses.replace(representation, fit=fit)

    def _encode(self, observations: Observations) -> Representation:
        from polariscope.runs.encode import encode

        opened = self._open()
        if isinstance(opened, Representation):
            return take_rows(opened, self.choose(observations))
        return encode(opened, self.data(), observations.n_samples, observations.seed, part=observations.part)

    # There is no training.

    @property
    def steps(self) -> list[int]:
        return []

    @property
    def is_finished(self) -> bool:
        return True

    def log(self) -> list[dict[str, Any]]:
        return []

    def log_until(self, step: int | None = None) -> list[dict[str, Any]]:
        return []

    def training(self, step: int | None = None) -> TrainingState:
        return TrainingState()


def take_rows(representation: Representation, rows: Int[np.ndarray, " sample"]) -> Representation:
    """Return the codes of some samples.

    :param representation: the codes.
    :param rows: indices of the samples.
    """
    names = [name for name in BY_SAMPLE if getattr(representation, name) is not None]
    # The moments of a conditional prior have a row for each sample, those of other priors do not.
    names += [
        name
        for name in ("prior_mean", "prior_variance")
        if (moment := getattr(representation, name)) is not None and moment.ndim == 2
    ]
    return dataclasses.replace(
        representation, **{name: getattr(representation, name)[rows] for name in names}
    )
