"""Ctrl-C is heard while work runs that does not hear it."""

from __future__ import annotations

import signal
import threading

import pytest

from antecede.errors import ScenarioError
from antecede.interrupt import Terminated, interruptible, terminable


def test_the_result_and_the_error_are_those_of_the_work() -> None:
    assert interruptible(lambda: 17) == 17

    def fails() -> None:
        raise ScenarioError("no")

    with pytest.raises(ScenarioError, match="no"):
        interruptible(fails)


def test_an_interrupt_ends_the_wait_and_not_the_work() -> None:
    started, go_on, over = threading.Event(), threading.Event(), threading.Event()

    def deaf() -> None:
        started.set()
        go_on.wait()
        over.set()

    def interrupt() -> None:
        started.wait()
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        interruptible(deaf)
    assert not over.is_set()
    go_on.set()
    assert over.wait(60)


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
