"""``polariscope size --curve`` and ``--table``: curves over the number of latents, and tables of searches."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from polariscope.core.errors import Argument, InputError

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset


def numbers_in(words: str) -> list[int]:
    """Numbers of latents as they are typed.

    >>> numbers_in("3, 6,8")
    [3, 6, 8]
    """
    try:
        return [int(word) for word in words.split(",")]
    except ValueError:
        raise InputError("curve", "be whole numbers joined by commas", got=f"{words!r}") from None


def curve_and_tell(data: AbstractDataset, words: str, goal: Mapping[str, Any], *, quiet: bool) -> None:
    """Train and measure with live progress, print the table, and draw it where there is a folder."""
    from polariscope.cli.console import say
    from polariscope.cli.size import SizeProgress
    from polariscope.sizing.support.curve import plan_curve, size_curve
    from polariscope.training.choices import announcement

    numbers = numbers_in(words)
    given = {name: value for name, value in goal.items() if name not in ("target", "n_latents")}
    if goal["n_latents"] is not None:
        raise InputError("n_latents", ("be left out with ", Argument("curve"), ", which says how many"))
    own = ("methods", "seeds", "part", "seed", "out", "device", "threads")
    options = {name: value for name, value in given.items() if name not in own}
    job = plan_curve(data, numbers, given["methods"], given["seeds"], given["part"], options)
    chosen = announcement(job.chosen)
    length = (
        f"Each of the {len(numbers) * given['seeds']} models is trained for {job.steps:,} gradient steps "
        f"({job.steps / job.steps_per_epoch:.3g} passes over the training data), whatever its number of latents; "
        "--steps or --epochs choose another length. Losses are of held-out samples, codes of "
        f"{job.n_samples:,} samples ({job.part})."
    )
    with SizeProgress(quiet=quiet, chosen="\n".join(filter(None, (chosen, length)))) as progress:
        found = size_curve(data, numbers, progress=progress, begin=progress.begin, **given)
    say(str(found))
    for answer in found.answers:
        for note in dict.fromkeys(answer.notes):  # seeds may say the same
            say(f"Note: {answer.method}: {note}")
    if given["out"] is not None:
        from polariscope.pages.size_curve import write_curve_picture

        picture = write_curve_picture(given["out"], found)
        say(f"The numbers are in {shlex.quote(str(picture.with_suffix('.csv')))}, the picture is {picture}.")


def starts_in(words: str | None) -> list[int | str] | None:
    """First numbers of latents as they are typed, "dimension" for that of the data; None for the usual one.

    >>> starts_in("dimension, 5,19")
    ['dimension', 5, 19]
    """
    if words is None:
        return None
    return [int(word) if word.strip().isdigit() else word.strip() for word in words.split(",")]


def strengths_in(words: str | None) -> dict[str, list[object]] | None:
    """One option and its values as they are typed.

    >>> strengths_in("beta=0.5,2"), strengths_in("lambda-od=1")
    ({'beta': [0.5, 2.0]}, {'lambda_od': [1.0]})
    """
    if words is None:
        return None
    name, _, values = words.partition("=")
    try:
        numbers: list[object] = [float(value) for value in values.split(",")]
    except ValueError:
        raise InputError(
            "strengths", "be an option, an equals sign, and numbers joined by commas", got=f"{words!r}"
        ) from None
    return {name.strip().removeprefix("--").replace("-", "_"): numbers}


def table_and_tell(
    data: AbstractDataset,
    methods: Sequence[str],
    starts: str | None,
    strengths: str | None,
    goal: Mapping[str, Any],
    *,
    quiet: bool,
) -> None:
    """Search with live progress, and print the table in the layout of papers."""
    import typer

    from polariscope.cli.console import say
    from polariscope.cli.size import SizeProgress
    from polariscope.studies.size_table import DIMENSION, size_table

    if goal["n_latents"] is not None:
        raise InputError("n_latents", ("be left out with ", Argument("table"), ", which finds it"))
    given = {name: value for name, value in goal.items() if name not in ("target", "n_latents")}
    first = starts_in(starts)
    given |= {"starts": (DIMENSION,) if first is None else first, "strengths": strengths_in(strengths)}
    with SizeProgress(quiet=quiet) as progress:
        found = size_table(data, methods, progress=progress, begin=progress.begin, **given)
    typer.echo(found.to_markdown(), nl=False)
    if given["out"] is not None:
        from polariscope.storage.search import SearchFolder

        place = SearchFolder(given["out"]).table("md")
        say(f"The table is {place}, with the same for LaTeX and a row for each search as .csv beside it.")
