"""Commands that are killed at random moments: the same command again must end with the same bytes and no leftovers."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

from hostile import calls, victims
from hostile.attacks import PAIR, RUN, Arena
from hostile.calls import Call, Kill, Outcome, Verdict

FETCH = """
import functools, http.server, threading
from pathlib import Path
from polariscope.data.fetch import download
from polariscope.data.originals import OriginalFile

class Slow(http.server.SimpleHTTPRequestHandler):
    def copyfile(self, source, target):
        import time
        while block := source.read(4096):
            target.write(block)
            time.sleep(0.01)
    def log_message(self, *words):
        pass

handler = functools.partial(Slow, directory="originals")
with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    name = "train-images-idx3-ubyte.gz"
    Path("out").mkdir(exist_ok=True)
    download(OriginalFile(name, f"http://127.0.0.1:{server.server_port}/{name}", None), Path("out"))
    server.shutdown()
"""
SAVE = """
import warnings
import numpy as np
import polariscope as ps
warnings.simplefilter("ignore")
ps.VAE(n_latents=2, steps=20, random_state=1).fit(np.load("rows.npy")).save("estimator")
"""
LONGER = victims.STUDY.replace("steps = 12", "steps = 120").replace("log_every = 3", "log_every = 20")

KILLED = (
    Call.command(f"{victims.TRAIN} --keep-checkpoints all --out out --quiet", name="train"),
    Call.command(
        f"{victims.TRAIN.replace('--steps 40', '--steps 80')} --keep-checkpoints all --out r0 --quiet",
        *RUN,
        name="train --steps 80",
    ),
    Call.command(f"{victims.TRAIN} --out half --keep-checkpoints all --quiet", "half", name="train resumed"),
    Call.command(f"{victims.TRAIN_MNIST} --out out --quiet", "originals", name="train mnist, unpacking"),
    Call.command("data preview mnist:originals --samples 9 --out out.png", "originals"),
    Call.command(f"{victims.SIZE} --out out --quiet", name="size"),
    Call.command("study run s.toml", "s.toml"),
    Call.command("study report s.toml --out out.html", "s.toml", "study"),
    Call.command("study table s.toml --out out.csv", "s.toml", "study"),
    Call.command(victims.MANIPULATE.replace("manipulation", "out"), *PAIR, name="manipulate"),
    Call.command("diagnose r0 --samples 90 --bootstrap 10 --decompose --json out.json", *RUN),
    Call.command("score r0 --samples 90 --metrics mig,sap,modularity --json out.json", *RUN),
    Call.command("course r0 --samples 90 --csv out.csv", *RUN),
    Call.command("report r0 --samples 90 --out out.html", *RUN),
    Call.command("encode r0 --samples 90 --all --csv out.csv", *RUN),
    Call.command("compare r0 r1 --samples 40 --out out", *PAIR),
    Call.command("stability r0 r1 --samples 90 --csv out.csv", *PAIR),
    Call.command("table r0 r1 --csv out.csv", *PAIR),
    Call.command("data clean --yes", "cache"),
    Call.python("download", FETCH, "originals"),
    Call.python("VAE.save over an older one", SAVE, "rows.npy", "estimator"),
)
"""Commands that are killed in forks."""
CREWS = (
    Call.command("study run s.toml --workers 2", "s.toml"),
    Call.command("study run s.toml --ray --workers 2", "s.toml"),
)
"""Commands with worker processes, which are killed in interpreters of their own."""
CALLS = {call.name: call for call in (*KILLED, *CREWS)}
IGNORED = (*calls.VOLATILE[:-1], ".asked.json", "*.log")
"""Files that can differ; a temporary file is a leftover."""


@dataclasses.dataclass(frozen=True)
class KillCase:
    """A command, and the moments at which it is killed, as shares of its usual duration."""

    call: str
    moments: tuple[float, ...]
    victim: int | None = None
    area: str = "kills"

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "kill", **dataclasses.asdict(self)}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> KillCase:
        return cls(record["call"], tuple(record["moments"]), record["victim"])

    def __str__(self) -> str:
        return f"{self.call} killed at {', '.join(f'{moment:.2f}' for moment in self.moments)} of its time"


def kill_case(dice: random.Random, index: int) -> KillCase:
    """Return a random case; commands take turns, those with workers every 25th."""
    moments = tuple(round(dice.uniform(0, 1.05), 4) for _ in range(dice.choice((1, 1, 1, 2, 3))))
    if index % 25 == 24:
        # Ray takes seconds to start, so it is killed less often.
        crew = CREWS[1] if index % 100 == 99 else CREWS[0]
        return KillCase(crew.name, moments[:1], dice.choice((None, 0, 1, 2)))
    return KillCase(KILLED[index % len(KILLED)].name, moments)


class Executioner:
    """Kills commands in an arena and compares the end with that of the undisturbed command."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self._undisturbed: dict[str, tuple[float, dict[str, str]]] = {}

    def kill(self, case: KillCase) -> tuple[Verdict, Outcome, int]:
        """Kill a command, make it again and judge it; the number of kills that hit is returned too."""
        call = CALLS[case.call]
        whole = call in CREWS
        took, expected = self.undisturbed(call, whole)
        self._prepare(call)
        hits, leaders = 0, []
        for moment in case.moments:
            outcome = self.arena.run(call, whole, kill=Kill(moment * took, case.victim))
            hits += outcome.struck
            leaders.append(outcome.leader)
        final = self.arena.run(call, whole)
        seen = self._files()
        for leader in leaders:
            calls.end_session(leader)
        verdict = calls.obvious(final)
        if verdict is None and final.code:
            verdict = Verdict(calls.LOCKED, final.err.strip()[-300:])
        if verdict is None and seen != expected:
            differing = sorted(path for path in {*seen, *expected} if seen.get(path) != expected.get(path))
            gone = [path for path in differing if path in expected]
            words = ", ".join(f"{path} {'differs' if path in seen else 'is missing'}" for path in gone)
            left = ", ".join(path for path in differing if path not in expected)
            verdict = Verdict(calls.LOST, words) if gone else Verdict(calls.LEFTOVER, left)
        return verdict or Verdict(calls.OK), final, hits

    def _prepare(self, call: Call) -> None:
        calls.copy(self.arena.clean, self.arena.here, call.needs)
        if call.name.startswith("study run"):
            (self.arena.here / "s.toml").write_text(LONGER)

    def undisturbed(self, call: Call, whole: bool) -> tuple[float, dict[str, str]]:
        """Return the seconds that the undisturbed command takes, and the files at its end."""
        if call.name not in self._undisturbed:
            ends = []
            for _ in range(2):  # the first one imports more
                self._prepare(call)
                outcome = self.arena.run(call, whole)
                if outcome.code:
                    raise RuntimeError(f"{call} fails undisturbed:\n{outcome.out}{outcome.err}")
                ends.append((outcome.seconds, self._files()))
            if ends[0][1] != ends[1][1]:
                paths = {*ends[0][1], *ends[1][1]}
                differing = sorted(path for path in paths if ends[0][1].get(path) != ends[1][1].get(path))
                raise RuntimeError(f"{call} ends differently each time: {differing}")
            self._undisturbed[call.name] = ends[1]
        return self._undisturbed[call.name]

    def _files(self) -> dict[str, str]:
        found = calls.digests(self.arena.here)
        return {path: digest for path, digest in found.items() if not calls.matches(path, IGNORED)}
