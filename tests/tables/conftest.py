"""Commands run in the process of a test."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from antecede.cli import main


class Said(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """Return the output in one line, however wide the terminal."""
        return " ".join(self.out.split())

    @property
    def refused(self) -> str:
        """Return the error of a command that was refused."""
        assert self.code == 2
        return self.err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Said]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Return a function that runs a command; arguments may be paths."""

    def run(*words: object) -> Said:
        code = main([str(word) for word in words])
        return Said(code, *capsys.readouterr())

    return run
