"""Page of a sizing search: the answer, the trained models, and the answers of other methods."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from polariscope.core.paths import user_path
from polariscope.core.text import noun, plural, span
from polariscope.pages.calls import source_call
from polariscope.pages.formatting import value_of
from polariscope.pages.page import Page, Section
from polariscope.pages.sections.size import draw_comparison, method_of, save_figure, size_view, summary_of
from polariscope.pages.settings_groups import data_in_words
from polariscope.sizing.result import Size
from polariscope.storage.search_folder import SearchFolder

TEMPLATE = "sizing.html.j2"


@dataclasses.dataclass(frozen=True)
class Disagreement:
    """The answer of a method compared with that of the first method."""

    size: Size
    difference: float | int | None
    """Answer minus that of the first method; None if one of them has no answer."""
    overlaps: bool
    """If True, the two intervals overlap."""

    @property
    def in_words(self) -> str:
        """Description of the difference.

        >>> first, other = Size(11, (10, 12), "fondue"), Size(8, (7, 9), "elbow")
        >>> [row.in_words for row in disagreements([first, other])]
        ['equal', '−3, intervals do not overlap']
        """
        if self.difference is None:
            return "not comparable"
        if self.difference == 0:
            return "equal"
        sign = "+" if self.difference > 0 else "−"
        text = f"{sign}{abs(self.difference):g}"
        return text if self.overlaps else f"{text}, intervals do not overlap"


@dataclasses.dataclass(frozen=True)
class SizeRecord:
    """Contents of the folder of a search."""

    name: str
    sizes: tuple[Size, ...]
    """The answer, followed by those of other methods if methods were compared."""
    settings: dict[str, Any]
    """Settings of the first method."""


def disagreements(sizes: Sequence[Size]) -> list[Disagreement]:
    """Compare every method with the first, including the first itself."""
    return [_compared(sizes[0], size) for size in sizes]


def _compared(first: Size, size: Size) -> Disagreement:
    if first.value is None or size.value is None or first.interval is None or size.interval is None:
        return Disagreement(size, None, overlaps=False)
    overlaps = size.interval[0] <= first.interval[1] and first.interval[0] <= size.interval[1]
    return Disagreement(size, size.value - first.value, overlaps)


def verdict(sizes: Sequence[Size]) -> str:
    """Return a sentence on the range and agreement of the answers.

    >>> verdict([Size(11, (10, 12), "fondue"), Size(8, (7, 9), "elbow"), Size(12, (12, 12), "id")])
    'The 3 methods give 8 to 12 latents; 1 of the 2 others agrees with fondue within the intervals.'
    """
    answered = [size for size in sizes if size.value is not None]
    values = [size.value for size in answered if size.value is not None]
    if not values:
        return f"None of the {len(sizes)} methods has an answer."
    answers = span(min(values), max(values), between=" to ")
    if len(answered) == 1 < len(sizes):
        return f"Only {answered[0].method} of the {len(sizes)} methods has an answer: {answers} latents."
    subject = f"The {len(sizes)} methods"
    if len(answered) < len(sizes):
        subject = f"The {len(answered)} of {len(sizes)} methods that have an answer"
    if sizes[0].value is None:
        return f"{subject} give {answers} latents; {sizes[0].method} has no answer."
    agree, others = sum(row.overlaps for row in disagreements(sizes)[1:]), len(answered) - 1
    return (
        f"{subject} give {answers} latents; {agree} of the {others} {noun(others, 'other')} "
        f"agree{'s' if agree == 1 else ''} with {sizes[0].method} within the intervals."
    )


def read_sizes(folder: str | Path, compared: Sequence[Size] | None = None) -> SizeRecord:
    """Read the answer in a folder, and the settings of the first method that has an answer.

    :param folder: folder of the search.
    :param compared: (default None) answers of several methods, which are used as they are because methods without an
        answer store nothing.
    """
    folder = user_path(folder)
    folders = [folder] if compared is None else [folder / size.method for size in compared]
    # Without an answer, reading the folder itself raises the error.
    searches = [search for search in map(SearchFolder, folders) if search.has_answer] or [
        SearchFolder(folder)
    ]
    answer, settings = searches[0].read_answer()
    sizes = tuple(compared) if compared is not None else (Size.from_dict(answer),)
    return SizeRecord(folder.resolve().name, sizes, settings)


def write_size_page(folder: str | Path, compared: Sequence[Size] | None = None) -> Path:
    """Write one self-contained page and a picture of its main figure, and return the path of the page.

    :param folder: folder of the search.
    :param compared: (default None) answers of several methods.
    """
    record, search = read_sizes(folder, compared), SearchFolder(folder)
    save_figure(record.sizes, search.picture)
    return size_page(record).write(search.page)


def size_page(record: SizeRecord) -> Page:
    """Return the page of a search, or of several methods.

    :param record: result of :func:`read_sizes`.
    """
    first, several = record.sizes[0], len(record.sizes) > 1
    sections = [Section("glance", "", TEMPLATE, {"cards": _cards(first)}, "glance")]
    if several:
        view = comparison_view(record.sizes)
        sections.append(Section("comparison", "Methods", TEMPLATE, view, "comparison"))
    for index, size in enumerate(record.sizes):
        view = {**size_view(size, f"size-{index}"), "index": index}
        title = size.method if several else "Search"
        sections.append(Section(f"search-{index}", title, TEMPLATE, view, "search"))
    settings = {"groups": _groups(record.settings), "repeat": _repeat(record)}
    sections.append(Section("settings", "Settings", TEMPLATE, settings, "settings"))
    return Page(
        kind="size",
        name=record.name,
        headline=first.answer,
        lead=_lead(first),
        facts=_facts(record),
        record=record,
        sections=sections,
        context={"size": first},
    )


def _lead(size: Size) -> str:
    """Return sentences on the state of the search, its answer and the noise."""
    noise = "" if size.noise is None else f"{size.noise.in_words}."
    return " ".join(part for part in (size.state, size.in_words or method_of(size), noise) if part)


def _facts(record: SizeRecord) -> list[tuple[str, str]]:
    size = record.sizes[0]
    facts = [("data", record.settings["data"]["name"]), ("method", size.method)]
    if size.threshold is not None:
        facts.append((f"threshold of {size.statistic}", value_of(size.threshold)))
    if size.target == "beta":
        facts.append(("latents", str(size.n_latents)))
    answers = ("none" if value is None else f"{value:.3g}" for value in size.per_seed)
    return [*facts, ("answer of each seed", ", ".join(answers))]


def comparison_view(sizes: Sequence[Size]) -> dict[str, Any]:
    """Return the values for the template that compares several answers."""
    return {
        "verdict": verdict(sizes),
        "chart": draw_comparison(sizes, "comparison"),
        "rows": [(row, summary_of(row.size)) for row in disagreements(sizes)],
    }


def _cards(size: Size) -> list[dict[str, str]]:
    models = len({(trial.seed, trial.n_latents, trial.beta) for trial in size.trials})
    seeds = len(size.per_seed)
    ends = [f"{end:.3g}" for end in dict.fromkeys(size.interval or ())]  # one number if both ends are equal
    searched = "β" if size.target == "beta" else "latents"
    shown = [
        (searched, "–" if size.value is None else f"{size.value:.4g}", f"by {size.method}"),
        ("interval", "–".join(ends) or "–", size.meaning_of_interval),
        *_other_numbers(size),
        ("gradient steps", f"{size.n_steps:,}", "in all"),
        ("models", f"{models:,}", plural(seeds, "seed")),
    ]
    return [dict(zip(("name", "value", "about"), card, strict=True)) for card in shown]


def _other_numbers(size: Size) -> list[tuple[str, str, str]]:
    """Return name, value and remark of the number of latents in use and of the intrinsic dimension of the data."""
    cards = []
    if size.verdict is not None:
        cards.append(
            ("in use in the fit", str(size.verdict.n_in_use), f"of {size.verdict.n_latents} latents")
        )
    if size.dimension is not None:
        number = "–" if size.dimension.rounded is None else str(size.dimension.rounded)
        cards.append(("intrinsic dimension of the data", number, size.dimension.in_words))
    return cards


def _groups(settings: dict[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the settings as titled lists of names and values."""
    parts = {key: value for key, value in settings.items() if isinstance(value, dict) and value}
    plain = {key: value for key, value in settings.items() if not isinstance(value, dict)}
    parts["data"] = data_in_words(parts["data"])
    return [
        (title, [(key.replace("_", " "), value_of(value)) for key, value in group.items()])
        for title, group in {"search": plain, **parts}.items()
    ]


def _repeat(record: SizeRecord) -> str:
    """Return Python code that repeats the search."""
    settings, first = record.settings, record.sizes[0]
    compared = len(record.sizes) > 1
    call, which = (
        ("compare_sizes", [size.method for size in record.sizes]) if compared else ("size", first.method)
    )
    # The recipe contains the learning rate if the caller set one; that of the goal can be a default of the method.
    goal = {
        key: value for key, value in settings["goal"].items() if value is not None and key != "learning_rate"
    }
    arguments = {
        "methods" if compared else "method": which,
        "target": settings["target"],
        **({"n_latents": first.n_latents} if first.target == "beta" else {}),
        **{key: settings[key] for key in ("seed", "seeds")},
        **goal,
        **settings.get("options", {}),
        **settings["recipe"],
        "out": record.name,
    }
    lines = [f"    {key}={value!r}," for key, value in arguments.items()]
    source = source_call(settings["data"])
    return "\n".join(["import polariscope as ps", "", source, f"ps.{call}(", "    data,", *lines, ")"])
