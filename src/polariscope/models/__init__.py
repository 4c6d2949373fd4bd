"""Models: encoder, decoder and prior, and the families they are made of."""
