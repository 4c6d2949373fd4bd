"""Write skdim_values.json: scikit-dimension's estimates for the manifolds of polariscope/testing/manifolds.py.

Made with scikit-dimension 0.5, NumPy 2.4.6, SciPy 1.17.1, scikit-learn 1.9.1, in an environment of their own:

    pip install scikit-dimension==0.5 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1
    PYTHONPATH=src/polariscope/testing python tests/analysis/dimension/make_skdim_values.py
"""

from __future__ import annotations

import json
from pathlib import Path

K = (3, 5, 10, 20)
CRITERIA = {
    "fo": "FO",
    "participation": "participation_ratio",
    "kaiser": "Kaiser",
    "broken-stick": "broken_stick",
}


def values(x) -> dict[str, float]:
    import skdim

    found = {"checksum": float(abs(x).sum())}
    for k in K:
        for normaliser, unbiased in (("k-1", False), ("k-2", True)):
            for average, comb in (("arithmetic", "mean"), ("harmonic", "mle")):
                fit = skdim.id.MLE(unbiased=unbiased).fit(x, n_neighbors=k, comb=comb)
                found[f"mle {k} {normaliser} {average}"] = float(fit.dimension_)
    for ours, theirs in (("line", "linear"), ("likelihood", "mle")):
        found[f"twonn {ours}"] = float(skdim.id.TwoNN(method=theirs).fit(x).dimension_)
    for ours, theirs in CRITERIA.items():
        found[f"lpca {ours}"] = float(
            skdim.id.lPCA(ver=theirs).fit_pw(x, n_neighbors=50).dimension_pw_.mean()
        )
    scales = skdim.id.GRIDE(multiscale=True, range_max=64).fit(x)
    for scale, value in zip(scales.scales_, scales.dimension_scales_, strict=True):
        found[f"gride {scale}"] = float(value)
    return found


def main() -> None:
    import skdim
    from manifolds import BENCHMARK

    frozen = {name: values(make()) for name, (make, _) in BENCHMARK.items()}
    target = Path(__file__).with_name("skdim_values.json")
    text = json.dumps({"scikit-dimension": skdim.__version__, "values": frozen}, indent=1)
    target.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
