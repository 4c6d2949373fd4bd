"""Train a manipulation of data, or resume one: the public face of the attack."""

from __future__ import annotations

import dataclasses
import logging
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from polariscope import __version__
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.core.options import check_options
from polariscope.core.records import to_plain
from polariscope.data.observations import Subset
from polariscope.manipulation.attack import Side, Sides, fit_manipulation, in_words, work_of_batch
from polariscope.manipulation.network import Architecture, ManipulationNet, Tabulated
from polariscope.manipulation.result import Manipulation, open_manipulation
from polariscope.manipulation.selection import Candidate, Choice, choose_runs
from polariscope.manipulation.settings import AttackSettings
from polariscope.models.model import Model
from polariscope.models.nets import AbstractNet
from polariscope.runs.run import Run
from polariscope.storage import FORMAT, MANIPULATION
from polariscope.storage.documents import settings_hash
from polariscope.storage.folder import RunFolder
from polariscope.training.loop import Listener
from polariscope.training.memory import keep_freed_memory
from polariscope.training.threads import available_cores, check_threads, threads_for, using_threads
from polariscope.training.train import choose_device

logger = logging.getLogger("polariscope")

Runs = Sequence[str | Path | Run]
"""Runs, or folders of runs."""


def manipulate(
    runs: Runs = (),
    out: str | Path = "manipulated",
    *,
    metric: str = "mig",
    ensemble: int = 1,
    entangled: Runs = (),
    disentangled: Runs = (),
    n_samples: int | None = Subset.n_samples,
    device: object = "auto",
    threads: int | None = None,
    progress: bool | Listener = False,
    **settings: object,
) -> Manipulation:
    """Change data by at most ε, to make entangled codes describe them better than disentangled ones do.

    From runs that were trained alike on the same data, the ones with the lowest and the highest score are taken. Their
    encoders stay as they are and see the original data. Copies of their decoders learn to reconstruct the manipulated
    data, and a network m(w) learns to make that easy from entangled codes and hard from disentangled ones; see
    :func:`polariscope.manipulation.attack.fit_manipulation`. All that m sees of an observation are its factors, and
    of these one number.

    The folder then stands for the data: ``load_dataset(…, variants=["manipulated:FOLDER"])`` or ``--variant
    manipulated:FOLDER``. Called again with the same ``out``, a finished manipulation is opened, an unfinished one
    resumed bit for bit, a longer one (more ``steps``) continued, and one with other settings refused. The runs must
    still be there.

    Reference: zietlow2022 ch. 4 (β-VAEs with as many latents as factors; one pair for dSprites, ``ensemble=4`` for
    Shapes3D).

    :param runs: (default none) finished runs to choose from, or their folders.
    :param out: (default "manipulated") folder of the manipulation.
    :param metric: (default "mig") by which they are ranked, a member of ``polariscope.metrics``, ``udr`` included.
    :param ensemble: (default 1) how many models on each side; their losses are averaged.
    :param entangled: (default none: chosen by score) the runs whose codes shall become better.
    :param disentangled: (default none: chosen by score) the runs whose codes shall become worse.
    :param n_samples: (default 10,000) observations that are encoded to rank the runs.
    :param device: (default "auto") "cpu", "cuda" or "mps"; "auto" takes a GPU if there is one.
    :param threads: (default: by the work in a step and the cores; a resumed one keeps its own) threads to compute with.
    :param progress: (default False) True for a live line, or a function called after every step.
    :param settings: ``epsilon``, ``steps``, ``batch_size``, ``decoder_batches``, ``draws``, ``learning_rate``,
        ``seed``, ``log_every`` and ``checkpoint_every``, as
        :class:`~polariscope.manipulation.settings.AttackSettings` has them.
    """
    asked = AttackSettings(**check_options("manipulate", AttackSettings, settings))
    if isinstance(ensemble, bool) or not isinstance(ensemble, int) or ensemble < 1:
        raise InputError("ensemble", "be an integer, at least 1", got=f"{ensemble!r}")
    place, threads = choose_device(device), check_threads(threads)
    choice = choose_runs(
        _opened(runs),
        metric=metric,
        ensemble=ensemble,
        entangled=_opened(entangled),
        disentangled=_opened(disentangled),
        n_samples=n_samples,
    )
    asked.check(choice.data)
    job = Attack(choice, asked)
    with RunFolder(out) as folder:
        if folder.is_begun and folder.kind != MANIPULATION:
            raise InputError("out", "be a new folder or an earlier manipulation", got=f"the run {out}")
        folder.check(job.describe(str(place), 1))  # before anything is written
        if not job.is_finished(folder):
            with using_threads(1):  # the weights it begins with are the same, however many threads follow
                players = job.players(place)
            used = _threads(folder, threads, job, players)
            folder.begin(job.describe(str(place), used))
            try:
                with using_threads(used):
                    job.train(players, folder, place, progress)
            except Exception:
                folder.forget()  # if nothing was kept of it
                raise
    return open_manipulation(out)


def _opened(runs: Runs) -> list[Run]:
    if isinstance(runs, str | Path | Run):
        runs = [runs]
    return [run if isinstance(run, Run) else Run(run) for run in runs]


def _threads(folder: RunFolder, asked: int | None, job: Attack, players: Players) -> int:
    """As asked for, else as before, else by the rule."""
    if not folder.checkpoints.steps:
        return asked or choose_threads(job, players)
    before = folder.settings["environment"]["threads"]
    if asked is not None and asked != before:
        logger.warning(
            "%s had %d thread%s before and has %d now; the last bits of its numbers can differ from those of one with "
            "the same number throughout.",
            folder.path, before, "" if before == 1 else "s", asked,
        )  # fmt: skip
    return asked or before


def choose_threads(job: Attack, players: Players) -> int:
    """How many threads the fixed rule of trainings gives an attack on this machine.

    :param job: the attack.
    :param players: its networks.
    """
    cores = available_cores()
    if cores == 1:
        return 1
    with using_threads(1):
        work = work_of_batch(players.manipulation, players.sides, job.choice.data, job.settings)
    return threads_for(work, cores)


@dataclasses.dataclass(frozen=True, eq=False)
class Players:
    """The networks of an attack, on the device where they are trained."""

    manipulation: ManipulationNet
    sides: Sides


@dataclasses.dataclass(frozen=True, eq=False)
class Attack:
    """An attack, checked and ready: nothing has been written yet."""

    choice: Choice
    settings: AttackSettings

    @property
    def architecture(self) -> Architecture:
        """Of the manipulation: it is drawn by the decoder of the first disentangled model's kind."""
        return Architecture.of(self.choice.data, self._net(), self.settings.epsilon)

    def _net(self) -> AbstractNet:
        return self.choice.disentangled[0].run.model().blueprint.net

    def describe(self, device: str, threads: int) -> dict[str, Any]:
        """The settings of the folder.

        :param device: where it is trained.
        :param threads: with how many threads.
        """
        data = self.choice.data
        record: dict[str, Any] = {
            "format": FORMAT,
            "polariscope": __version__,
            "kind": MANIPULATION,
            "data": {**data.describe(), "fingerprint": data.fingerprint},
            "objective": {
                "name": MANIPULATION,
                "entangled": [candidate.digest for candidate in self.choice.entangled],
                "disentangled": [candidate.digest for candidate in self.choice.disentangled],
            },
            "model": self.architecture.describe(),
            "training": to_plain(self.settings.describe()),
            "training_identity": to_plain(self.settings.identity()),
        }
        record["hash"] = settings_hash(record)
        record["n_observations"] = len(data)
        record["choice"] = self.choice.describe()
        record["environment"] = {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
            "threads": threads,
            "device": device,
        }
        return record

    def is_finished(self, folder: RunFolder) -> bool:
        """Whether a whole manipulation with all its steps is there; a damaged one is made again.

        :param folder: where it would be.
        """
        try:
            folder.model_header()  # refuses a damaged file
            if not folder.is_finished_for(self.settings.steps):
                return False
            Tabulated.read(folder.model_file)
        except PolariscopeError as error:
            logger.warning("%s It is made again from the last checkpoint.", error)
            folder.set_model_aside()
            return False
        return True

    def players(self, device: torch.device) -> Players:
        """The manipulation before its first step, and the models of both sides.

        :param device: where they are trained.
        """
        sides = Sides(
            *(
                Side([_model(candidate, device) for candidate in side])
                for side in (self.choice.entangled, self.choice.disentangled)
            )
        )
        manipulation = self.architecture.build(self.settings.seed).to(device)
        manipulation.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return Players(manipulation, sides)

    def train(
        self, players: Players, folder: RunFolder, device: torch.device, progress: bool | Listener
    ) -> None:
        """Train the manipulation, from where it stopped, and leave its table.

        :param players: what :meth:`players` gave.
        :param folder: where it is kept.
        :param device: where it is trained.
        :param progress: True for a live line, or a function called after every step.
        """
        if device.type == "cpu":
            keep_freed_memory()
        manipulation, sides, data = players.manipulation, players.sides, self.choice.data
        if progress is True:
            from polariscope.training.listeners import ProgressLine

            with ProgressLine(self.settings.steps, words=in_words) as line:
                fit_manipulation(manipulation, sides, data, self.settings, folder, (line,))
        else:
            listeners = (progress,) if callable(progress) else ()
            fit_manipulation(manipulation, sides, data, self.settings, folder, listeners)
        folder.save_model(Tabulated.of(manipulation, data), self.settings.steps)


def _model(candidate: Candidate, device: torch.device) -> Model:
    return candidate.run.model(device=str(device))
