"""Output of commands: coloured on a terminal, plain text otherwise."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from polariscope.core.text import shortened

GAP = 3  # columns between two cells of a table
MIN_CELL = 20  # characters of a cell that are shown even on a narrow terminal
UNLIMITED = 10_000  # columns: a pipe or a file has no width, so tables are not folded and names are not cut


def printer(*, errors: bool = False) -> Console:
    """Return a console for results (standard output) or for progress messages (standard error)."""
    file = sys.stderr if errors else sys.stdout
    console = Console(file=file, markup=False, highlight=False, emoji=False)
    if not is_terminal(console):
        console = Console(file=file, markup=False, highlight=False, emoji=False, width=UNLIMITED)
    return console


def is_terminal(console: Console) -> bool:
    """Return whether a console writes to a terminal, whose width lines must fit.

    :param console: the console.
    """
    return console.is_terminal


def say(message: str | Text, *, errors: bool = False) -> None:
    """Print one message; commands and paths in it are never wrapped, so they can be copied."""
    printer(errors=errors).print(message, soft_wrap=True)


def print_in_parts(
    cells: Mapping[str, Sequence[str]], *, keys: Sequence[str] = (), numbers: Sequence[str] = ()
) -> None:
    """Print a table that fits the terminal: in several parts, each with the columns that identify the rows.

    If the output is not a terminal, the table is printed in one part.

    :param cells: texts by column.
    :param keys: (default none) columns that are repeated at the beginning of every part.
    :param numbers: (default none) columns that are aligned to the right.
    """
    from polariscope.core.tables import TextTable

    console = printer()
    first = [name for name in cells if name in keys]
    widths = {name: max(map(cell_len, [name, *column])) + GAP for name, column in cells.items()}
    room = console.width - sum(widths[name] for name in first)
    # A cell that is wider than a whole part would leave no room for the names of the rows.
    if is_terminal(console):
        longest = max(MIN_CELL, room - GAP)
        wide = [name for name in cells if name not in first and widths[name] > room]
        cells = {**cells, **{name: [shortened(cell, longest) for cell in cells[name]] for name in wide}}
        widths |= {name: max(map(cell_len, [name, *cells[name]])) + GAP for name in wide}
    parts: list[list[str]] = [[]]
    for name in (name for name in cells if name not in keys):
        if parts[-1] and sum(widths[each] for each in (*parts[-1], name)) > room:
            parts.append([])
        parts[-1].append(name)
    for part in parts:
        names = (*first, *part)
        rows = zip(*(cells[name] for name in names), strict=True)
        console.print(TextTable(*names, rows=rows, numbers=numbers))


def quoted(path: Path) -> str:
    """Return a path quoted for a shell."""
    return shlex.quote(str(path))


def say_next(*commands: tuple[str, str]) -> None:
    """Print commands that the user can run next, each with its purpose."""
    shown = [(as_typed(command), purpose) for command, purpose in commands]
    width = max(len(command) for command, _ in shown)
    say("Next:")
    for command, purpose in shown:
        say(f"  {command:<{width}}   {purpose}")


def as_typed(command: str) -> str:
    """Return a command that works in this shell: with the path of polariscope if it is not on PATH."""
    program = Path(sys.argv[0])
    if shutil.which("polariscope") or program.name != "polariscope":
        return command
    here = Path.cwd()
    path = program.absolute()
    shown = path.relative_to(here) if path.is_relative_to(here) else path
    return command.replace("polariscope", quoted(shown), 1)
