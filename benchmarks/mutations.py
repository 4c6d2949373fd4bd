"""Change one operator of a formula at a time and see whether its tests notice; print those that nobody noticed.

For each module below the folders given, every mutant is the module with a single change: + and −, * and /, < and <=,
> and >=, == and !=, ``and`` and ``or``, ``min`` and ``max`` exchanged, 0 and 1 exchanged, a leading minus dropped.
Docstrings, annotations, decorators, ``raise``, ``assert`` and messages are left alone. A change inside a function is
made in memory (:mod:`mutations_in_memory`), one outside is written into a copy of the tree in a temporary folder; then
the tests that mirror the module run until one fails. A mutant is killed when one does; one that takes too long is
undecided. Nothing is ever written into the work tree. It needs a system that can fork.

    python benchmarks/mutations.py [MODULE OR FOLDER …] [--sample 150 --seed 0] [--jobs 2] [--results FILE.json]

With ``--results`` the verdicts are kept, and those known for the same module and tests are not repeated. ``--list``
prints the mutants only. ``--unchanged`` tests each module as it is, which must survive: otherwise its mutants would be
killed by something else. A test that fails with the module as it is, too, is left out and said.

Which tests belong to a module: the examples in its docstrings, the file named after it (``test_NAME*.py``) in the
mirrored folder of ``tests``, then all others that import it by name, nearest first, else the tests of the modules
beside it, or of the members, that use it; for members the contracts of their family too. A module without any is
reported as untested.

Survivors that no test can tell apart, or that have no consequence, and that are therefore left:

- ``>`` against ``>=`` at a number that is never hit: a tolerance for rounding (``circle``, ``renyi``, ``assignment``,
  ``dependence``, ``knee``, ``newton`` and ``neighbour_search`` of ``numerics``, ``ds``, ``table`` and
  ``modularity`` of the metrics), a tie of random numbers (the shares of ``knee``), a threshold of measured numbers
  (``table``, ``udr``), 0 between labels of ±1 (``sap``), what counts as diverged or collapsed (1e30 in
  ``analysis/regime/diagnose.py``);
- the size of such a tolerance (``max`` against ``min`` of a column that is constant to rounding, 1e-13 of a loss, a
  bound of float32 errors that real errors are far below), and what only keeps a matrix regular
  or sets the length of a step on the way to the same optimum (``numerics/newton.py``);
- speed, memory or messages only: the cut-off between two ways to the same number (``gram_product``,
  ``logistic_predictions``, the numbering of classes in ``table``), answers kept under a longer name (``table``), the
  threads, words, own metric and seed of LightGBM, whose trees draw nothing, rows, batches and threads at a time, the
  order of tasks (``importance``, ``probe``), fits that nobody asks for (``probe``), a bound that sends more rows to the
  exact search than need it (``numerics/neighbour_search.py``);
- the same number by another way: ``axis=-1`` and ``axis=1`` of a matrix, rows and columns of a symmetric one, a factor
  of ±1 and its inverse, two formulas at the point where they meet, any row as the reference of a comparison of all, the
  sign of a distance that is only squared or made absolute (``slow``), shares that are normalised again (``dci``), a
  shift before a regression with a free intercept (``beta_vae``, ``importance``, ``ridge_predictions``), any constant
  where a covariance is taken (``tc``), a constant feature, which trees leave out themselves, and leaves of at least one
  row or none, since an empty one gains nothing (``numerics/classifiers.py``);
- both answers are right: the sign of a 0 in a permutation, the origin of a cluster, a knee at a point between whose
  neighbours it was found, too, the direction of a random cycle (``pcl``), which of several random orders is taken
  (``permutations[0]`` of the metrics), the seed of a forest;
- what cannot come to pass: fewer points than were let in (``at_most`` of ``neighbours``), a last pass over no pairs
  (``overlap``), a system that does not tell its processors (``parallel``);
- what is left out anyway: the diagonal of a matrix of distances (``median_square`` in
  ``models/kernels.py``), the degrees of freedom of a latent that never varies (``modularity``), the default
  variant where no default is one of posteriors (``arguments``).
"""

from __future__ import annotations

import argparse
import ast
import copy
import dataclasses
import functools
import hashlib
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("src/polariscope")
FOLDERS = ("analysis/metrics", "objectives", "analysis/regime", "numerics")
CONTRACTS = {"analysis/metrics": "test_metrics.py", "objectives": "test_objectives.py"}
OUTPUT = "output.txt"
"""What the tests of the last mutant in a tree said."""
LEFT_ALONE = ("__init__.py", "printing.py", "notes.py")  # families and words, no formulas

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
NAMES = {
    "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "amin": "amax", "amax": "amin",
    "argmin": "argmax", "argmax": "argmin",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    module: str
    """Path below the package."""
    number: int
    """Which of the module's changes, in order."""
    line: int
    change: str
    """What became what."""
    source: str
    """The line before the change."""

    def key(self, text: str) -> str:
        """Names the mutant as long as its module and tests stay as they are."""
        return f"{self.module}:{self.number}:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


class Changes(ast.NodeTransformer):
    """Counts the changes that a module allows, and makes the one that is asked for."""

    def __init__(self, wanted: int | None = None) -> None:
        self.wanted = wanted
        self.found: list[tuple[int, str]] = []

    def _offer(self, node: ast.AST, change: str) -> bool:
        self.found.append((getattr(node, "lineno", 0), change))
        return len(self.found) - 1 == self.wanted

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        return node if isinstance(node.value, ast.Constant) else self.generic_visit(node)  # docstrings

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.body = [self.visit(statement) for statement in node.body]  # no decorators, no annotations
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def _leave(self, node: ast.AST) -> ast.AST:
        return node

    visit_Raise = visit_Assert = visit_Import = visit_ImportFrom = visit_JoinedStr = _leave  # noqa: N815

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in ("cast", "InputError", "Argument", "zip"):
            return node
        if name in NAMES and self._offer(node, f"{name} → {NAMES[name]}"):
            if isinstance(node.func, ast.Name):
                node.func.id = NAMES[name]
            else:
                assert isinstance(node.func, ast.Attribute)
                node.func.attr = NAMES[name]
        return self.generic_visit(node)

    def _swap(self, node: ast.AST, operator: ast.AST) -> ast.AST:
        other = OPERATORS.get(type(operator))
        if other is not None and self._offer(node, f"{type(operator).__name__} → {other.__name__}"):
            return other()
        return operator

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        if isinstance(node.op, ast.BitOr) or any(_is_text(side) for side in (node.left, node.right)):
            return node  # unions of types, and texts that are joined
        node.op = self._swap(node, node.op)  # type: ignore[assignment]
        return self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        if not _is_text(node.value):
            node.op = self._swap(node, node.op)  # type: ignore[assignment]
        node.value = self.visit(node.value)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        node.op = self._swap(node, node.op)  # type: ignore[assignment]
        return self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        node.ops = [self._swap(node, operator) for operator in node.ops]  # type: ignore[misc]
        return self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if isinstance(node.op, ast.USub):
            if self._offer(node, "minus dropped"):
                return node.operand
            if isinstance(node.operand, ast.Constant):
                return node  # −1 is one number
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, int | float) and not isinstance(node.value, bool) and node.value in (0, 1):
            other = type(node.value)(1 - node.value)
            if self._offer(node, f"{node.value} → {other}"):
                return ast.copy_location(ast.Constant(other), node)
        return node


def _is_text(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def mutants_of(module: str) -> list[Mutant]:
    """Every change of a module."""
    text = (ROOT / PACKAGE / module).read_text()
    changes = Changes()
    changes.visit(ast.parse(text))
    lines = text.splitlines()
    return [
        Mutant(module, number, line, change, lines[line - 1].strip())
        for number, (line, change) in enumerate(changes.found)
    ]


def mutated(mutant: Mutant) -> str:
    """The text of the module with the change made."""
    tree = ast.parse((ROOT / PACKAGE / mutant.module).read_text())
    changes = Changes(mutant.number)
    return ast.unparse(ast.fix_missing_locations(changes.visit(copy.deepcopy(tree))))


def modules(asked: list[str]) -> Iterator[str]:
    """The modules below the folders, as paths below the package."""
    for name in asked or FOLDERS:
        name = name.removeprefix(f"{PACKAGE}/")
        place = ROOT / PACKAGE / name
        if not place.exists():
            sys.exit(f"there is no {PACKAGE / name}")
        found = sorted(place.rglob("*.py")) if place.is_dir() else [place]
        yield from (str(file.relative_to(ROOT / PACKAGE)) for file in found if file.name not in LEFT_ALONE)


@functools.cache
def tests_of(module: str) -> list[str]:
    """The test files of a module, its own examples and those named after it first, as paths below the root."""
    path = Path(module)
    here = ROOT / "tests" / path.parent
    folders = [here, here.parent] if path.parent.name == "support" else [here]
    named = [file for folder in folders for file in sorted(folder.glob(f"test_{path.stem}*.py"))]
    imported = f"polariscope.{'.'.join(path.with_suffix('').parts)}"
    others = [
        file
        for file in sorted(
            (ROOT / "tests").rglob("test_*.py"), key=lambda file: (file.parent not in folders, file)
        )
        if f"from {imported} import" in file.read_text() and file.parent.name != "contracts"
    ]
    found = list(dict.fromkeys([*named, *others]))
    if not found:  # those of the modules beside it that use it, or of the members that share it
        users = [
            (folder, file)
            for folder in folders
            for file in sorted((ROOT / PACKAGE / folder.relative_to(ROOT / "tests")).glob("*.py"))
            if f"from {imported} import" in file.read_text()
        ]
        found = [file for folder, user in users for file in sorted(folder.glob(f"test_{user.stem}*.py"))]
    for family, contract in CONTRACTS.items():
        if str(path.parent) in (family, f"{family}/support") and (not found or path.parent.name != "support"):
            found.append(ROOT / "tests" / "contracts" / contract)
    if ">>> " in (source := ROOT / PACKAGE / module).read_text():
        found.insert(0, source)
    return [str(file.relative_to(ROOT)) for file in found]


def write(module: str, text: str, tree: Path) -> None:
    """Put a module into a copy of the tree, without what was compiled of the text before."""
    place = tree / PACKAGE / module
    place.write_text(text)
    for compiled in place.parent.glob(
        f"__pycache__/{place.stem}.*"
    ):  # its time and size may be those of the new one
        compiled.unlink()


def begin(module: str, text: str, tree: Path, commands: list[list[str]]) -> int:
    """Write a module into a copy of the tree and test it there in a child process, whose number is returned.

    The child is forked from this process, which has opened the slow libraries but nothing of the package: it opens the
    mutated package itself, and nothing it does reaches another mutant. It exits with 1 when a test fails.
    """
    write(module, text, tree)
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        output = os.open(tree / OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(output, stream)
        os.chdir(tree)
        os.environ["PYTHONPATH"] = str(tree / "src")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        sys.path[:0] = [str(tree / "src"), str(tree)]
        sys.dont_write_bytecode = False  # all other modules are compiled once for each tree
        os._exit(any(fails(words) for words in commands))
    except BaseException:  # the mutant cannot even be imported
        os._exit(1)


def fails(words: list[str]) -> bool:
    """Whether pytest with these words fails; in a process of its own, since it cannot be called twice in one."""
    import pytest

    child = os.fork()
    if not child:
        os._exit(int(pytest.main(words)))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) not in (0, 5)  # 5: no test of that name


OPTIONS = ["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-rfE", "--tb=no"]
OPTIONS += [
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
]  # what was opened before the fork is not rewritten


def commands_of(mutant: Mutant, broken: set[str]) -> list[list[str]]:
    """The calls of pytest that test a mutant, its own files first, without the tests that fail anyway."""
    name = Path(mutant.module).stem
    member = f"{name.replace('_', '-')} or {name.replace('_', '')}"  # beta-full, BetaFullObjective
    is_support = Path(mutant.module).parent.name == "support"
    without = [f"--deselect={test}" for test in sorted(broken)]
    files = tests_of(mutant.module)
    contracts = [file for file in files if "/contracts/" in file]
    others = [file for file in files if file not in contracts]
    # Of the contracts only the member's own, which bear its name.
    own = [] if is_support else ["-k", member]
    return [
        *([[*OPTIONS, *without, *others]] if others else []),
        *([*OPTIONS, *without, *own, file] for file in contracts),
    ]


def failed_test(tree: Path) -> str | None:
    """The test, or file of tests, that killed the last mutant in a tree; None where pytest could not even begin."""
    found = re.findall(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", (tree / OUTPUT).read_text(), flags=re.MULTILINE)
    return found[-1] if found else None


def in_memory(waiting: list[Mutant]) -> Iterator[tuple[Mutant, str]]:
    """The mutants whose change is inside a function, with their verdicts, module by module."""
    from mutations_in_memory import changed, functions, try_module

    for module in dict.fromkeys(mutant.module for mutant in waiting):
        whole = ast.unparse(ast.parse((ROOT / PACKAGE / module).read_text()))
        by_number = {mutant.number: mutant for mutant in waiting if mutant.module == module}
        codes = {number: changed(whole, mutated(mutant)) for number, mutant in by_number.items()}
        inside = [(number, found) for number, found in codes.items() if found is not None]
        files = tests_of(module)
        if not inside or not files:
            continue
        wanted = functools.partial(belongs, module)
        # First the module's own code, exchanged for itself: where that is killed, the way is wrong, not the mutants.
        own = [codes[0] for codes in functions(compile(whole, module, "exec")).values() if len(codes) == 1]
        is_sound = False
        for number, word in try_module(ROOT, ROOT / PACKAGE / module, files, [(-1, own), *inside], wanted):
            if number == -1:
                is_sound = word == "survived"
                if not is_sound:
                    print(
                        f"{module} cannot be tried in memory: unchanged it is {word}",
                        file=sys.stderr,
                        flush=True,
                    )
            elif is_sound and word != "elsewhere":
                yield by_number[number], word


def belongs(module: str, test: str) -> bool:
    """Whether a test is one of a module: of the contracts only those that bear its name, unless members share it."""
    path = Path(module)
    names = (path.stem.replace("_", "-"), path.stem.replace("_", ""))
    return (
        "/contracts/" not in test
        or path.parent.name == "support"
        or any(name in test.lower() for name in names)
    )


def judge(waiting: list[Mutant], trees: list[Path], limit: float) -> Iterator[tuple[Mutant, str]]:
    """Each mutant with its verdict, in the order in which they are known; as many at a time as there are trees.

    A test that killed a mutant must pass with the module as it is: otherwise it is left out and the mutant tried again.
    Where no test is named, pytest must be able to run with the module as it is.
    """
    import beartype  # noqa: F401
    import hypothesis  # noqa: F401
    import jaxtyping  # noqa: F401
    import numpy  # noqa: F401
    import pytest  # noqa: F401
    import scipy.stats  # noqa: F401
    import sklearn.linear_model  # noqa: F401
    import torch  # noqa: F401

    waiting, free = list(reversed(waiting)), list(trees)
    running: dict[int, tuple[Mutant, Path, float]] = {}
    trusted: set[str] = set()
    broken: set[str] = set()
    try:
        while waiting or running:
            while waiting and free:
                mutant, tree = waiting.pop(), free.pop()
                if not (commands := commands_of(mutant, broken)):
                    free.append(tree)
                    yield mutant, "untested"
                    continue
                child = begin(mutant.module, mutated(mutant), tree, commands)
                running[child] = mutant, tree, time.monotonic() + limit
            time.sleep(0.02)
            for child, (mutant, tree, deadline) in list(running.items()):
                done, status = os.waitpid(child, os.WNOHANG)
                if not done and time.monotonic() < deadline:
                    continue
                if not done:
                    os.killpg(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                del running[child]
                whole = (ROOT / PACKAGE / mutant.module).read_text()
                killer = (failed_test(tree) or mutant.module) if done and status else None
                if killer is not None and killer not in trusted:
                    again = commands_of(mutant, broken) if killer == mutant.module else [[*OPTIONS, killer]]
                    _, fails_anyway = os.waitpid(begin(mutant.module, whole, tree, again), 0)
                    if fails_anyway and killer == mutant.module:
                        sys.exit(f"the tests of {killer} cannot run:\n{(tree / OUTPUT).read_text()}")
                    (broken if fails_anyway else trusted).add(killer)
                write(mutant.module, whole, tree)
                free.append(tree)
                if killer in broken:
                    print(f"left out, since it fails anyway: {killer}", file=sys.stderr, flush=True)
                    waiting.append(mutant)
                else:
                    yield mutant, "timeout" if not done else "killed" if status else "survived"
    finally:
        for child in running:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("places", nargs="*", help="modules or folders below the package")
    parser.add_argument("--sample", type=int, help="try so many at random, spread evenly over the folders")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each mutant")
    parser.add_argument("--results", type=Path, help="JSON of verdicts, read and extended")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--unchanged", action="store_true")
    asked = parser.parse_args()

    found = [mutant for module in modules(asked.places) for mutant in mutants_of(module)]
    if asked.unchanged:
        found = [Mutant(module, -1, 0, "none", "") for module in modules(asked.places)]
    if asked.sample is not None:
        found = spread(found, asked.sample, random.Random(asked.seed))
    if asked.list:
        for mutant in found:
            print(f"{mutant.module}:{mutant.line}  {mutant.change}  {mutant.source}")
        print(f"{len(found)} mutants")
        return
    known: dict[str, dict[str, object]] = {}
    if asked.results is not None and asked.results.exists():
        known = json.loads(asked.results.read_text())
    keys = {mutant: mutant.key(_texts(mutant.module)) for mutant in found}
    verdicts = [(mutant, str(known[key]["verdict"])) for mutant, key in keys.items() if key in known]
    waiting = [mutant for mutant, key in keys.items() if key not in known]

    def keep(mutant: Mutant, word: str) -> None:
        verdicts.append((mutant, word))
        print(f"{word}  {mutant.module}:{mutant.line}  {mutant.change}", file=sys.stderr, flush=True)
        if asked.results is not None:
            known[keys[mutant]] = {**dataclasses.asdict(mutant), "verdict": word}
            part = asked.results.with_name(f"{asked.results.name}.part")
            part.write_text(json.dumps(known, indent=1))
            part.replace(asked.results)

    if not asked.unchanged:
        for mutant, word in in_memory(waiting):
            keep(mutant, word)
        done = {mutant for mutant, _ in verdicts}
        waiting = [mutant for mutant in waiting if mutant not in done]
    with tempfile.TemporaryDirectory(prefix="mutations-") as place:
        trees = [Path(place) / str(number) for number in range(asked.jobs)]
        for tree in trees:
            for part in ("src", "tests"):
                shutil.copytree(ROOT / part, tree / part, ignore=shutil.ignore_patterns("__pycache__"))
            shutil.copy2(ROOT / "pyproject.toml", tree)
        for mutant, word in judge(waiting, trees, asked.limit):
            keep(mutant, word)
    counts = {
        word: sum(w == word for _, w in verdicts) for word in ("killed", "timeout", "survived", "untested")
    }
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    for mutant, word in sorted(verdicts, key=lambda pair: (pair[0].module, pair[0].number)):
        if word != "killed":
            print(f"{word}  {mutant.module}:{mutant.line}  {mutant.change:22}  {mutant.source}")


def spread(found: list[Mutant], count: int, draw: random.Random) -> list[Mutant]:
    """A random part, with as many from each folder as there are to be had."""
    by_folder: dict[str, list[Mutant]] = {}
    for mutant in found:
        folder = next((f for f in FOLDERS if mutant.module.startswith(f)), "")
        by_folder.setdefault(folder, []).append(mutant)
    for group in by_folder.values():
        draw.shuffle(group)
    chosen: list[Mutant] = []
    while len(chosen) < count and any(by_folder.values()):
        for group in by_folder.values():
            if group and len(chosen) < count:
                chosen.append(group.pop())
    return chosen


@functools.cache
def _texts(module: str) -> str:
    """A module and its tests, whose change makes a verdict out of date."""
    paths = (ROOT / PACKAGE / module, *(ROOT / name for name in tests_of(module)))
    return "".join(path.read_text() for path in paths)


if __name__ == "__main__":
    main()
