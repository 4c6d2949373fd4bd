"""Print the table object × function: every cell works, or shows the message of the refusal.

python tests/interop/table.py [name…]
"""

from __future__ import annotations

import importlib.util
import logging
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from objects import ITEMS, Item

import polariscope as ps
from polariscope.core.errors import PolariscopeError
from polariscope.geometry.loss_split import split_reconstruction

FUNCTIONS: dict[str, Callable[[Item, Path], Any]] = {
    "encode": lambda item, folder: ps.encode(item.thing, item.data),
    "diagnose": lambda item, folder: ps.diagnose(item.thing, item.data),
    "report": lambda item, folder: ps.report(item.thing, item.data, out=folder / "page.html"),
    "score": lambda item, folder: ps.score(item.thing, "mig,probe", data=item.data),
    "stability": lambda item, folder: ps.stability([item.thing, item.again()], item.data),
    "compare": lambda item, folder: ps.compare([item.thing], item.data),
    "geometry": lambda item, folder: split_reconstruction(
        item.thing, item.data, n_samples=50, linearise=True
    ),
}


def cell(function: Callable[[Item, Path], Any], item: Item, folder: Path) -> str:
    """Return "works", or the message of the refusal; other errors are marked."""
    try:
        function(item, folder)
    except PolariscopeError as error:
        return str(error)
    except Exception as error:
        return f"ERROR {type(error).__name__}: {error}"
    return "works"


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    messages: list[str] = []
    print("| object | " + " | ".join(FUNCTIONS) + " |")
    print("| --- |" + " --- |" * len(FUNCTIONS))
    for name in names or ITEMS:
        build, library = ITEMS[name]
        if importlib.util.find_spec(library) is None:
            print(f"| {name} | {library} is not installed |")
            continue
        with tempfile.TemporaryDirectory() as place:
            started = time.monotonic()
            item = build(Path(place))
            cells = [cell(function, item, Path(place)) for function in FUNCTIONS.values()]
            cells = [each.replace(place, "FOLDER") for each in cells]
        shown = []
        for each in cells:
            if each != "works" and each not in messages:
                messages.append(each)
            shown.append(each if each == "works" else f"refused [{messages.index(each) + 1}]")
        print(f"| {name} | " + " | ".join(shown) + f" | {time.monotonic() - started:.0f} s", flush=True)
    for number, message in enumerate(messages):
        print(f"[{number + 1}] {message}")


if __name__ == "__main__":
    main(sys.argv[1:])
