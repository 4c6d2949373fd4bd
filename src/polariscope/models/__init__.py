"""Models: encoder, decoder and prior, and the families of their components."""
