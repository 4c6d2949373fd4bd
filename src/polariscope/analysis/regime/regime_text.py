"""Text and tables of a diagnosis: plain text for a terminal, HTML for a notebook."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from polariscope.analysis.code_view import in_units
from polariscope.analysis.regime.rule import POLARISED
from polariscope.analysis.regime.sentences import about_passive_means, about_positions, alphas, stability
from polariscope.core.tables import TextTable
from polariscope.core.text import number, plural

if TYPE_CHECKING:
    from polariscope.analysis.regime.regime import Latent, Partner, Regime, Structure


def tables(regime: Regime) -> list[TextTable]:
    """Return all tables, the most important first."""
    return [
        latents(regime),
        structures(regime),
        truncation(regime),
        partners(regime),
        criteria(regime),
        sensitivity(regime),
    ]


def _table(
    regime: Regime, *header: str, rows: list[list[str]], numbers: Sequence[str], title: str
) -> TextTable:
    """Return a table whose words are those of the unit: latents or channels."""

    def words(text: str) -> str:
        return in_units(text, regime.unit)

    return TextTable(*map(words, header), rows=rows, numbers=tuple(map(words, numbers)), title=words(title))


def latents(regime: Regime) -> TextTable:
    """Return the table of latents, by KL; a deterministic encoder has none."""
    has_kl = not regime.has_note("deterministic")

    def row(latent: Latent) -> list[str]:
        return [
            str(latent.index),
            latent.label,
            f"{latent.confidence:.2f}",
            alphas(latent),
            *(map(number, (latent.kl, *latent.kl_interval)) if has_kl else ()),
            *map(number, (latent.mean_of_mean, latent.std_of_mean)),
            *map(number, (latent.mean_of_variance, latent.variance_of_variance)),
            *(f"{share:.0%}" for share in (latent.known, latent.unknown)),
        ]

    header = [
        *("latent", "type", "confidence", "holds for α", *(("KL", "from", "to") if has_kl else ())),
        *("mean μ", "std μ", "mean σ²", "var σ²", "known", "unknown"),
    ]
    rows = [row(regime.latents[index]) for index in regime.order]
    pooled = (
        "" if regime.positions is None else f", {plural(regime.positions.n_positions, 'position')} pooled"
    )
    order = "Latents by KL in nats (95 % interval)" if has_kl else "Latents"
    title = f"{order}, {regime.n_samples:,} samples{pooled}"
    return _table(regime, *header, rows=rows, numbers=header[2:], title=title)


def structures(regime: Regime) -> TextTable:
    """Return the table of the dependence between the latents of each representation."""

    def row(name: str, structure: Structure) -> list[str]:
        dependence = (
            structure.total_correlation,
            structure.corrected_mutual_information,
            structure.chance_mutual_information,
        )
        rank = (f"{structure.effective_rank:.2f}", str(structure.predicted_rank))
        return [name, *map(number, dependence), *rank]

    # The other four columns are not defined without draws.
    noise_free = ["sampled, noise-free", number(regime.noise_free_total_correlation), *"––––"]
    numbers = ("total correlation", "averaged MI", "chance level", "effective rank", "if polarised")
    return _table(
        regime,
        *("representation", *numbers),
        rows=[row("mean", regime.mean), row("sampled", regime.sampled), noise_free],
        numbers=numbers,
        title="Dependence between latents (nats). Averaged MI is shown minus its chance level (shuffled latents). The "
        "last column is the effective rank of a fully polarised model. Noise-free: averaged over the sampling noise",
    )


def truncation(regime: Regime) -> TextTable:
    """Return the table of total correlation and averaged mutual information of every combination of types."""
    rows = []
    for row in regime.truncation:
        cells = ["–"] * 5
        if row.mean is not None and row.sampled is not None:
            cells = [
                number(row.mean.total_correlation),
                number(row.sampled.total_correlation),
                number(row.noise_free_total_correlation),
                number(row.mean.corrected_mutual_information),
                number(row.sampled.corrected_mutual_information),
            ]
        rows.append([row.selection, str(len(row.latents)), *cells])
    header = ["types", "latents", "TC mean", "TC sampled", "TC noise-free", "MI mean", "MI sampled"]
    title = "Dependence within each combination of types (nats): total correlation (TC), and MI minus its chance level"
    return _table(regime, *header, rows=rows, numbers=header[1:], title=title)


def partners(regime: Regime) -> TextTable:
    """Return the table of the strongest partner of every latent."""

    def cells(partner: Partner) -> list[str]:
        name = "–" if partner.partner is None else str(partner.partner)
        return [name, f"{partner.correlation:+.2f}", str(partner.n_correlated)]

    rows = [
        [
            str(index),
            regime.types[index],
            *cells(regime.mean.partners[index]),
            number(regime.latents[index].redundancy, 2),
            *cells(regime.sampled.partners[index]),
        ]
        for index in regime.order
    ]
    header = ["latent", "type", "mean: with", "r", "|r| > 0.2", "R²", "sampled: with", "r", "|r| > 0.2"]
    title = (
        "Strongest correlation of each latent with another (R²: linear prediction from the latents that are not "
        "passive)"
    )
    return _table(regime, *header, rows=rows, numbers=header[2:], title=title)


def criteria(regime: Regime) -> TextTable:
    """Return the table of the latents in use by other rules."""
    table = regime.criteria
    rows = [
        [name, "".join("+" if used else "·" for used in in_use), str(sum(in_use)), f"{agreement:.0%}"]
        for name, in_use, agreement in zip(table.names, table.in_use, table.agreement[0], strict=True)
    ]
    header = ["criterion", "latents 0, 1, …", "not passive", "agreement"]
    title = "Rules from the literature: + is not passive, · is passive; agreement with the first rule"
    return _table(regime, *header, rows=rows, numbers=header[2:], title=title)


def sensitivity(regime: Regime) -> TextTable:
    """Return the table of the number of latents of each type at other values of α."""
    rows = [
        [f"{alpha:g}", *(str(types.count(name)) for name in regime.counts)]
        for alpha, types in zip(regime.sensitivity.alphas, regime.sensitivity.types, strict=True)
    ]
    title = "Number of latents of each type for other values of α"
    return _table(regime, "α", *regime.counts, rows=rows, numbers=tuple(regime.counts), title=title)


def summary(regime: Regime) -> str:
    """Return the number of latents of each type, the share of the KL in active ones, and the certainty of the types."""
    counts = ", ".join(f"{count} {name}" for name, count in regime.counts.items())
    sentences = [f"{plural(regime.n_latents, 'latent')}: {counts}."]
    kinds = ", ".join(f"{count} {kind}" for kind, count in regime.kinds_of_mixed.items())
    if math.isinf(regime.kl):
        is_point = regime.has_note("deterministic")
        sentences.append(
            "The encoder is deterministic, so there is no KL." if is_point else "The KL is infinite."
        )
    elif regime.kl > 0:
        share = sum(latent.kl for latent in regime.latents if latent.type == "active") / regime.kl
        sentences.append(f"KL {regime.kl:.2f} nats, {share:.0%} of it in active latents.")
    else:
        sentences.append("The KL is 0: the latents carry no information about the input.")
    sentences += [f"Mixed: {kinds}."] if kinds else []
    return in_units(" ".join([*sentences, stability(regime)]), regime.unit)


def remarks(regime: Regime) -> list[str]:
    """Return the lines below the tables."""
    polarisation = regime.polarisation
    if polarisation.delta is None:
        reason = "the encoder is deterministic" if regime.has_note("deterministic") else "the KL is infinite"
        delta = f"Δ_KL is not defined: {reason}."
    else:
        comparison = "polarised" if polarisation.delta < POLARISED else "not fully polarised"
        delta = f"Δ_KL {polarisation.delta:.1%} ({comparison}; the limit is {POLARISED:.0%})."
    texts = [
        delta,
        f"Σ E[σ²] {number(regime.trace)}.",
        f"A latent is passive if {regime.passive_in_words}. The columns known and unknown are the shares of the "
        f"samples with σ² below {regime.alpha:g} and above {1 - regime.alpha:g} of the prior's variance.",
        *([about_passive_means(regime)] if regime.counts["passive"] else []),
        *([f"Likelihood {regime.fit.in_words}."] if regime.fit.in_words else []),
        *([about_positions(regime.positions)] if regime.positions is not None else []),
    ]
    return [in_units(text, regime.unit) for text in texts]


def as_text(regime: Regime) -> str:
    """Return the verdict, the tables and the notes as aligned text."""
    return "\n\n".join(["\n".join(regime.verdict.lines), details(regime)])


def details(regime: Regime) -> str:
    """Return the details of the verdict: counts of types, all tables, notes."""
    return "\n\n".join([summary(regime), str(tables(regime)[0]), evidence(regime)])


def evidence(regime: Regime) -> str:
    """Return the evidence for the table of latents: the other tables, remarks and notes."""
    parts = [str(table) for table in tables(regime)[1:]]
    parts.append("\n".join(remarks(regime)))
    if regime.notes:
        parts.append("\n".join(["Notes", *(f"- {note}" for note in regime.notes)]))
    return "\n\n".join(parts)


def as_html(regime: Regime) -> str:
    """Return the diagnosis as HTML; all text is escaped."""
    parts = [
        f"<p><strong>{html.escape(str(regime.verdict))}</strong></p>",
        f"<p>{html.escape(summary(regime))}</p>",
    ]
    for index, table in enumerate(tables(regime)):
        opened = " open" if index == 0 else ""
        parts.append(
            f"<details{opened}><summary>{html.escape(table.title)}</summary>{table.to_html()}</details>"
        )
    parts += [f"<p>{html.escape(remark)}</p>" for remark in remarks(regime)]
    if regime.notes:
        items = "".join(f"<li>{html.escape(note)}</li>" for note in regime.notes)
        parts.append(f"<p>Notes</p><ul>{items}</ul>")
    return "".join(parts)
