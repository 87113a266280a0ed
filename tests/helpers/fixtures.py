"""Calls of commands, and short names of the types of fixtures."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from antecede.cli import main

Capture: TypeAlias = pytest.CaptureFixture[str]
Patch: TypeAlias = pytest.MonkeyPatch
Call: TypeAlias = Callable[..., str]


@pytest.fixture
def said(capsys: Capture) -> Call:
    """Return a function: the words of a command that succeeds -> its output."""

    def call(*words: object) -> str:
        capsys.readouterr()
        assert main(list(map(str, words))) == 0
        return capsys.readouterr().out

    return call


@pytest.fixture
def refused(capsys: Capture) -> Call:
    """Return a function: the words of a command that ends with 2 -> its errors."""

    def call(*words: object) -> str:
        capsys.readouterr()
        assert main(list(map(str, words))) == 2
        return capsys.readouterr().err

    return call
