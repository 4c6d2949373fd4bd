"""Data rendered or generated from their factors, without files to download."""
