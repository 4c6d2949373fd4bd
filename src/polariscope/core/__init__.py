"""Foundations of all packages: errors, registry, options, records, files and seeds."""
