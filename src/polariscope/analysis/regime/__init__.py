"""The polarised regime: active, mixed and passive latents, and their consequences.

The functions use arrays only, so a representation from any library can be diagnosed.
"""
