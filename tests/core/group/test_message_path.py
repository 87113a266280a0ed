"""Path of one message through the package, as in docs/design/architecture.md."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

import antecede
from antecede import Group

ROOT = str(Path(antecede.__file__).parent)
NAMES = ["a", "b", "c"]


class Walk(NamedTuple):
    files: int
    crossings: int
    """Calls from a function of one file to a function of another."""


def walked(call: Callable[[], Any]) -> tuple[Walk, Any]:
    files: set[str] = set()
    crossings = 0

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal crossings
        name, caller = frame.f_code.co_filename, frame.f_back
        if event != "call" or not name.startswith(ROOT):
            return
        files.add(name)
        while caller is not None and not caller.f_code.co_filename.startswith(ROOT):
            caller = caller.f_back
        crossings += caller is not None and caller.f_code.co_filename != name

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        result = call()
    finally:
        sys.setprofile(before)
    return Walk(len(files), crossings), result


def group_at_work(order: str, *, closed: bool) -> dict[str, Group]:
    """Return three members that have received messages of each other, with warm caches."""
    members = {name: Group(name, NAMES if closed else None, order=order) for name in NAMES}
    for _ in range(3):
        for name in NAMES:
            wire = members[name].send(b"x")
            for other in members.keys() - {name}:
                members[other].receive(bytes(wire))
    return members


@pytest.mark.parametrize(
    ("order", "closed", "sending", "receiving"),
    [
        ("causal", True, Walk(10, 12), Walk(9, 12)),
        ("causal", False, Walk(11, 17), Walk(11, 36)),
        ("bss", True, Walk(12, 20), Walk(11, 22)),
    ],
)
def test_a_message_walks_through_no_more_than_the_page_says(
    order: str, closed: bool, sending: Walk, receiving: Walk
) -> None:
    members = group_at_work(order, closed=closed)
    out, wire = walked(lambda: members["a"].send(b"hi"))
    into, read = walked(lambda: members["b"].receive(bytes(wire)))
    assert [message.payload for message in read] == [b"hi"]
    assert out.files <= sending.files
    assert out.crossings <= sending.crossings
    assert into.files <= receiving.files
    assert into.crossings <= receiving.crossings
