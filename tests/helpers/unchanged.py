"""Check that a refused call changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def unchanged(member: Any) -> Iterator[None]:
    """Assert that a protocol object or a group has the same snapshot afterwards."""
    before = member.snapshot()
    yield
    assert member.snapshot() == before
