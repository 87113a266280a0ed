"""Calls into a class under test, with a timeout.

Within `guard_calls(timeout_s)` a timer raises `CallTimeout` in a call that exceeds its processor
time, so the traceback ends in the endless line. A call that waits uses no processor time and ends
after `IDLE_FACTOR` timeouts. The timer is SIGALRM in the main thread, elsewhere another thread.

Within `guard_calls`, Ctrl-C raises `UserInterrupt`, unlike a KeyboardInterrupt of the class.
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

from antecede.lab.check.harness.effects import MisuseError

LIMIT_S = 5.0
"""Default timeout of a call, in seconds of processor time."""
PATIENCE = 6
"""Timeouts of wall time after which a call without processor time is ended."""
LOOKS = 4

STUBBORN = 12
"""Number of `CallTimeout` that a call may catch before the process exits."""

Result = TypeVar("Result")

_PACKAGE = Path(__file__).resolve().parents[1]
_HERE = _PACKAGE / "check"


class Hung(BaseException):
    """Timeout of a call. It is no Exception, so that classes do not catch it."""


class Stopped(KeyboardInterrupt):
    """Ctrl-C of the user, unlike a KeyboardInterrupt of the class under test."""


class _Watch:
    """Start of the running call; 0.0: no call is running."""

    def __init__(self) -> None:
        self.began = 0.0
        self.seen = self.used = 0.0
        self.limit_s = 0.0
        """0: calls are not timed."""
        self.raised = 0

    def overdue(self) -> bool:
        """Return True if the running call has used up its time (timer only)."""
        if not self.began:
            return False
        if self.seen != self.began:
            self.seen, self.used = self.began, process_time()
        used, passed = process_time() - self.used, monotonic() - self.began
        return used > self.limit_s or passed > PATIENCE * self.limit_s

    def error(self) -> Hung:
        return Hung(f"did not return within {self.limit_s:g} s")


_watch = _Watch()


def called(function: Callable[..., Result], *arguments: Any, **named: Any) -> Result:
    """Call a function of the class under test; its errors pass through."""
    if _watch.began or not _watch.limit_s:
        return function(*arguments, **named)
    _watch.began, _watch.raised = monotonic(), 0
    try:
        return function(*arguments, **named)
    finally:
        _watch.began = 0.0


@contextmanager
def watching(limit_s: float = LIMIT_S) -> Iterator[None]:
    """Time every `call_guarded` in this block; nested blocks have no effect."""
    if _watch.limit_s or limit_s <= 0:
        yield
        return
    _watch.limit_s, _watch.began = limit_s, 0.0
    main = threading.current_thread() is threading.main_thread()
    try:
        with _by_signal(limit_s) if main and hasattr(signal, "setitimer") else _by_thread(limit_s):
            yield
    finally:
        _watch.limit_s = _watch.began = 0.0


@contextmanager
def _by_signal(limit_s: float) -> Iterator[None]:
    def look(number: int, frame: FrameType | None) -> None:
        if _watch.overdue():
            _watch.raised += 1
            if _watch.raised > STUBBORN:
                _give_up(frame)
            raise _watch.error()

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped

    alarm = signal.signal(signal.SIGALRM, look)
    interrupt = signal.getsignal(signal.SIGINT)
    own = interrupt is signal.default_int_handler
    if own:
        signal.signal(signal.SIGINT, stop)
    signal.setitimer(signal.ITIMER_REAL, limit_s / LOOKS, limit_s / LOOKS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, alarm)
        if own:
            signal.signal(signal.SIGINT, interrupt)


def _give_up(frame: FrameType | None) -> None:
    """Exit the process: a bare `except:` in an endless loop catches every error."""
    stack = [(one.f_code, line) for one, line in traceback.walk_stack(frame)][::-1]
    limit = f"does not return within {_watch.limit_s:g} s"
    print(f"antecede: {_last(stack)}: {limit}, and catches the timeout (bare except:)",
          file=sys.stderr, flush=True)  # fmt: skip
    os._exit(1)


@contextmanager
def _by_thread(limit_s: float) -> Iterator[None]:
    done = threading.Event()
    watched = ctypes.c_ulong(threading.get_ident())

    def look() -> None:
        while not done.wait(limit_s / LOOKS):
            if _watch.overdue():
                ctypes.pythonapi.PyThreadState_SetAsyncExc(watched, ctypes.py_object(Hung))

    watcher = threading.Thread(target=look, name="antecede check: time limit", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def is_own(error: BaseException) -> bool:
    """Return True for Ctrl-C of the user, which stops the check."""
    if isinstance(error, Stopped):
        return True
    # With the handler of a host program, Ctrl-C looks like a KeyboardInterrupt of the class.
    handler = signal.getsignal(signal.SIGINT)
    ours = _watch.limit_s and getattr(handler, "__module__", "") == __name__
    return isinstance(error, KeyboardInterrupt) and not ours and where(error) == ""


def raise_own(error: BaseException) -> None:
    """Raise Ctrl-C of the user again; any other error is a finding."""
    if is_own(error):
        raise error


def in_words(error: BaseException) -> str:
    """Return the text of an error with its location in the class under test."""
    text = said(error)
    place = "" if isinstance(error, MisuseError) else where(error)
    return f"{text} ({place})" if place else text


def said(error: BaseException) -> str:
    """Return the text of an error, without its location."""
    if isinstance(error, Hung):
        return str(error) or str(_watch.error())
    if isinstance(error, MisuseError):
        return str(error)
    try:
        text = str(error)
    except Exception:  # str() of a user's error may raise
        text = "(no text)"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def where(error: BaseException) -> str:
    """Return "FILE, line N, in NAME": the last line of the user's code, or else of a protocol."""
    frames = [(one.f_code, line) for one, line in traceback.walk_tb(error.__traceback__)]
    return _last(frames)


def _last(frames: list[tuple[CodeType, int]]) -> str:
    protocol = ""
    for code, line in reversed(frames):
        path = Path(code.co_filename)
        if _is_users(path):
            return f"{shown(path)}, line {line}, in {code.co_name}"
        if not protocol and path.is_relative_to(_PACKAGE) and not path.is_relative_to(_HERE):
            protocol = f"{path.name}, line {line}, in {code.co_name}"
    return protocol


def _is_users(path: Path) -> bool:
    if not path.is_absolute() or path.is_relative_to(_PACKAGE):
        return False
    text = str(path)
    return not text.startswith((sys.prefix, sys.base_prefix)) and "site-packages" not in text


def shown(path: Path) -> str:
    """Return a path, relative if it is below the working folder."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
