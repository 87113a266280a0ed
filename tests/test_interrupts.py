"""Ctrl-C interrupts compiled work."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from antecede.errors import ConfigError
from antecede.interrupts import Terminated, interruptible, terminable

DEADLINE_S = 60


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """Set the handlers of an ordinary process; nohup and some CI runners ignore signals."""
    usual: dict[int, Any] = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
    }
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_the_result_and_the_error_are_those_of_the_work() -> None:
    assert interruptible(lambda: 17) == 17

    def fails() -> None:
        raise ConfigError("no")

    with pytest.raises(ConfigError, match="no"):
        interruptible(fails)


def test_an_interrupt_ends_the_wait_and_not_the_work() -> None:
    started, go_on, over = threading.Event(), threading.Event(), threading.Event()

    def deaf() -> None:
        started.set()
        go_on.wait(DEADLINE_S)
        over.set()

    def interrupt() -> None:
        assert started.wait(DEADLINE_S)
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        interruptible(deaf)
    assert not over.is_set()
    go_on.set()
    assert over.wait(DEADLINE_S)


def test_the_signal_to_end_is_raised_within_a_block_and_left_alone_outside() -> None:
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    cleaned = []

    def ended() -> None:
        with terminable(), terminable():
            try:
                signal.raise_signal(signal.SIGTERM)
            finally:
                signal.raise_signal(signal.SIGTERM)  # a second one does not disturb this
                cleaned.append(True)

    with pytest.raises(Terminated):
        ended()
    assert cleaned
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_host_programs_own_handler_stays() -> None:
    heard: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        with terminable():
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    assert heard == [signal.SIGTERM]


@pytest.mark.slow
def test_these_tests_need_no_signal_that_is_heard() -> None:
    start = (
        "import signal, sys, pytest\n"
        "for number in (signal.SIGINT, signal.SIGTERM): signal.signal(number, signal.SIG_IGN)\n"
        "sys.exit(pytest.main(sys.argv[1:]))"
    )
    here = str(Path(__file__))
    words = ["-q", "-p", "no:xdist", "-p", "no:cacheprovider", here, "-k", "not these_tests_need"]
    done = subprocess.run(
        [sys.executable, "-c", start, *words],
        capture_output=True,
        text=True,
        timeout=5 * DEADLINE_S,
        check=False,
        cwd=Path(__file__).resolve().parents[1],
    )
    assert done.returncode == 0, done.stdout
