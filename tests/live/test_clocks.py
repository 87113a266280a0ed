"""What the machine says of its clock: chrony, the kernel, the application."""

from __future__ import annotations

import shutil
import sys

import pytest

from antecede.live import clocks
from antecede.live.clocks import ask, of_chrony, of_kernel

TRACKING = (
    "A9FEA97B,169.254.169.123,4,1700000000.1,-0.000012345,0.000001,0.00002,1.2,0.001,0.05,"
    "0.000400000,0.000100000,16.1,Normal\n"
)


def test_chrony_tells_offset_dispersion_and_half_of_the_delay() -> None:
    found = of_chrony(TRACKING)
    assert found == (12_345 + 100_000 + 200_000 + 1, "chrony")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not installed"),
        ("506 Cannot talk to daemon\n", "not installed"),
        (TRACKING.replace("Normal", "Not synchronised"), "not synchronized"),
        (TRACKING.replace("0.000400000", "nan"), "unknown format"),
        (TRACKING.replace("0.000400000", "inf"), "unknown format"),
        (TRACKING.replace("0.000400000", "soon"), "unknown format"),
    ],
)
def test_where_chrony_does_not_know_it_says_so(text: str, why: str) -> None:
    found = of_chrony(text)
    assert found.error_ns is None
    assert why in found.source


def test_the_kernel_tells_its_largest_error() -> None:
    assert of_kernel(lambda: (0, 0x2001, 250)) == (250_000, "the kernel")


def test_a_kernel_that_is_not_synchronized_or_refuses_says_so() -> None:
    def refused() -> tuple[int, int, int]:
        raise OSError(1, "Operation not permitted")

    for said, why in (
        (of_kernel(lambda: (5, 0x40, 16_000_000)), "not synchronized"),
        (of_kernel(lambda: (0, 0x40, 1)), "not synchronized"),
        (of_kernel(refused), "not permitted"),
    ):
        assert said.error_ns is None
        assert why in said.source


def test_this_machine_is_asked_and_answers_one_or_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = of_kernel()
    assert found.source.startswith("the kernel")
    assert found.error_ns is None or found.error_ns > 0
    monkeypatch.setattr(sys, "platform", "plan9")
    assert "plan9" in of_kernel().source


def test_the_application_goes_before_chrony_and_chrony_before_the_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clocks, "run_chrony", lambda: TRACKING)
    monkeypatch.setattr(clocks, "_adjtimex", lambda: (0, 0, 777))
    assert ask(5) == (5, "the application")
    assert ask().source == "chrony"
    monkeypatch.setattr(clocks, "run_chrony", lambda: "")
    assert ask() == (777_000, "the kernel")


def test_chrony_is_run_where_it_is_and_missed_where_it_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert clocks.run_chrony() == ""
    monkeypatch.setattr(shutil, "which", lambda _: "/nowhere/chronyc")
    assert clocks.run_chrony() == ""
    monkeypatch.setattr(shutil, "which", lambda _: sys.executable)  # knows no "tracking"
    assert clocks.run_chrony() == ""
