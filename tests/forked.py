"""Processes that can be killed, limited and interrupted, forked from one that has finished its imports.

Tests of a new interpreter (the files it opens, the encoding of its output) start one instead.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import signal
import sys
from pathlib import Path

_CONTEXT = multiprocessing.get_context("forkserver")
_IMPORTED = ["pytest", "polariscope.training.train", "polariscope.cli.app"]


def _become(
    code: str, arguments: tuple[str, ...], here: str, outputs: tuple[str, str], environment: dict[str, str]
) -> None:
    """Run ``python -c code arguments`` in the new process."""
    import torch

    for number, file in enumerate(outputs, 1):
        handle = os.open(file, os.O_WRONLY)
        os.dup2(handle, number)
        os.close(handle)
    os.chdir(here)
    os.environ.clear()
    os.environ.update(environment)
    torch.set_num_threads(1)
    sys.argv = ["-c", *arguments]
    exec(compile(code, "<forked>", "exec"), {"__name__": "__main__"})


@dataclasses.dataclass(frozen=True)
class Forked:
    """A running process with the interface of ``subprocess.Popen``."""

    process: multiprocessing.process.BaseProcess
    outputs: tuple[Path, Path]

    def poll(self) -> int | None:
        return self.process.exitcode

    def wait(self, timeout: float = 300) -> int:
        self.process.join(timeout)
        if self.process.exitcode is None:
            raise TimeoutError(f"the process has not ended in {timeout:g} seconds")
        return self.process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid or 0, number)

    def communicate(self, timeout: float = 300) -> tuple[str, str]:
        """Return the text of both outputs after the process has ended."""
        self.wait(timeout)
        return self.stdout, self.stderr

    @property
    def returncode(self) -> int:
        return self.wait(0)

    @property
    def stdout(self) -> str:
        return self.outputs[0].read_text(encoding="utf-8")

    @property
    def stderr(self) -> str:
        return self.outputs[1].read_text(encoding="utf-8")


class Forks:
    """A starter of processes, which ends those that are left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: list[Forked] = []

    def start(self, code: str, *arguments: str) -> Forked:
        """Start ``python -c code arguments`` in the current folder and environment."""
        _CONTEXT.set_forkserver_preload(_IMPORTED)
        outputs = tuple(self.folder / f"{len(self.made)}.{name}" for name in ("out", "err"))
        for file in outputs:
            file.touch()
        words = (code, arguments, os.getcwd(), tuple(map(str, outputs)), dict(os.environ))
        process = _CONTEXT.Process(target=_become, args=words)
        process.start()
        self.made.append(Forked(process, outputs))  # type: ignore[arg-type]
        return self.made[-1]

    def run(self, code: str, *arguments: str) -> Forked:
        """Run ``python -c code arguments`` to its end."""
        forked = self.start(code, *arguments)
        forked.wait()
        return forked

    def end(self) -> None:
        for forked in self.made:
            forked.process.kill()
            forked.process.join()
            forked.process.close()
