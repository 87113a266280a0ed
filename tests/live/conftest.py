"""Tests that are coroutines run in an event loop of their own."""

from __future__ import annotations

import inspect

import pytest

from tests.live.loops import run


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test, not for ever."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    given = {name: pyfuncitem.funcargs[name] for name in names}
    run(lambda: pyfuncitem.obj(**given))
    return True
