"""Messages of the package: composed of parts, and independent of the interface (Python or command line)."""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import polariscope as ps
from polariscope.cli.app import flags_of

PACKAGE = Path(inspect.getfile(ps)).parent
ERRORS = {"InputError", "unknown", "check_word"}
PIECES = {"Argument", "Call"}
SPELLED = re.compile(r"(?<!\w)--\w|(?<![\w.])[a-z_]+=(?!=)")
"""A flag, or an argument with an equals sign: ``--net mlp``, ``net='mlp'``."""


@functools.cache
def nodes() -> tuple[tuple[str, ast.AST], ...]:
    """Return every call, argument and annotated name of the package with its position, read once."""
    return tuple(
        (f"{path.relative_to(PACKAGE)}:{getattr(node, 'lineno', 0)}", node)
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call | ast.arguments | ast.AnnAssign)
    )


def calls(names: set[str]) -> Iterator[tuple[str, ast.Call]]:
    """Yield every call of these names in the package."""
    for place, node in nodes():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            yield place, node


def texts(call: ast.Call) -> Iterator[str]:
    """Yield the free texts of an error, without names and values of pieces or parts of expressions."""
    queue: list[ast.AST] = [*call.args, *(keyword.value for keyword in call.keywords)]
    while queue:
        node = queue.pop()
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "‹value›" for part in node.values)
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in PIECES
        ) or isinstance(node, ast.FormattedValue):
            continue
        else:
            queue.extend(ast.iter_child_nodes(node))


def test_there_are_errors_to_look_at() -> None:
    assert sum(1 for _ in calls({"InputError"})) > 400
    assert SPELLED.search("use --net mlp")
    assert SPELLED.search("use net='mlp'")
    assert SPELLED.search("pass u=.")
    assert not SPELLED.search("with k = 3, a - b, x == y")


def test_every_error_has_parts() -> None:
    whole = [
        place
        for place, call in calls({"InputError"})
        if len(call.args) == 1 or (not call.args and "problem" not in {word.arg for word in call.keywords})
    ]
    assert not whole, f"say what must hold of which argument, or what the problem is: {whole}"


def test_no_free_text_is_spelled_for_one_reader() -> None:
    spelled = [(place, text) for place, call in calls(ERRORS) for text in texts(call) if SPELLED.search(text)]
    assert not spelled, "name arguments with Argument, calls with Call"


def test_no_message_is_edited() -> None:
    """The text of a message is decided where it is raised and never replaced afterwards."""
    edited = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in PACKAGE.rglob("*.py")
        for line in path.read_text().splitlines()
        if re.search(r"(str\(error\)|message)\.(replace|sub)\(|re\.sub\(.*(error|message)", line)
    ]
    assert not edited


def test_arguments_that_messages_name_exist() -> None:
    names = {
        parameter.arg
        for _, node in nodes()
        if isinstance(node, ast.arguments)
        for parameter in (*node.args, *node.kwonlyargs)
    }
    names |= {
        node.target.id
        for _, node in nodes()
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    advised = [
        (place, call.args[0].value)
        for place, call in calls({"Argument"})
        if isinstance(call.args[0], ast.Constant)
    ]
    assert len(advised) > 50
    unknown = [(place, name) for place, name in advised if name not in names | {"help_all", "set"}]
    assert not unknown


def test_commands_that_messages_advise_exist() -> None:
    for place, call in calls({"Call"}):
        name, flags = ast.literal_eval(call.args[0]), {f"--{word.arg}" for word in call.keywords}
        assert callable(getattr(ps, name)), place
        assert flags <= flags_of([name]), place
