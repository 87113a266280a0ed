"""The benchmarks run, with few members and messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import pytest

from bench import (
    groups,
    large_groups,
    matrix_merge,
    matrix_time,
    receive_path,
    silent_group,
    stream_shard,
    traces,
)


@pytest.mark.parametrize("entry", receive_path.ENTRIES, ids=lambda entry: entry.name)
def test_the_receive_path_of(
    entry: receive_path.ReceiveEntry,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(receive_path, "MEMBERS", (7,))
    monkeypatch.setattr(receive_path, "MESSAGES", 60)
    monkeypatch.setattr(receive_path, "ENTRIES", [entry])
    receive_path.main([])
    heading, row = capsys.readouterr().out.splitlines()
    assert heading.startswith("protocol")
    assert row.startswith(entry.name)
    assert all(float(cell) > 0 for cell in row.split()[-3:])


SMALL: dict[ModuleType, tuple[Mapping[str, Any], Callable[[], None]]] = {
    groups: ({"MEMBERS": (5,), "MESSAGES": 30, "REPEATS": 1}, lambda: groups.main([])),
    large_groups: ({"MEMBERS": (5, 10), "MESSAGES": 40, "REPEATS": 1}, large_groups.main),
    matrix_merge: ({"MEMBERS": (5,), "REPEATS": 1}, matrix_merge.main),
    matrix_time: ({"SIDES": (5,), "REPEATS": 1}, matrix_time.main),
    silent_group: ({"MESSAGES": 400, "STEP": 100}, lambda: silent_group.main([])),
    stream_shard: (
        {"SMALL": 10, "LARGE": 40, "GROUPS": 5, "STEPS": 2},
        lambda: stream_shard.measure(100, 60),
    ),
    traces: ({"CHAIN": 50, "CAUSES": 20}, traces.main),
}


@pytest.mark.slow
@pytest.mark.parametrize("module", SMALL, ids=lambda module: module.__name__)
def test_the_bench_of(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes, main = SMALL[module]
    for name, value in sizes.items():
        assert hasattr(module, name), "or it would run at its full size"
        monkeypatch.setattr(module, name, value)
    main()
    rows = capsys.readouterr().out.splitlines()
    assert rows
    assert any(character.isdigit() for character in rows[-1])
