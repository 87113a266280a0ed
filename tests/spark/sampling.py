"""Sampling of expensive tests: `make check` runs some cases, `make soak` all."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def sample_cases(cases: Iterable[Any], some: Collection[Any]) -> list[Any]:
    """Return the cases as parameters; all but `some` are marked `soak`."""
    return [c if c in some else pytest.param(c, marks=pytest.mark.soak) for c in cases]
