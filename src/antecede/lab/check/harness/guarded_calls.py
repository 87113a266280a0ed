"""Calls into a class under test, with a timeout.

Within `watching(timeout_s)` a timer raises `CallTimeout` in a call that exceeds its processor
time, so the traceback ends in the endless line. A call that waits uses no processor time and ends
after `IDLE_FACTOR` timeouts. The timer is SIGALRM in the main thread, elsewhere another thread.

Within `watching`, Ctrl-C raises `UserInterrupt`, unlike a KeyboardInterrupt of the class.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, process_time
from types import CodeType, FrameType
from typing import Any, TypeVar

from antecede.lab.check.harness.effects import ContractError

LIMIT_S = 5.0
"""Default timeout of a call, in seconds of processor time."""
IDLE_FACTOR = 6
"""Timeouts of wall time after which a call without processor time is ended."""
POLLS_PER_TIMEOUT = 4

MAX_CAUGHT_TIMEOUTS = 12
"""Number of `CallTimeout` that a call may catch before the process exits."""

Result = TypeVar("Result")

_PACKAGE = Path(__file__).resolve().parents[1]
_HERE = _PACKAGE / "check"


class CallTimeout(BaseException):
    """Timeout of a call. It is no Exception, so that classes do not catch it."""


class UserInterrupt(KeyboardInterrupt):
    """Ctrl-C of the user, unlike a KeyboardInterrupt of the class under test."""


class _CallTimer:
    """Start of the running call; 0.0: no call is running."""

    def __init__(self) -> None:
        self.started = 0.0
        self.seen = self.used = 0.0
        self.timeout_s = 0.0
        """0: calls are not timed."""
        self.raised = 0

    def is_overdue(self) -> bool:
        """Return True if the running call has used up its time (timer only)."""
        if not self.started:
            return False
        if self.seen != self.started:
            self.seen, self.used = self.started, process_time()
        used, passed = process_time() - self.used, monotonic() - self.started
        return used > self.timeout_s or passed > IDLE_FACTOR * self.timeout_s

    def make_error(self) -> CallTimeout:
        return CallTimeout(f"did not return within {self.timeout_s:g} s")


_timer = _CallTimer()


def call_guarded(function: Callable[..., Result], *arguments: Any, **named: Any) -> Result:
    """Call a function of the class under test; its errors pass through."""
    if _timer.started or not _timer.timeout_s:
        return function(*arguments, **named)
    _timer.started, _timer.raised = monotonic(), 0
    try:
        return function(*arguments, **named)
    finally:
        _timer.started = 0.0


@contextmanager
def watch_calls(timeout_s: float = LIMIT_S) -> Iterator[None]:
    """Time every `call_guarded` in this block; nested blocks have no effect."""
    if _timer.timeout_s or timeout_s <= 0:
        yield
        return
    _timer.timeout_s, _timer.started = timeout_s, 0.0
    main = threading.current_thread() is threading.main_thread()
    try:
        with (
            _guard_by_signal(timeout_s)
            if main and hasattr(signal, "setitimer")
            else _guard_by_thread(timeout_s)
        ):
            yield
    finally:
        _timer.timeout_s = _timer.started = 0.0


@contextmanager
def _guard_by_signal(timeout_s: float) -> Iterator[None]:
    def look(number: int, frame: FrameType | None) -> None:
        if _timer.is_overdue():
            _timer.raised += 1
            if _timer.raised > MAX_CAUGHT_TIMEOUTS:
                _exit_process(frame)
            raise _timer.make_error()

    def stop(number: int, frame: FrameType | None) -> None:
        raise UserInterrupt

    alarm = signal.signal(signal.SIGALRM, look)
    interrupt = signal.getsignal(signal.SIGINT)
    own = interrupt is signal.default_int_handler
    if own:
        signal.signal(signal.SIGINT, stop)
    signal.setitimer(
        signal.ITIMER_REAL, timeout_s / POLLS_PER_TIMEOUT, timeout_s / POLLS_PER_TIMEOUT
    )
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, alarm)
        if own:
            signal.signal(signal.SIGINT, interrupt)


def _exit_process(frame: FrameType | None) -> None:
    """Exit the process: a bare `except:` in an endless loop catches every error."""
    stack = [(one.f_code, line) for one, line in traceback.walk_stack(frame)][::-1]
    limit = f"does not return within {_timer.timeout_s:g} s"
    print(f"antecede: {_find_location(stack)}: {limit}, and catches the timeout (bare except:)",
          file=sys.stderr, flush=True)  # fmt: skip
    os._exit(1)


@contextmanager
def _guard_by_thread(timeout_s: float) -> Iterator[None]:
    done = threading.Event()
    watched = ctypes.c_ulong(threading.get_ident())

    def look() -> None:
        while not done.wait(timeout_s / POLLS_PER_TIMEOUT):
            if _timer.is_overdue():
                ctypes.pythonapi.PyThreadState_SetAsyncExc(watched, ctypes.py_object(CallTimeout))

    watcher = threading.Thread(target=look, name="antecede check: time limit", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def is_user_interrupt(error: BaseException) -> bool:
    """Return True for Ctrl-C of the user, which stops the check."""
    if isinstance(error, UserInterrupt):
        return True
    # With the handler of a host program, Ctrl-C looks like a KeyboardInterrupt of the class.
    handler = signal.getsignal(signal.SIGINT)
    ours = _timer.timeout_s and getattr(handler, "__module__", "") == __name__
    return isinstance(error, KeyboardInterrupt) and not ours and find_error_location(error) == ""


def raise_own(error: BaseException) -> None:
    """Raise Ctrl-C of the user again; any other error is a finding."""
    if is_user_interrupt(error):
        raise error


def in_words(error: BaseException) -> str:
    """Return the text of an error with its location in the class under test."""
    text = format_error(error)
    place = "" if isinstance(error, ContractError) else find_error_location(error)
    return f"{text} ({place})" if place else text


def format_error(error: BaseException) -> str:
    """Return the text of an error, without its location."""
    if isinstance(error, CallTimeout):
        return str(error) or str(_timer.make_error())
    if isinstance(error, ContractError):
        return str(error)
    try:
        text = str(error)
    except Exception:  # str() of a user's error may raise
        text = "(no text)"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def find_error_location(error: BaseException) -> str:
    """Return "FILE, line N, in NAME": the last line of the user's code, or else of a protocol."""
    frames = [(one.f_code, line) for one, line in traceback.walk_tb(error.__traceback__)]
    return _find_location(frames)


def _find_location(frames: list[tuple[CodeType, int]]) -> str:
    protocol = ""
    for code, line in reversed(frames):
        path = Path(code.co_filename)
        if _is_user_file(path):
            return f"{format_path(path)}, line {line}, in {code.co_name}"
        if not protocol and path.is_relative_to(_PACKAGE) and not path.is_relative_to(_HERE):
            protocol = f"{path.name}, line {line}, in {code.co_name}"
    return protocol


def _is_user_file(path: Path) -> bool:
    if not path.is_absolute() or path.is_relative_to(_PACKAGE):
        return False
    text = str(path)
    return not text.startswith((sys.prefix, sys.base_prefix)) and "site-packages" not in text


def format_path(path: Path) -> str:
    """Return a path, relative if it is below the working folder."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
