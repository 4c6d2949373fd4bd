"""``polariscope.manipulate``: train or resume a manipulation of data."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from polariscope import __version__
from polariscope.core.errors import InputError
from polariscope.core.options import check_options
from polariscope.core.records import to_plain
from polariscope.core.types import OptionValue
from polariscope.data.observations import Subset
from polariscope.manipulation.attack import AttackTask, Side, Sides, in_words, work_of_batch
from polariscope.manipulation.manipulation import Manipulation, open_manipulation, refuse_unresumable
from polariscope.manipulation.manipulation_settings import AttackSettings
from polariscope.manipulation.network import Architecture, ManipulationNet, Tabulated
from polariscope.manipulation.run_selection import Candidate, Choice, choose_runs
from polariscope.models.model import Model
from polariscope.models.nets import AbstractNet
from polariscope.models.protocol import DeviceLike
from polariscope.runs.run import Run
from polariscope.storage import FORMAT, MANIPULATION
from polariscope.storage.documents import settings_hash
from polariscope.storage.folder import RunFolder
from polariscope.training.loop import Listener
from polariscope.training.memory import keep_freed_memory
from polariscope.training.session import (
    open_finished,
    recording_failure,
    threads_by_rule,
    threads_of,
    train_shown,
)
from polariscope.training.threads import check_threads, using_threads
from polariscope.training.train import choose_device

Runs = Sequence[str | Path | Run]
"""Runs, or run folders."""


def manipulate(
    runs: Runs = (),
    out: str | Path = "manipulated",
    *,
    metric: str = "mig",
    ensemble: int = 1,
    entangled: Runs = (),
    disentangled: Runs = (),
    n_samples: int | None = Subset.n_samples,
    device: DeviceLike = "auto",
    threads: int | None = None,
    progress: bool | Listener = False,
    **settings: OptionValue,
) -> Manipulation:
    """Change data by at most ε, such that entangled codes describe them better than disentangled codes.

    Among runs with the same settings and data, those with the lowest and the highest score are selected. Their encoders
    are frozen and process the original data. Copies of their decoders are trained to reconstruct the manipulated data,
    and a network m(w) is trained to make that easy from entangled codes and hard from disentangled ones; see
    :class:`polariscope.manipulation.attack.AttackTask`. The inputs of m are the factors of an observation, which it
    reduces to a single number.

    The folder can then be used as a variant of the data: ``load_dataset(…, variants=["manipulated:FOLDER"])`` or
    ``--variant manipulated:FOLDER``. If the function is called again with the same ``out``, a finished manipulation is
    opened, an unfinished one is resumed bit for bit, and one with more ``steps`` is trained further; other settings are
    refused. An unfinished manipulation of version 0.2.0 is refused. Resuming requires the runs.

    Reference: zietlow2022 ch. 4 (β-VAEs with as many latents as factors; one pair for dSprites, ``ensemble=4`` for
    Shapes3D).

    :param runs: (default none) finished runs to select from, or their folders.
    :param out: (default "manipulated") folder of the manipulation.
    :param metric: (default "mig") metric for ranking the runs, a member of ``polariscope.metrics``, including ``udr``.
    :param ensemble: (default 1) number of models on each side; their losses are averaged.
    :param entangled: (default none: selected by score) runs whose loss is decreased.
    :param disentangled: (default none: selected by score) runs whose loss is increased.
    :param n_samples: (default 10,000) number of observations that are encoded to rank the runs.
    :param device: (default "auto") "cpu", "cuda" or "mps"; "auto" uses a GPU if there is one.
    :param threads: (default: chosen from the work per step and the number of cores; a resumed manipulation keeps its
        number) number of threads.
    :param progress: (default False) True for a live line, or a function called after every step.
    :param settings: ``epsilon``, ``steps``, ``batch_size``, ``decoder_batches``, ``draws``, ``learning_rate``,
        ``seed``, ``log_every`` and ``checkpoint_every``; see
        :class:`~polariscope.manipulation.manipulation_settings.AttackSettings`.
    """
    attack_settings = AttackSettings(**check_options("manipulate", AttackSettings, settings))
    if isinstance(ensemble, bool) or not isinstance(ensemble, int) or ensemble < 1:
        raise InputError("ensemble", "be an integer, at least 1", got=f"{ensemble!r}")
    torch_device, threads = choose_device(device), check_threads(threads)
    choice = choose_runs(
        _opened(runs),
        metric=metric,
        ensemble=ensemble,
        entangled=_opened(entangled),
        disentangled=_opened(disentangled),
        n_samples=n_samples,
    )
    attack_settings.check(choice.data)
    job = Attack(choice, attack_settings)
    with RunFolder(out) as folder:
        if folder.is_begun and folder.kind != MANIPULATION:
            raise InputError("out", "be a new folder or an earlier manipulation", got=f"the run {out}")
        if not folder.is_finished_for(attack_settings.steps):
            refuse_unresumable(folder)  # before comparing settings, whose error would suggest to resume it
        # The number of threads is not known yet, and is not compared.
        record = job.describe(str(torch_device), {"threads": 1})
        folder.check(record)  # before anything is written
        if open_finished(folder, attack_settings.steps, Tabulated.read) is not None:
            folder.settle(record)
        else:
            with using_threads(1):  # so the initial weights do not depend on the number of threads
                players = job.players(torch_device)
            used = threads_of(folder, threads, lambda: choose_threads(job, players))
            folder.begin(job.describe(str(torch_device), used))
            with recording_failure(folder), using_threads(used["threads"]):
                job.train(players, folder, torch_device, progress)
    return open_manipulation(out)


def _opened(runs: Runs) -> list[Run]:
    if isinstance(runs, str | Path | Run):
        runs = [runs]
    if not isinstance(runs, Iterable):
        raise InputError("runs", "be run folders in a list", got=f"an object of type {type(runs).__name__}")
    return [run if isinstance(run, Run) else Run(run) for run in runs]


def choose_threads(job: Attack, players: Players) -> int:
    """Return the number of threads for an attack on this machine, by the rule that training uses.

    :param job: the attack.
    :param players: networks of the attack.
    """
    return threads_by_rule(
        lambda: work_of_batch(players.manipulation, players.sides, job.choice.data, job.settings)
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Players:
    """The networks of an attack, on the device on which they are trained."""

    manipulation: ManipulationNet
    sides: Sides


@dataclasses.dataclass(frozen=True, eq=False)
class Attack:
    """An attack after checking; nothing has been written yet."""

    choice: Choice
    settings: AttackSettings

    @property
    def architecture(self) -> Architecture:
        """Architecture of the manipulation; its decoder is that of the first disentangled model's net."""
        return Architecture.of(self.choice.data, self._net(), self.settings.epsilon)

    def _net(self) -> AbstractNet:
        return self.choice.disentangled[0].run.model().blueprint.net

    def describe(self, device: str, threads: Mapping[str, object]) -> dict[str, Any]:
        """Return the settings that are stored in the folder.

        :param device: device of the training.
        :param threads: record of the number of threads, which is not part of the hash.
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
            **threads,
            "device": device,
        }
        return record

    def players(self, device: torch.device) -> Players:
        """Return the manipulation before its first step, and the models of both sides.

        :param device: device of the training.
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
        """Train or resume the manipulation, and write its table.

        :param players: the result of :meth:`players`.
        :param folder: folder of the manipulation.
        :param device: device of the training.
        :param progress: True for a live line, or a function called after every step.
        """
        if device.type == "cpu":
            keep_freed_memory()
        task = AttackTask(players.manipulation, players.sides, self.choice.data, self.settings)
        state = train_shown(task, folder, progress, describe_line=in_words)
        folder.save_model(Tabulated.of(players.manipulation, self.choice.data), state.step)


def _model(candidate: Candidate, device: torch.device) -> Model:
    return candidate.run.model(device=str(device))
