"""Adapters from models of other libraries to the protocol of models."""
