"""Scores of a run: metrics that were scored before are read, the others are computed and joined with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from polariscope.data.observations import Observations
from polariscope.runs.results import CachedResults

if TYPE_CHECKING:
    from polariscope.analysis.metrics import Scores
    from polariscope.analysis.representation import Representation
    from polariscope.core.progress import AnyProgress


def scores_of(
    results: CachedResults,
    observations: Observations,
    represent: Callable[[Observations], Representation],
    metrics: str | Sequence[str],
    source: str,
    latents: str,
    options: Mapping[str, Mapping[str, object]] | None,
    progress: AnyProgress | None,
) -> Scores:
    """Return the scores of a run; the arguments are those of :meth:`polariscope.runs.run.Run.scores`.

    :param results: those of the run.
    :param observations: what is scored.
    :param represent: encodes them, if a metric is missing.
    :param metrics: names joined by commas or in a list; a variant follows a colon.
    :param source: "mean" or "sampled".
    :param latents: "all" or "in-use".
    :param options: options of metrics by name.
    :param progress: told the name of each metric before it is computed, its number and how many there are.
    """
    from polariscope.analysis.metrics import Scores
    from polariscope.analysis.score import score, selected_metrics, selected_options

    names, options = selected_metrics(metrics), selected_options(metrics, options)
    artefacts = results.run.folder.artefacts
    # The kinds of the factors are part of the data's fingerprint. As in 0.2.0, neither default is part of the key.
    not_default = {
        **({"options": options} if options else {}),
        **({"latents": latents} if latents != "all" else {}),
    }
    key = results.key("scores", observations, {"source": source, **not_default})
    results.used.add(artefacts.file(key))
    stored = artefacts.read(key)
    earlier = None if stored is None else Scores.from_dict(stored)
    missing = [name for name in names if earlier is None or not earlier.holds(name)]
    if not missing and earlier is not None:
        results.touch(key)
        return earlier.only(names)
    results.check_may_compute(key)
    rep = represent(observations)
    members = {name.partition(":")[0] for name in missing}
    options_of_missing = {name: options[name] for name in options if name in members}
    scores = score(
        rep,
        missing,
        observations.seed,
        options=options_of_missing,
        source=source,
        latents=latents,
        progress=progress,
    )

    def join(stored: Any, content: Any) -> Any:
        # Another process may have scored other metrics since they were read; neither loses its own.
        return Scores.from_dict(content).joined(Scores.from_dict(stored)).to_dict()

    if earlier is not None:
        scores = scores.joined(earlier)
    # If no metric applies nothing is cached, except when no latent is covered: then that is the result.
    if scores.scores or not scores.covered:
        with results.writing("scores"):
            scores = Scores.from_dict(artefacts.keep(key, scores.to_dict(), join))
            results.touch(key)
    return scores.only(names)
