"""The benchmark of other systems reports what it skips, and measures the rest."""

from __future__ import annotations

import ctypes.util
import sys
from importlib.util import find_spec

import pytest

from bench import live_comparison


def test_what_is_not_here_is_skipped_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(live_comparison, "SBIN", "")
    monkeypatch.setattr(live_comparison, "find_spec", lambda name: None)
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None)
    monkeypatch.delenv("LIBCPG", raising=False)
    monkeypatch.setattr(sys, "argv", ["live_comparison", *live_comparison.KINDS])
    live_comparison.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(live_comparison.KINDS)
    assert all(" skipped: " in line for line in lines)
    assert all("is not installed" in line or "runs as root" in line for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize("name", live_comparison.KINDS)
def test_what_is_here_is_measured(name: str) -> None:
    if why := live_comparison.KINDS[name].explain_missing():
        pytest.skip(why)
    rate = live_comparison.measure_kind(name, 4, 0.2)
    assert rate.per_s > 0
    assert rate.cpu_us > 0
    assert rate.lost >= 0


def test_the_modules_it_asks_for_are_those_it_imports() -> None:
    for name, module in (("nats", "nats"), ("zenoh", "zenoh")):
        missing = "is not installed" in live_comparison.KINDS[name].explain_missing()
        assert missing or find_spec(module) is not None
