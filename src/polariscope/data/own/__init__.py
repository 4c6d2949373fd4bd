"""The user's own data: arrays, tables and folders of images."""

from __future__ import annotations

from typing import Literal

Layout = Literal["channels-first", "channels-last"]
"""Position of the channels in an array of images."""
