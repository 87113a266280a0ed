"""Calls into a class under test, with a time limit.

Within `watching(limit_s)` a timer raises `Hung` in a call that exceeds the limit of processor time,
so that the traceback ends in the endless line. Waiting uses no processor time: such a call ends
after `PATIENCE` limits. In the main thread the timer is SIGALRM, elsewhere another thread.

Within `watching`, Ctrl-C of the user arrives as `Stopped`, unlike a KeyboardInterrupt of the class.
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
"""Longest time of a call; longer calls count as endless."""
PATIENCE = 6
"""Multiple of the limit after which a call that uses no processor time is ended."""
LOOKS = 4

STUBBORN = 12
"""Times that a call may catch `Hung` before the process ends."""

Result = TypeVar("Result")

_PACKAGE = Path(__file__).resolve().parents[1]
_HERE = _PACKAGE / "check"


class Hung(BaseException):
    """Raised in a call that does not return; no Exception, so that classes do not catch it."""


class Stopped(KeyboardInterrupt):
    """The user's Ctrl-C, as against a KeyboardInterrupt of the class under examination."""


class _Watch:
    """Start of the running call; 0.0: no call is running."""

    def __init__(self) -> None:
        self.began = 0.0
        self.seen = self.used = 0.0
        self.limit_s = 0.0
        """0: calls are not watched."""
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
    """Watch every `called` in this block; a block within another changes nothing."""
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
    """End the process: a bare `except:` in an endless loop catches every error."""
    stack = [(one.f_code, line) for one, line in traceback.walk_stack(frame)][::-1]
    limit = f"does not return within {_watch.limit_s:g} s"
    print(f"antecede: {_last(stack)}: {limit}, and catches what stops it (a bare except:)",
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
    """Return True for the user's Ctrl-C, which stops the check."""
    if isinstance(error, Stopped):
        return True
    # Without our handler (a host program has its own) it cannot be told from one of the class.
    handler = signal.getsignal(signal.SIGINT)
    ours = _watch.limit_s and getattr(handler, "__module__", "") == __name__
    return isinstance(error, KeyboardInterrupt) and not ours and where(error) == ""


def raise_own(error: BaseException) -> None:
    """Raise the user's Ctrl-C again; any other error is a finding."""
    if is_own(error):
        raise error


def in_words(error: BaseException) -> str:
    """Return the text of an error, with its place in the class under test."""
    text = said(error)
    place = "" if isinstance(error, MisuseError) else where(error)
    return f"{text} ({place})" if place else text


def said(error: BaseException) -> str:
    """Return the text of an error, without a place."""
    if isinstance(error, Hung):
        return str(error) or str(_watch.error())
    if isinstance(error, MisuseError):
        return str(error)
    try:
        text = str(error)
    except Exception:  # a class of the user's own may not say what it is
        text = "(cannot be shown as text)"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def where(error: BaseException) -> str:
    """Return "FILE, line N, in NAME": the last line of the user's, or else of a protocol."""
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
    """Return a path as people would write it: relative where it is below the working folder."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
