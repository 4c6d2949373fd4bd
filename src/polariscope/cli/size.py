"""``polariscope size``: how many latents does this data need?"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polariscope.cli import INTERRUPTED
from polariscope.cli.config import Config, settings_of
from polariscope.cli.data import SOURCE_HELP, KeepUnits, Scale, Standardise, Variants, Wrapping
from polariscope.cli.flags import KEY, NO_VALUE, Group, groups_of, typed
from polariscope.cli.train import TrainCommand, take_flags, training_of
from polariscope.core.errors import Argument, InputError
from polariscope.core.files import check_target

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset

OURS = ("schedule", "seed", "log_every", "probe_samples")
"""Options of the training that are the search's to choose, beside those that the search has itself."""
TARGETS = ("latents", "beta")
MODES = ("compare", "curve", "table")
"""What can be asked for beside an answer."""
MOST_LINES = 12
ALONE = 4
"""Times in a row that a candidate is heard of, after which others are taken to be done."""
SEEDS = {"curve": 5, "table": 10}
"""Seeds behind curves and tables, unless another number is given; as published."""
UNTOLD = "nothing of it is kept; with --out FOLDER an interrupted search goes on where it stopped."


class SizeCommand(TrainCommand):
    """Takes the options of the search, of its methods, and of the models that are trained on the way."""

    common = {
        "": (
            *("--method", "--compare", "--seed", "--seeds", "--target", "--latents", "--objective", "--net"),
            *("--likelihood", "--standardise", "--out", "--device", "--quiet"),
        ),
        "search": ("--threshold", "--cap", "--steps", "--minutes", "--learning-rate"),
        "objective beta": ("--beta",),
        "data sprites": ("--image-size",),
    }
    """The twenty that people use."""

    def groups(self) -> list[Group]:
        """The search's options first, then those of its methods, then as ``train`` has them."""
        from polariscope.core.options import options_of
        from polariscope.sizing import Goal, family
        from polariscope.sizing.support.checks import BOUNDS

        search = Group("search", "", {name: options_of(Goal)[name] for name in BOUNDS})
        theirs = super().groups()
        training = training_of(theirs)
        options = {
            name: option
            for name, option in training.options.items()
            if name not in OURS and name not in BOUNDS
        }
        rest = [group for group in theirs if group is not training]
        return [search, *groups_of("method", family), Group(training.part, training.name, options), *rest]

    def shown_flags(self, group: Group) -> dict[str, str]:
        """What the command or the search has a flag for itself carries the part in front."""
        own = {flag for parameter in self.params for flag in parameter.opts}
        own |= set() if group.part == "search" else self.groups()[0].flags.keys()
        longer = dict(zip(group.flags, group.flags_with_part, strict=True))
        return {longer[flag] if flag in own else flag: name for flag, name in group.flags.items()}


def size(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="DATA", help=SOURCE_HELP)],
    method: Annotated[
        str | None,
        typer.Option(
            help="Method; with --compare, --curve or --table several, joined by commas. [fondue]",
            metavar="NAME",
        ),
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Ask several methods, and say where they disagree.")
    ] = False,
    curve: Annotated[
        str | None,
        typer.Option(
            help="Curves over these numbers of latents, joined by commas: loss, probes, variances, dimensions, types. "
            "Each model has --steps [2,000] or --epochs.",
            metavar="NUMBERS",
        ),
    ] = None,
    table: Annotated[
        bool,
        typer.Option(
            "--table",
            help="Table of the published searches, or those of --method: latents as mean ± deviation over seeds, time, "
            "models, epochs.",
        ),
    ] = False,
    starts: Annotated[
        str | None,
        typer.Option(
            help="With --table: first numbers of latents, joined by commas. [dimension, that of the data]",
            metavar="NUMBERS",
        ),
    ] = None,
    strengths: Annotated[
        str | None,
        typer.Option(
            help="With --table: values of one option of the models, as beta=0.5,2,4.", metavar="OPTION=VALUES"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the first models.")] = 0,
    seeds: Annotated[
        int | None,
        typer.Option(help="How many seeds; the answer is their median. [1; with --curve 5, with --table 10]"),
    ] = None,
    target: Annotated[str, typer.Option(help="What to find: latents, or the largest beta.")] = "latents",
    n_latents: Annotated[
        int | None, typer.Option("--latents", help="Number of latents, with --target beta.")
    ] = None,
    objective: Annotated[str | None, typer.Option(help="What is minimised. [vae; for beta: beta]")] = None,
    net: Annotated[str, typer.Option(help="Encoder and decoder; auto: conv for images, else mlp.")] = "auto",
    likelihood: Annotated[
        str, typer.Option(help="p(x|z); auto: bernoulli for images, else gaussian.")
    ] = "auto",
    variants: Variants = None,
    standardise: Standardise = False,
    scale: Scale = False,
    keep_units: KeepUnits = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the models, the answer, its page and its picture.", metavar="FOLDER"),
    ] = None,
    part: Annotated[
        str | None,
        typer.Option(
            help="With --curve: encode all, train, validation or test samples. [all]", metavar="PART"
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="An option of the estimator that --dimension names, as mle.k=10; may be repeated. "
            "See 'polariscope list dimension NAME'.",
            metavar="NAME.OPTION=VALUE",
        ),
    ] = None,
    config: Config = None,
    threads: Annotated[
        int | None,
        typer.Option(
            help="Threads to compute with. [by the work in a step and the cores; resumed: as before]"
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only the answer.")] = False,
) -> None:
    """Say how many latents a dataset needs, by training some models.

    With --out nothing is trained twice: the same command resumes an interrupted search. --help shows the options
    people use most; --help-all shows all, also those of the models that are trained. Where two parts have an
    option of the same name, put the part in front: --data-seed. --curve 3,6,8 shows what models of each number of
    latents are like instead of an answer, and --table what published searches answer over seeds.
    """
    from polariscope.sizing.support.checks import check_recipe, trained_units
    from polariscope.training.choices import announcement

    if out is not None:
        check_target(out, "out", folder=True)
    mode = check_mode(compare=compare, curve=curve is not None, table=table, target=target)
    for name, value, home in (
        ("part", part, "curve"),
        ("starts", starts, "table"),
        ("strengths", strengths, "table"),
    ):
        if value is not None and mode != home:
            raise InputError(problem=(Argument(name), " is for ", Argument(home)), remedy="leave it out")
    methods = check_methods(method, several=bool(mode))
    chosen = objective or ("beta" if target == "beta" else "vae")
    concepts = {
        "objective": chosen,
        "net": net,
        "likelihood": likelihood,
        "posterior": "auto",
        "prior": "auto",
    }
    every = context.command.groups()  # type: ignore[attr-defined]
    own = [flag for parameter in context.command.params for flag in parameter.opts if flag.startswith("--")]
    try:
        asked = methods or usual_methods(mode)
        search, rest = take_search_flags(context.meta[KEY], every, asked)
        search |= estimator_with_options(search.get("dimension"), settings or [], config)
        wrapping = Wrapping(variants, standardise, scale, keep_units)
        data, options = take_flags(source, concepts, rest, every, [*own, *every[0].flags], wrapping)
        recipe = {**{part: name for part, name in concepts.items() if name != "auto"}, **options}
        number = SEEDS.get(mode, 1) if seeds is None else seeds
        goal: dict[str, Any] = {"target": target, "n_latents": n_latents, "seed": seed, "seeds": number}
        data = trained_units(data, recipe, keep_units=keep_units)
        kept: dict[str, Any] = {"keep_units": True} if keep_units else {}
        goal |= {"out": out, "device": device, "threads": threads, **kept, **search, **recipe}
        if curve is not None:
            from polariscope.cli.curves import curve_and_tell

            curve_and_tell(data, curve, {**goal, "methods": asked, "part": part or "all"}, quiet=quiet)
            return
        if table:
            from polariscope.cli.curves import table_and_tell

            table_and_tell(data, asked, starts, strengths, goal, quiet=quiet)
            return
        again = as_words(source, {"net": net, "likelihood": likelihood}, rest, wrapping.words())
        words = announcement(check_recipe(data, methods[0] if methods else "fondue", {**kept, **recipe}))
        size_and_tell(data, again, methods, goal, compare=compare, quiet=quiet, chosen=words)
    except KeyboardInterrupt:
        if out is not None:
            raise
        print(f"\nInterrupted: {UNTOLD}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None


def check_mode(*, compare: bool, curve: bool, table: bool, target: str) -> str:
    """What is asked for beside an answer: compare, curve or table; "" for nothing."""
    if target not in TARGETS:
        raise InputError("target", f"be {' or '.join(TARGETS)}", got=f"{target!r}")
    modes = [name for name, is_asked in zip(MODES, (compare, curve, table), strict=True) if is_asked]
    if modes and target != "latents":
        raise InputError(
            problem=(Argument(modes[0]), " is for ", Argument("target", "latents")),
            got=target,
            remedy="leave one of them out",
        )
    if len(modes) > 1:
        raise InputError(
            problem=(Argument(modes[0]), " and ", Argument(modes[1]), " ask for different things"),
            remedy="leave one of them out",
        )
    return modes[0] if modes else ""


def check_methods(method: str | None, *, several: bool) -> list[str] | None:
    """The methods asked for by name, None for the usual ones."""
    names = None if method is None else [name.strip() for name in method.split(",")]
    if names is not None and len(names) > 1 and not several:
        raise InputError(
            "method",
            "be one name",
            got=f"{method!r}",
            remedy=("add ", Argument("compare"), " to ask several"),
        )
    return names


def usual_methods(mode: str) -> Sequence[str]:
    """The methods that are asked where none is named."""
    if mode == MODES[2]:
        from polariscope.studies.size_table import published_methods

        return published_methods()
    from polariscope.sizing.support.compare import COMPARED

    return COMPARED if mode == MODES[0] else ("fondue",)


def take_search_flags(
    given: dict[str, object], every: list[Group], asked: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The flags of the search and of the methods that are asked, checked; and the flags that are left."""
    from polariscope.core.options import check_options
    from polariscope.sizing import Goal, family

    search: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for flag, value in given.items():
        for group in every:
            is_asked = group.part == "search" or (group.part == "method" and group.name in asked)
            known = {**group.flags, **group.flags_with_part}
            if is_asked and flag in known:
                if value is NO_VALUE:
                    raise InputError(problem=f"{flag} needs a value: {flag} VALUE")
                owner = f"sizing method {group.name!r}" if group.name else "the search"
                concept = family[group.name] if group.name else Goal
                search |= check_options(owner, concept, {known[flag]: value})
                break
        else:
            rest[flag] = value
    return search, rest


def estimator_with_options(
    estimator: str | None, words: list[str], config: Path | None
) -> dict[str, dict[str, Any]]:
    """The estimator of the dimension with its options from the file and the line; nothing where it has none."""
    from polariscope.cli.families import open_family

    settings = settings_of("dimension", open_family("dimension"), words, config, {estimator or ""})
    for name in settings:
        if name != estimator:
            raise InputError(
                problem=(
                    Argument("set", f"{name}.…"),
                    f" is for the estimator {name} of ",
                    Argument("method", "id"),
                    ", and ",
                    Argument("dimension"),
                    f" is {estimator}" if estimator else " is not given",
                ),
                remedy=("use ", Argument("dimension", name)),
            )
    if estimator is None or estimator not in settings:
        return {}
    return {"dimension": {"name": estimator, **settings[estimator]}}


def size_and_tell(
    data: AbstractDataset,
    again: str,
    methods: list[str] | None,
    goal: dict[str, Any],
    *,
    compare: bool,
    quiet: bool,
    chosen: str = "",
) -> None:
    """Find the answer with live progress, print it, and write the page where there is a folder."""
    from polariscope.cli.console import quoted, say, say_next
    from polariscope.cli.sizes import print_comparison, print_size
    from polariscope.pages.size import write_size_page
    from polariscope.sizing import family
    from polariscope.sizing.support.checks import make_goal
    from polariscope.sizing.support.compare import compare_sizes
    from polariscope.sizing.support.size import size as find_size

    with SizeProgress(quiet=quiet, chosen=chosen) as progress:
        if compare:
            sizes = tuple(compare_sizes(data, methods, progress=progress, begin=progress.begin, **goal))
        else:
            sizes = (find_size(data, methods[0] if methods else "fondue", progress=progress, **goal),)
    if quiet:
        say("\n".join(f"{found.method}: {found.answer}" for found in sizes) if compare else sizes[0].answer)
    elif compare:
        print_comparison(sizes)
    else:
        print_size(sizes[0])
    out = goal["out"]
    if out is not None and any(found.value is not None for found in sizes):
        page = write_size_page(out, sizes if compare else None)
        if not quiet:
            say(f"Everything is in {page}; open it in a browser.")
    answer = sizes[0]
    if not quiet and answer.value:
        is_kept = out is not None and not compare and answer.target == "latents"
        asked = f"--size {quoted(out)}" if is_kept else f"--latents {answer.n_latents}"
        asked += f" --objective {goal['objective']}"
        asked += f" --beta {answer.value:.3g}" if answer.target == "beta" else ""
        is_careful = family.traits(answer.method).get("is_careful", False)
        rate = goal.get("learning_rate") or (make_goal({}, data, goal).careful_rate() if is_careful else None)
        asked += "" if rate is None else f" --learning-rate {rate:g}"  # larger steps prune more latents
        say_next((f"polariscope train {again} {asked}", "a model of this size"))


def as_words(
    source: str, concepts: dict[str, str], flags: dict[str, object], variants: Sequence[str] = ()
) -> str:
    """The data and the options of the models as they were typed, for the command that comes next.

    >>> as_words("sprites", {"net": "auto", "likelihood": "gaussian"}, {"--image-size": "32", "--exact": False})
    'sprites --likelihood gaussian --image-size 32 --no-exact'
    """
    words = [source]
    for part, name in concepts.items():
        words += [] if name == "auto" else [f"--{part}", name]
    return shlex.join([*words, *typed(flags), *variants])


class SizeProgress:
    """One line for each candidate while it trains: seed, latents, step and Σ E[σ²].

    On a terminal the lines are live; elsewhere (a log file, CI) each is printed once, when its candidate is done. Two
    may train at the same time, so one is done when only another has been heard of for a while. Before the first of them
    it says what was chosen for the user, and with how many threads models are trained; the latter again where it
    changes, as between seeds of which one was begun with other threads.
    """

    def __init__(self, *, quiet: bool = False, chosen: str = "") -> None:
        self.quiet = quiet
        self.chosen = chosen
        self.threads: int | None = None
        self.heading = ""
        self.lines: list[str] = []
        self.training: dict[tuple[int, int], tuple[int, int]] = {}
        """Step of each candidate that is not done, by seed and latents, and where its line is."""
        self.last: tuple[int, int] | None = None
        self.times = 0
        """How many times in a row the last one was heard of."""
        self.live: Any = None

    def __enter__(self) -> SizeProgress:
        from rich.live import Live

        from polariscope.cli.console import printer

        console = printer(errors=True)
        if console.is_terminal and not self.quiet:
            self.live = Live(console=console, refresh_per_second=4, transient=True)
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.live is not None:
            self.live.stop()
        self._finish()

    def begin(self, method: str) -> None:
        """Say whose candidates come next."""
        self._finish()
        self.heading = f"{method}: "

    def __call__(self, seed: int, n_latents: int, step: int, trace: float) -> None:
        from polariscope.sizing.support.size import candidate_line

        candidate = seed, n_latents
        self.times = self.times + 1 if candidate == self.last else 1
        self.last = candidate
        self._announce()
        if candidate in self.training and self.training[candidate][0] >= step:  # begun again
            self._finish()
        if self.times >= ALONE:
            self._finish(but=candidate)
        if candidate not in self.training:
            self.lines.append("")
        _, place = self.training.get(candidate, (0, len(self.lines) - 1))
        self.training[candidate] = step, place
        self.lines[place] = self.heading + candidate_line(seed, n_latents, step, trace)
        if self.live is not None:
            self.live.update("\n".join(self.lines[-MOST_LINES:]))

    def _announce(self) -> None:
        """Say what was chosen, once, and what has changed; above the live lines, where there are any."""
        import torch

        threads = torch.get_num_threads()  # while a model trains, this is its number
        if self.quiet or threads == self.threads:
            return
        self._finish()
        from polariscope.cli.console import plural, say

        words = f"Training with {plural(threads, 'thread')}."
        words = f"{self.chosen}\n{words}" if self.chosen else words
        if self.live is not None:
            self.live.console.print(words)
        else:
            say(words, errors=True)
        self.chosen, self.threads = "", threads

    def _finish(self, but: tuple[int, int] | None = None) -> None:
        """Where nothing is live, say how far candidates came, all but one."""
        from polariscope.cli.console import say

        for candidate in [each for each in self.training if each != but]:
            _, place = self.training.pop(candidate)
            if self.live is None and not self.quiet:
                say(self.lines[place], errors=True)
