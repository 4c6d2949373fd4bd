"""Summary of a run for a terminal or a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polariscope.runs.run import Run


def summary_rows(run: Run) -> list[tuple[str, str]]:
    """Return the summary of a run: a label and a text for each line.

    :param run: the run.
    """
    model, training, data = (run.settings[part] for part in ("model", "training", "data"))
    done = run.steps[-1] if run.steps else 0
    state = "finished" if run.is_finished else f"{done:,} done"
    if run.is_finished and (stopped := run.folder.stopped_at) is not None:
        state = f"stopped early at {stopped:,}, model of step {run.folder.finished_steps:,}"
    elif not run.is_finished and (diverged := run.folder.diverged_at) is not None:
        state = f"diverged at {diverged:,}, {state}"
    kinds: dict[str, int] = {}
    for artefact in run.artefacts():
        kinds[artefact.kind] = kinds.get(artefact.kind, 0) + 1
    artefacts = ", ".join(kind if count == 1 else f"{count} × {kind}" for kind, count in kinds.items())
    rows = [
        ("run", str(run.path)),
        ("data", _concept(data, "fingerprint", "root_fingerprint", "shape", "variants")),
        ("objective", _concept(run.settings["objective"])),
        ("model", f"{model['net']['name']}, {model['n_latents']} latents"),
        ("training", f"{run.n_steps:,} steps ({state}), seed {training['seed']}"),
        ("results", artefacts or "none yet"),
    ]
    if "variants" in data:
        from polariscope.data.chain import in_words

        rows.insert(2, ("variants", in_words(data["variants"])))
    if damaged := run.folder.artefacts.damaged():
        rows.append(("damaged", ", ".join(path.name for path in damaged)))
    return rows


def _concept(record: dict[str, Any], *hidden: str) -> str:
    options = [f"{key}={value}" for key, value in record.items() if key not in ("name", *hidden)]
    return f"{record['name']} ({', '.join(options)})" if options else record["name"]
