"""Each study carried out once, from its runs to its page's values."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from antecede.lab.reproductions.framework.execute import run_locally
from antecede.lab.reproductions.framework.registry import load
from antecede.lab.reproductions.framework.results import Results
from antecede.lab.reproductions.framework.runner import Conducted, conduct

Carried = Callable[[str], Conducted]


@pytest.fixture(scope="session")
def carried_out(tmp_path_factory: pytest.TempPathFactory) -> Carried:
    """Return a function: the name of a study -> its quick runs, carried out when first asked.

    The first to ask pays a minute for all studies: who asks is slow (see the hook below).
    """

    @functools.cache
    def one(name: str) -> Conducted:
        folder = tmp_path_factory.mktemp(name)
        return conduct(load(name), run_locally, folder, quick=True, stream=io.StringIO())

    return one


def mean(results: Results, quantity: str, **where: Any) -> float:
    """Return the mean of a quantity over the runs that are there."""
    found = results.mean(quantity, **where)
    assert found is not None
    return found


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what looks at studies that were carried out."""
    for item in items:
        if "carried_out" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def source() -> Callable[[str], str]:
    """Return a function: name of a source -> the passages of it that tests read (tests/papers)."""
    folder = Path(__file__).resolve().parents[2] / "papers"
    return lambda name: (folder / f"{name}.txt").read_text(encoding="utf-8")
