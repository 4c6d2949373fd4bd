"""Every net keeps the contract of its family."""

from __future__ import annotations

from polariscope.models.nets import net
from polariscope.testing import NetContract


class TestNets(NetContract):
    names = list(net)
