"""Damaged files: every file of every folder, with each damage, read by each command that reads it."""

from __future__ import annotations

import dataclasses
import random
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hostile import calls, victims
from hostile.calls import Call, Outcome, Result, Verdict
from hostile.mutations import Mutation, mutations_of

RUN = ("r0",)
PAIR = ("r0", "r1")
SAMPLES = "--samples 100"
DIAGNOSE = f"diagnose r0 {victims.DIAGNOSE} --json out.json"
RUN_CALLS = (
    Call.command(DIAGNOSE, *RUN, results=("out.json",)),
    Call.command(f"{DIAGNOSE} --decompose --step 20", *RUN, results=("out.json",)),
    Call.command(f"score r0 {SAMPLES} --metrics mig,sap --json out.json", *RUN, results=("out.json",)),
    Call.command(f"encode r0 {SAMPLES} --all --csv out.csv", *RUN, results=("out.csv",)),
    Call.command(f"course r0 {SAMPLES} --csv out.csv", *RUN, results=("out.csv",)),
    Call.command(f"report r0 {SAMPLES} --out out.html", *RUN, results=("out.html",)),
    Call.command("compare r0 r1 --samples 50 --out out", *PAIR, results=("out/similarity.json",)),
    Call.command(f"stability r0 r1 {SAMPLES} --csv out.csv", *PAIR, results=("out.csv",)),
    Call.command("table r0 r1 --all --csv out.csv", *PAIR, results=("out.csv",)),
    Call.command("show r0", *RUN),
    Call.command("check r0", *RUN, checks=True),
    Call.command(
        f"{victims.TRAIN} --keep-checkpoints all --out r0 --quiet",
        *RUN,
        name="train again",
        results=("r0/model.safetensors", "r0/log.jsonl"),
        rewrites=("r0/**",),
    ),
    Call.command(
        f"{victims.TRAIN.replace('--steps 40', '--steps 60')} --keep-checkpoints all --out r0 --quiet",
        *RUN,
        name="train --steps 60",
        results=("r0/model.safetensors", "r0/log.jsonl"),
        rewrites=("r0/**",),
    ),
    Call.python(
        "load_model",
        "import polariscope as ps\nfor step in (None, 20): print(ps.load_model('r0', step=step).digest)",
        *RUN,
    ),
    Call.python(
        "open_run",
        "import polariscope as ps\nrun = ps.open_run('r0')\n"
        "print(run.representation(n_samples=100).mean.sum(), run.verdict())\n"
        "print(run.artefacts(), run.log()[-1])",
        *RUN,
    ),
)
HALF_CALLS = (
    Call.command(
        f"{victims.TRAIN} --keep-checkpoints all --out half --quiet",
        "half",
        name="train resumed",
        results=("half/model.safetensors", "half/log.jsonl", "half/settings.json"),
        rewrites=("half/**",),
    ),
    Call.command(
        "diagnose half --step 20 --samples 100 --bootstrap 10 --json out.json", "half", results=("out.json",)
    ),
    Call.command("show half", "half"),
    Call.command("check half", "half", checks=True),
)
STUDY = ("s.toml", "study")
STUDY_CALLS = (
    Call.command("study status s.toml", *STUDY),
    Call.command("study table s.toml --format csv --out out.csv", *STUDY, results=("out.csv",)),
    Call.command("study seeds s.toml", *STUDY),
    Call.command("study sql s.toml 'select * from runs'", *STUDY),
    Call.command("study report s.toml --out out.html", *STUDY, results=("out.html",)),
    Call.command("study plan s.toml", *STUDY),
    Call.command("study clean s.toml --yes", *STUDY),
    Call.command(
        "study run s.toml",
        *STUDY,
        results=("runs/*/model.safetensors", "runs/*/log.jsonl", "runs/*/regime-*"),
        rewrites=("study/**",),
        repairs=True,
    ),
    Call.command("study retry s.toml", *STUDY, rewrites=("failure.json",)),
)
SEARCH_CALLS = (
    Call.command(
        f"{victims.SIZE} --out search",
        "search",
        name="size again",
        results=("search/size.json",),
        rewrites=("search/**",),
        repairs=True,
    ),
    Call.command("show search", "search"),
    Call.command("check search", "search", checks=True),
    Call.command(
        "train gaussian --net linear --n-samples 200 --size search --objective vae --learning-rate 0.05 --steps 10 "
        "--out out --quiet",
        "search",
        name="train --size search",
        results=("out/model.safetensors",),
    ),
)
MANIPULATION = ("manipulation", "r0", "r1")
MANIPULATION_CALLS = (
    Call.command(
        victims.MANIPULATE,
        *MANIPULATION,
        name="manipulate again",
        results=("manipulation/model.safetensors", "manipulation/log.jsonl"),
        rewrites=("manipulation/**",),
    ),
    Call.command(
        f"{victims.TRAIN} --variant manipulated:manipulation --steps 5 --out out --quiet",
        "manipulation",
        name="train --variant manipulated",
        results=("out/model.safetensors",),
    ),
    Call.command(
        "data preview digits --variant manipulated:manipulation --samples 9 --out out.png", "manipulation"
    ),
    Call.command("check manipulation", "manipulation", checks=True),
)
CACHE = ("cache", "originals", "rm")
CACHE_CALLS = (
    Call.command(
        f"{victims.TRAIN_MNIST} --out out --quiet",
        *CACHE,
        name="train mnist",
        results=("out/model.safetensors",),
    ),
    Call.command(f"diagnose rm {victims.DIAGNOSE} --seed 1 --json out.json", *CACHE, results=("out.json",)),
    Call.command("encode rm --samples 40 --seed 2 --all --csv out.csv", *CACHE, results=("out.csv",)),
    Call.command("data preview mnist:originals --samples 9 --out out.png", *CACHE, results=("out.png",)),
    Call.command("data info mnist:originals", *CACHE),
    Call.python(
        "load_dataset",
        "import polariscope as ps\ndata = ps.load_dataset('mnist', path='originals')\n"
        "print(data.fingerprint, data.images(range(120)).sum(), data.factors(range(120)).sum())",
        *CACHE,
    ),
)
ESTIMATOR_CALLS = (
    Call.python(
        "VAE.load",
        "import numpy as np, polariscope as ps\n"
        "print(ps.VAE.load('estimator').transform(np.load('rows.npy')).sum())",
        "estimator",
        "rows.npy",
    ),
)
INPUT_CALLS = {
    "codes.npz": (
        Call.command("diagnose codes.npz --bootstrap 10 --decompose", "codes.npz"),
        Call.command("score codes.npz --metrics mig,sap", "codes.npz"),
        Call.command("encode codes.npz --csv out.csv --all", "codes.npz"),
        Call.command("report codes.npz --out out.html", "codes.npz"),
    ),
    "rows.npy": (
        Call.command("data info rows.npy", "rows.npy"),
        Call.command("train rows.npy --net linear --latents 2 --steps 3 --out out --quiet", "rows.npy"),
    ),
    "rows.csv": (
        Call.command("data info rows.csv", "rows.csv"),
        Call.command("train rows.csv --net linear --latents 2 --steps 3 --out out --quiet", "rows.csv"),
    ),
    "s.toml": (
        Call.command("study plan s.toml", "s.toml", varies=True),
        Call.command("study status s.toml", *STUDY),
    ),
    "options.toml": (
        Call.command("score codes.npz --metrics mig --config options.toml", "codes.npz", "options.toml"),
    ),
    "pictures": (
        Call.command("data info pictures", "pictures"),
        Call.command("train pictures --latents 2 --net linear --steps 3 --out out --quiet", "pictures"),
    ),
}

AREAS: dict[str, tuple[tuple[str, ...], tuple[Call, ...], dict[str, str]]] = {
    "run": (("r0",), RUN_CALLS, {"r0": "r1"}),
    "unfinished run": (("half",), HALF_CALLS, {"half": "r1"}),
    "study": (("study",), STUDY_CALLS, {}),
    "sizing search": (("search",), SEARCH_CALLS, {"search": "search1"}),
    "manipulation": (("manipulation",), MANIPULATION_CALLS, {"manipulation": "manipulation1"}),
    "cache": (("cache", "originals"), CACHE_CALLS, {}),
    "estimator": (("estimator",), ESTIMATOR_CALLS, {"estimator": "estimator1"}),
    **{f"input {name}": ((name,), made, {}) for name, made in INPUT_CALLS.items()},
}
"""By area: the folders whose files are damaged, the calls that read them, and the folder to swap files with."""

INPUTS = ("*.npz", "rows.npy", "*.csv", "*.toml", "*.png", "*.html", "*.lock", "originals/*")
"""Files without a hash. If a user changes them, another result without a note is right."""
UNREAD = ("*.lock", "*.html", "*.png", ".asked.json", "timing.json", ".lease-*", "failure.json")
"""Files that ``check`` need not protect."""
COURSE = f"course r0 {SAMPLES} --csv out.csv"
REPEATED = {"half/log.jsonl": "train resumed", "r0/course-*.jsonl": COURSE}
"""Files whose end a call writes again. Without its last lines, a log of an unfinished run or a journal is that of a
process that was killed earlier, so no command can notice that they are missing."""


@dataclasses.dataclass(frozen=True)
class Case:
    """One damaged file and the call that reads it."""

    area: str
    call: str
    file: str
    mutation: Mutation
    whole: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "mutation", **dataclasses.asdict(self)}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Case:
        fields = {name: value for name, value in record.items() if name != "kind"}
        return cls(**{**fields, "mutation": Mutation(**fields["mutation"])})

    def __str__(self) -> str:
        return f"{self.file}: {self.mutation}; then {self.call}"


def is_input(case: Case, call: Call) -> bool:
    """Return whether another result without a note is right: the file has no hash, or its hash was written again."""
    of_run = "rm" in call.words  # the fingerprint of its data is in its settings
    return case.mutation.harm == "sign" or (calls.matches(case.file, INPUTS) and not of_run)


def find_call(area: str, name: str) -> Call:
    """Return a call of an area by its name."""
    return next(call for call in AREAS[area][1] if call.name == name)


def cases(clean: Path, seed: int, area: str) -> Iterator[Case]:
    """Yield every damage of every file of an area, read by every call, in random order.

    :param clean: folder with the undamaged files.
    :param seed: seed of the order, offsets and values.
    :param area: name of the area.
    """
    dice, made = random.Random(f"{seed} {area}"), []
    folders, readers, _ = AREAS[area]
    paths = [clean / name for name in folders]
    files = sorted(
        file for path in paths for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file()
    )
    for file in files:
        if any(part.is_symlink() for part in file.parents):
            continue
        for call in readers:
            made += [
                Case(area, call.name, str(file.relative_to(clean)), mutation)
                for mutation in mutations_of(file, dice)
            ]
    dice.shuffle(made)
    yield from made


def partner_of(clean: Path, area: str, file: str) -> Path | None:
    """Return the file of another run that has the role of a file: the same name, or the same kind of result."""
    path, swaps = clean / file, AREAS[area][2]
    first, _, rest = file.partition("/")
    if first in swaps:
        other = clean / swaps[first] / rest
        if other.is_file():
            return other
        kind = path.name.rpartition("-")[0]
        same = sorted(other.parent.glob(f"{kind}-*{path.suffix}")) if kind and other.parent.is_dir() else []
        return same[0] if same else None
    # A study, a cache: the file of the same kind in a neighbouring folder, or next to this one.
    kind = path.name.rpartition("-")[0] or path.stem
    near = [
        *sorted(path.parents[1].glob(f"*/{kind}*{path.suffix}")),
        *sorted(path.parent.glob(f"*{path.suffix}")),
    ]
    return next((other for other in near if other.is_file() and other != path), None)


class Arena:
    """A folder in which calls are made, with undamaged folders to copy from.

    :param root: folder of the arena; it contains ``clean``, and ``here``, where every call is made.
    """

    def __init__(self, root: Path) -> None:
        self.clean, self.here, self.imports = root / "clean", root / "here", root / "imports"
        self._usual: dict[Call, tuple[Outcome, Result, str]] = {}

    def build(self, commands: Sequence[str] = victims.MAKE) -> None:
        """Make the undamaged folders, in the place where they are attacked.

        :param commands: (default all) commands that make them.
        """

        def run(words: tuple[str, ...], is_python: bool) -> None:
            outcome = self.run(Call(" ".join(words), words, is_python=is_python), imports=self.imports)
            if outcome.code:
                raise RuntimeError(f"{words} failed:\n{outcome.out}{outcome.err}")
            calls.learn_imports(self.imports)

        if not self.clean.exists():
            shutil.rmtree(self.here, ignore_errors=True)
            victims.make(self.here, run, commands)
            self.here.rename(self.clean)

    def run(self, call: Call, whole: bool = False, **options: Any) -> Outcome:
        """Make a call in ``here``."""
        if whole:
            code = call.words[0] if call.is_python else ""
            words = (f"from hostile.calls import run_python\nimport sys\nsys.exit(run_python({code!r}))",)
            tests = {"PYTHONPATH": f"{victims.SOURCE}:{Path(__file__).parents[1]}"}
            return calls.run_process(
                words if call.is_python else call.words,
                self.here,
                is_python=call.is_python,
                extra=tests,
                **options,
            )
        function = (
            (lambda: calls.run_python(call.words[0]))
            if call.is_python
            else (lambda: calls.run_main(call.words))
        )
        return calls.run_forked(function, self.here, **options)

    def usual(self, call: Call) -> tuple[Outcome, Result, str]:
        """Return the outcome, result and text of a call without damage; it must be the same twice."""
        if call not in self._usual:
            seen = []
            for _ in range(2):
                calls.copy(self.clean, self.here, call.needs)
                outcome = self.run(call, imports=self.imports)
                calls.learn_imports(self.imports)
                result = Result.of(call, outcome, calls.digests(self.here))
                seen.append((outcome, result, calls.texts_of(call, self.here)))
                if call.checks is False and outcome.code:
                    raise RuntimeError(f"{call} fails without damage:\n{outcome.out}{outcome.err}")
            if seen[0][1] != seen[1][1]:
                differing = [
                    field.name
                    for field in dataclasses.fields(Result)
                    if getattr(seen[0][1], field.name) != getattr(seen[1][1], field.name)
                ]
                raise RuntimeError(f"{call} has two results without damage, which differ in {differing}")
            self._usual[call] = seen[0]
        return self._usual[call]

    def attack(self, case: Case) -> tuple[Verdict, Outcome] | None:
        """Damage a file, make the call and judge it; None if the damage changes nothing."""
        call = find_call(case.area, case.call)
        _, expected, _ = self.usual(call)
        calls.copy(self.clean, self.here, call.needs)
        target = self.here / case.file
        whole_file = target.read_bytes() if target.exists() else None
        if whole_file is None:
            return None
        if not case.mutation.apply(target, partner_of(self.clean, case.area, case.file)):
            return None
        before = calls.digests(self.here)
        outcome = self.run(call, case.whole)
        after = calls.digests(self.here)
        verdict = self._judge(call, case, outcome, before, after)
        if not verdict.failed and call.rewrites and outcome.code:
            verdict = self._repaired(call, target, whole_file, expected) or verdict
        return verdict, outcome

    def _judge(
        self,
        call: Call,
        case: Case,
        outcome: Outcome,
        before: dict[str, str],
        after: dict[str, str],
    ) -> Verdict:
        usual, expected, texts = self.usual(call)
        if verdict := calls.obvious(outcome):
            return verdict
        if gone := calls.lost(call, before, after, outcome.code, case.file):
            return Verdict(calls.LOST, f"exit code {outcome.code}: {gone}")
        if outcome.code:
            said = outcome.err.strip() or outcome.out.strip()
            if call.repairs and not is_input(case, call):
                return Verdict(calls.LOCKED, f"not repaired: {said[-300:]}")
            return Verdict(calls.REFUSED, said[-300:])
        result = Result.of(call, outcome, after)
        is_gone = case.mutation.harm == "gone" and result != expected
        if call.checks and not (calls.matches(case.file, UNREAD) or is_input(case, call) or is_gone):
            if self._is_repeated(case):
                return Verdict(
                    calls.OK, "the lines after the last checkpoint are repeated with the same bytes"
                )
            return Verdict(calls.SILENT, f"calls the folder whole: {outcome.out.strip()[-200:]}")
        if result == expected:
            return Verdict(calls.OK)
        if said := calls.notes(outcome, usual, calls.texts_of(call, self.here), texts):
            return Verdict(calls.NOTED, "\n".join(said)[-300:])
        if is_input(case, call) or is_gone:
            return Verdict(calls.OK, "another input")
        return Verdict(calls.SILENT, describe_difference(expected, result))

    def _is_repeated(self, case: Case) -> bool:
        """Return whether resuming the damaged run gives the undamaged result byte for byte."""
        names = [name for pattern, name in REPEATED.items() if calls.matches(case.file, (pattern,))]
        if not names:
            return False
        # Read first, because the undamaged call below replaces the folder.
        damaged = (self.here / case.file).read_bytes() if (self.here / case.file).exists() else None
        call = find_call(case.area, names[0])
        _, expected, _ = self.usual(call)
        calls.copy(self.clean, self.here, call.needs)
        if damaged is None:
            (self.here / case.file).unlink()
        else:
            (self.here / case.file).write_bytes(damaged)
        outcome = self.run(call)
        return Result.of(call, outcome, calls.digests(self.here)) == expected

    def _repaired(self, call: Call, target: Path, content: bytes, expected: Result) -> Verdict | None:
        """After a refused call, restore the damaged file: the same call must give the undisturbed result."""
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        again = self.run(call)
        if Result.of(call, again, calls.digests(self.here)) == expected:
            return None
        return Verdict(
            calls.LOCKED, f"after the file was restored: {(again.err or again.out).strip()[-300:]}"
        )


def describe_difference(expected: Result, result: Result) -> str:
    """Return the first differences between two results."""
    files = [
        path
        for path in {**expected.files, **result.files}
        if expected.files.get(path) != result.files.get(path)
    ]
    old, new = expected.out.splitlines(), result.out.splitlines()
    lines = [f"- {line}" for line in old if line not in new][:3] + [
        f"+ {line}" for line in new if line not in old
    ][:3]
    return "\n".join([*(f"{path} differs" for path in sorted(files)), *lines])
