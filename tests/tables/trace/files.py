"""Helpers that write small input files and read back traces."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from antecede.cli import main
from antecede.tables.trace.arrow import Trace


def write_file(folder: Path, content: object, name: str = "t.json") -> Path:
    """Write bytes or text unchanged, any other value as JSON."""
    path = folder / name
    if not isinstance(content, bytes):
        content = (content if isinstance(content, str) else json.dumps(content)).encode()
    path.write_bytes(content)
    return path


def write_lines(path: Path, rows: Iterable[Any]) -> Path:
    """Write JSON lines; a text is written unchanged as a line."""
    texts = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    return path


def get_column(trace: Trace, name: str) -> list[Any]:
    found: list[Any] = trace.events[name].to_pylist()
    return found


def get_causes(trace: Trace) -> dict[str, list[str]]:
    return dict(zip(get_column(trace, "id"), get_column(trace, "causes"), strict=True))


def list_quarantined(trace: Trace) -> list[tuple[Any, str]]:
    """Return line and reason of each quarantined record."""
    return [(row["line"], str(row["reason"])) for row in trace.quarantine.to_pylist()]


def run_command(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """Return the output of a command that succeeds."""
    assert main([*map(str, words)]) == 0
    return capsys.readouterr().out


def join_lines(said: str) -> str:
    return " ".join(said.split())
