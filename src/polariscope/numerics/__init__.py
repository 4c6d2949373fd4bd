"""Mathematics of arrays with no variational autoencoder in it."""
