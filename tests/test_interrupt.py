"""Ctrl-C is heard while work runs that does not hear it."""

from __future__ import annotations

import signal
import threading

import pytest

from antecede.errors import ScenarioError
from antecede.interrupt import interruptible


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
