"""The whole story in a page: draw a dataset, train, encode, name the variables, write the report.

python examples/minimal.py [RUN] [STEPS]
"""

import sys

import polariscope as ps

run = sys.argv[1] if len(sys.argv) > 1 else "runs/minimal"
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 2_000

# A dataset answers by index: images, and the factors they were drawn from.
data = ps.load_dataset("sprites", image_size=32)
print(f"{len(data)} images of {data.shape}, drawn from {', '.join(data.factor_names)}")

# Train. Stop it with Ctrl-C and run this file again: it goes on where it was, to the same bytes.
model = ps.train(
    data, objective="beta", beta=4.0, net="conv", n_latents=10, steps=steps, learning_rate=1e-3, seed=0,
    out=run, progress=True,
)  # fmt: skip

# Encode once; everything after works on arrays.
rep = ps.encode(model, data, n_samples=5_000, seed=0)
print("mean, variance, sampled:", rep.mean.shape, rep.variance.shape, rep.sampled.shape)

# Which latents are in use?
regime = ps.diagnose(rep)
print(regime)
codes = rep.mean[:, regime.select("in-use")]
print(f"Keep these columns for what comes next: {regime.select('in-use')}, an array of {codes.shape}.")

print("The report:", ps.report(run))
