"""Variational autoencoder as a scikit-learn transformer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polariscope.estimators.vae import VAE

__all__ = ["VAE"]


def __getattr__(name: str) -> Any:
    # Imported at first use, because the adapter in this package is asked about every object.
    if name == "VAE":
        from polariscope.estimators.vae import VAE

        return VAE
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
