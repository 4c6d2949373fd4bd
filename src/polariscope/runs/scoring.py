"""Scores of a run: cached metrics are read, and missing ones are computed and added to them."""

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

    :param results: cached results of the run.
    :param observations: the observations.
    :param represent: function that encodes them, called if a metric is missing.
    :param metrics: names in a list or separated by commas; a variant follows a colon.
    :param source: "mean" or "sampled".
    :param latents: "all" or "in-use".
    :param options: options of metrics by name.
    :param progress: function called with the name of each metric before it is computed, its number and the number of
        metrics.
    """
    from polariscope.analysis.metrics import Scores
    from polariscope.analysis.score import score, selected_metrics, selected_options

    names, options = selected_metrics(metrics), selected_options(metrics, options)
    artefacts = results.run.folder.artefacts
    # The kinds of the factors are part of the data's fingerprint. Defaults are omitted from the key for compatibility
    # with scores of 0.2.0, which did not have these settings.
    not_default = {
        **({"options": options} if options else {}),
        **({"latents": latents} if latents != "all" else {}),
    }
    key = results.key("scores", observations, {"source": source, **not_default})
    results.used.add(artefacts.file(key))
    earlier: Scores | None = artefacts.read(key, Scores.from_dict)
    missing = [name for name in names if earlier is None or not earlier.holds(name)]
    if not missing and earlier is not None:
        results.touch(key)
        return earlier.only(names)
    results.check_may_compute(key)
    rep = represent(observations)
    # Options belong to a metric and apply to all its variants.
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
        # Another process can have added metrics since the scores were read, and they must not be lost.
        return Scores.from_dict(content).joined(Scores.from_dict(stored)).to_dict()

    if earlier is not None:
        scores = scores.joined(earlier)
    # If no metric applies, nothing is cached, unless the reason is that no latent is in use, which is a result.
    if scores.scores or not scores.covered:
        with results.writing("scores"):
            scores = Scores.from_dict(artefacts.keep(key, scores.to_dict(), join))
            results.touch(key)
    return scores.only(names)
