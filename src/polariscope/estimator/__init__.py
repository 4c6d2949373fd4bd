"""The variational autoencoder as a scikit-learn transformer."""

from __future__ import annotations

from polariscope.estimator.vae import VAE

__all__ = ["VAE"]
