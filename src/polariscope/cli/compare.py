"""``polariscope compare``: similarity between the layers of models."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polariscope.cli.app import ModelInput, ModelTarget, open_target, say_saved
from polariscope.cli.command import Constant, Flag, FlagsOf, command, explicit_options
from polariscope.cli.config import MemberOptions, settings_of
from polariscope.core.errors import Argument, InputError
from polariscope.core.files import check_target
from polariscope.core.options import checked
from polariscope.core.progress import Progress, ProgressEvent

if TYPE_CHECKING:
    from rich.text import Text

    from polariscope.data.observations import Observations
    from polariscope.layers.comparison import Comparison, HeatMap


@checked
@dataclasses.dataclass(frozen=True)
class CompareOptions:
    """Options of ``polariscope compare`` beyond the observations and those of the measure."""

    measure: str = "cka"
    """Similarity measure; see 'polariscope list similarity'."""
    checkpoints: bool = False
    """Compare the checkpoints of each run instead of the finished models."""
    out: Annotated[Path, Flag("FOLDER")] | None = None
    """Also write the scores and a picture to this folder."""


@command(
    options=CompareOptions,
    members=MemberOptions,
    observations=FlagsOf(
        "polariscope.data.observations.Observations",
        without=("part",),
        defaults={"n_samples": Constant("polariscope.data.observations.LAYER_SAMPLES")},
    ),
    foreign=ModelInput,
)
def compare(
    context: typer.Context,
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN|MODEL|FILE…",
            help="Finished runs on the same data, models with --data, or files of codes.",
        ),
    ],
    options: CompareOptions,
    members: MemberOptions,
    observations: Observations,
    foreign: ModelInput,
) -> None:
    """Compare the layers of models pairwise.

    With one run, its layers are compared with each other. With two runs, the layers of the first are compared with
    those of the second. With more runs, the heat map shows the mean over all pairs of runs. With three or more
    checkpoints, every layer at each step is compared with itself at the last step, and the codes of each step with
    those of every other step. The comparison is saved with the first run and shown in the report of that run. --out
    writes all scores as JSON and the heat map as a picture to a folder.
    """
    from rich.text import Text

    from polariscope.cli.console import printer, quoted, say, say_next
    from polariscope.cli.families import open_family
    from polariscope.layers.comparison_text import matching_as_text
    from polariscope.layers.labels import has_matching, thinned
    from polariscope.runs.compare_models import compare as compare_models

    out, measure = options.out, options.measure
    if out is not None:
        # Checked before the comparison, which can take long.
        check_target(out, "out", folder=True)
    opened = [open_target(run, explicit_options(context), foreign) for run in runs]
    if len({type(run) for run in opened}) > 1:
        raise InputError(
            problem="runs, models and files of codes cannot be compared with each other",
            remedy="compare their codes in Python, with ps.compare([ps.encode(RUN), codes])",
        )

    def report(event: ProgressEvent) -> None:
        say(str(event), errors=True)

    settings = settings_of("compare", open_family("similarity"), members, {measure})
    for name in settings:
        if name != measure:
            raise InputError(
                problem=(
                    Argument("set", f"{name}.…"),
                    f" is for the measure {name}, and ",
                    Argument("measure"),
                    f" is {measure}",
                )
            )
    first, *others = opened
    if isinstance(first, ModelTarget):
        models = [each.model for each in opened if isinstance(each, ModelTarget)]
        comparison = compare_models(
            models,
            first.data,
            measure,
            observations.n_samples,
            observations.seed,
            progress=report,
            **settings.get(measure, {}),
        )
    elif first is None:
        comparison = _compare_codes(runs, measure, report, settings.get(measure, {}))
    else:
        comparison = first.comparison(
            [run for run in others if isinstance(run, type(first))],
            measure,
            observations.n_samples,
            observations.seed,
            checkpoints=options.checkpoints,
            step=observations.step,
            progress=report,
            **settings.get(measure, {}),
        )
    maps = comparison.maps()
    for number, heat_map in enumerate(maps):
        printer().print(Text("\n" if number else "") + coloured(thinned(heat_map)), soft_wrap=True)
    if has_matching(maps[0]):
        say(f"\n{matching_as_text(maps[0])}")
    for note in comparison.notes:
        say(f"Note: {note}")
    if out is not None:
        record, picture = comparison.save(out)
        say(f"Written: {record}, {picture}")
    if first is not None and not isinstance(first, ModelTarget):
        say_saved(first)
        say_next((f"polariscope report {quoted(first.path)}", "all results on one page"))


def _compare_codes(
    files: Sequence[Path], measure: str, progress: Progress, options: Mapping[str, Any]
) -> Comparison:
    """Compare the codes in .npz files: mean, variance and sampled codes of the same samples."""
    from polariscope.data.codes import open_codes
    from polariscope.runs.compare_models import compare as compare_models

    names = [file.stem for file in files]
    # Files in different folders can have the same name.
    labels = names if len(set(names)) == len(names) else [str(file) for file in files]
    codes = {label: [open_codes(file)] for label, file in zip(labels, files, strict=True)}
    return compare_models(codes, measure=measure, progress=progress, **options)


def coloured(heat_map: HeatMap) -> Text:
    """Return the heat map as coloured numbers; a darker background is a higher similarity."""
    from rich.text import Text

    from polariscope.core.tables import GAP
    from polariscope.layers.comparison_text import table_of

    table = table_of(heat_map)
    header, *lines = table.padded()
    text = Text(f"{table.title}\n", style="bold")
    text.append(GAP.join(header), style="not bold")
    for (layer, *cells), values in zip(lines, heat_map.values.tolist(), strict=True):
        text.append(f"\n{layer}", style="not bold")
        for shown, value in zip(cells, values, strict=True):
            share = min(1.0, max(0.0, value))
            red, green, blue = (round(255 - share * (255 - full)) for full in (15, 139, 141))
            text.append(f"{GAP}{shown}", style=f"not bold black on rgb({red},{green},{blue})")
    return text
