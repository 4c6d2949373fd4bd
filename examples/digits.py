"""An embedding of the digits: how many latents, and what a linear probe reads off them, beside PCA.

python examples/digits.py [LATENTS] [STEPS]
"""

import sys
import time

from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import polariscope as ps

n_latents = int(sys.argv[1]) if len(sys.argv) > 1 else "fondue"
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 2_000

X, digit = load_digits(return_X_y=True)
X_train, X_test, digit_train, digit_test = train_test_split(
    X, digit, test_size=0.3, stratify=digit, random_state=0
)

# FONDUE finds the number of latents, unless one is given; passive ones are left out of the embedding.
started = time.perf_counter()
vae = ps.VAE(n_latents=n_latents, steps=steps, random_state=0).fit(X_train)
seconds = time.perf_counter() - started
if vae.size_ is not None:
    print(vae.size_)
counts = ", ".join(f"{count} {name}" for name, count in vae.regime_.counts.items())
print(f"{vae.n_latents_} latents: {counts}. Fitted to {X_train.shape} in {seconds:.0f} s.\n")

# What a linear classifier reads off it, beside PCA of the same width, on digits that neither has seen.
width = len(vae.kept_)
pca = PCA(width).fit(X_train)
print(f"{width} columns         probe accuracy   log p(x), nats")
for name, embedding in {"VAE": vae, "PCA": pca}.items():
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2_000))
    probe.fit(embedding.transform(X_train), digit_train)
    accuracy = probe.score(embedding.transform(X_test), digit_test)
    print(f"{name:<18} {accuracy:14.3f} {embedding.score(X_test):16.1f}")
