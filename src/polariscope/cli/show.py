"""``polariscope show`` and ``polariscope check``: contents and integrity of a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polariscope.cli.command import command
from polariscope.core.errors import PolariscopeError
from polariscope.core.tables import TextTable
from polariscope.core.text import plural

Folder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run or of a sizing search.")]


@command()
def show(run: Folder) -> None:
    """List the contents of a run folder.

    These are the saved models and all cached results with their settings.
    """
    from polariscope.cli.console import printer, quoted, say, say_next
    from polariscope.runs.listing import row_of
    from polariscope.runs.run import Run
    from polariscope.storage import is_run, is_search

    if not is_run(run) and is_search(run):
        _show_search(run)
        return
    opened = Run(run)
    say(repr(opened))
    try:
        # Read for its checks only.
        opened.folder.read_log()
    except PolariscopeError as error:
        say(f"Damaged: {error}")
    steps = ", ".join(f"{step:,}" for step in opened.steps)
    noun = "step" if len(opened.steps) == 1 else "steps"
    say(f"{'models':<11}{f'at {noun} {steps}' if steps else 'none yet'}")
    artefacts = TextTable(
        "result", "settings", "step", "file", "size", numbers=("step", "size"), prose=("settings",)
    )
    for artefact in opened.artefacts():
        row = row_of(artefact, opened.fingerprint)
        artefacts.add_row(row.kind, row.about, row.step, row.file, row.size)
    if opened.artefacts():
        printer().print(artefacts)
    if opened.folder.artefacts.damaged():
        say_next((f"polariscope check {quoted(run)}", "list damaged files and remedies"))


def _show_search(folder: Path) -> None:
    from polariscope.cli.console import printer, say
    from polariscope.storage.search_folder import SearchFolder

    search = SearchFolder(folder)
    for path in search.methods or [folder]:
        search_folder = SearchFolder(path)
        if search_folder.has_curve:
            numbers = ", ".join(map(str, search_folder.read_curve()[1]["n_latents"]))
            say(f"{path}: curves over {numbers} latents")
        if search_folder.has_answer or not search_folder.has_curve:
            say(f"{path}: {_answer(search_folder)}")
        models = TextTable("seed", "model", "steps", numbers=("steps",))
        for seed in search_folder.seeds():
            for model in seed.all_models():
                models.add_row(
                    seed.path.name, model.path.name, f"{max(model.checkpoints.steps, default=0):,}"
                )
        if len(models):
            printer().print(models)
            say(f"{plural(len(models), 'model')} in all. Each is a run that other commands can open.")


def _answer(search: object) -> str:
    from polariscope.sizing.result import Size
    from polariscope.storage.search_folder import SearchFolder

    assert isinstance(search, SearchFolder)
    if not search.has_answer:
        return "no answer yet; run the same command again to resume the search"
    answer, settings = search.read_answer()
    return f"{Size.from_dict(answer).answer} by {settings['method']}"


@command()
def check(run: Folder) -> None:
    """Verify the hashes of all files in a run folder.

    For each damaged file, a remedy is printed.
    """
    from polariscope.cli.console import say
    from polariscope.storage.inspection import inspect_folder

    findings = inspect_folder(run)
    damaged = [finding for finding in findings if finding.state == "damaged"]
    for finding in findings:
        if finding.state != "whole":
            say(f"{finding.state}: {finding.path}\n  {finding.what}")
            if finding.remedy:
                say(f"  Remedy: {finding.remedy}.")
    whole = sum(finding.state == "whole" for finding in findings)
    say(f"{plural(whole, 'file')} intact, {len(damaged)} damaged.")
    if damaged:
        raise PolariscopeError(f"{run} is damaged; remedies are listed above.")
