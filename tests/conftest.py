"""Fixtures of all tests."""

from __future__ import annotations

from collections.abc import Iterator

import jaxtyping
import pytest
import torch


@pytest.fixture
def unannotated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Annotations are not checked, as outside the tests: what is refused, is refused by the function itself."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Threads cost more than they bring in networks this small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
