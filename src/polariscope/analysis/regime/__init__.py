"""The polarised regime: which latent variables are active, mixed and passive, and what follows from it.

Arrays only: a representation from any library can be diagnosed.
"""
