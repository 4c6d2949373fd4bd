"""Adapters for estimators."""
