"""Variational autoencoder as a scikit-learn transformer."""

from __future__ import annotations

from polariscope.estimators.vae import VAE

__all__ = ["VAE"]
