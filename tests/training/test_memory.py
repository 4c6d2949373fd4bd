"""Keeping freed memory is asked for where the C library understands it."""

from __future__ import annotations

import platform

from polariscope.training.memory import keep_freed_memory


def test_glibc_listens_and_others_are_left_alone():
    assert keep_freed_memory() == (platform.libc_ver()[0] == "glibc")
