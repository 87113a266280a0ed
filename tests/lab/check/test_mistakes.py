"""Common mistakes of protocol authors: each is a finding with its location."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from antecede.errors import InputError
from antecede.lab.check.check import run_check
from antecede.lab.check.results import (
    CONTRACT_BROKEN,
    ENDLESS,
    RAISED,
    SHARED_STATE,
    TIMED_OUT,
    WRONG_REASON,
    Failure,
)

START = """
import itertools, sys, time
from typing import NamedTuple
from antecede.core.protocols.base import *
from antecede.core.protocols.base import Hold, Held

class Note(NamedTuple):
    sender: int
    seq: int
    payload: object
    extra: object = ()

class Plain:
    def __init__(self, sender, seq, payload):
        self.sender, self.seq, self.payload = sender, seq, payload

class Mine(Protocol):
    guarantee = Guarantee(Relation.FIFO if "kept" in "{init}" else Relation.NONE)
    box = []

    def __init__(self, me, members):
        super().__init__(me, members)
        self.sent = 0
        self.seen = set()
        {init}

    def note(self, payload, extra=()):
        self.sent += 1
        return Note(self.me, self.sent, payload, extra)

    def send(self, payload, *, now=None, after=()):
        {send}
        return [Transmit(self.others(), self.note(payload))]

    def receive(self, message, *, now=None):
        {receive}
        if message in self.seen or message.sender == self.me:
            return [Discard(message, DUPLICATE)]
        self.seen.add(message)
        return [Deliver(message)]
"""
LINES = START.splitlines()
SEND, RECEIVE = (LINES.index("        {" + what + "}") + 1 for what in ("send", "receive"))


TICK = """
        if message not in self.seen:
            self.seen.add(message)
            return [Deliver(message)]
        return [Discard(message, DUPLICATE)]

    def tick(self, now):
        while True:
            message = None"""


def find_failure(
    tmp_path: Path, *, limit_s: float = 5.0, parts: Mapping[str, str] | None = None, **lines_of: str
) -> Failure:
    file = tmp_path / "mine.py"
    lines_of |= parts or {}
    lines = {name: lines_of.get(name, "pass") for name in ("init", "send", "receive")}
    text = START
    for name, line in lines.items():
        text = text.replace("{" + name + "}", line)
    file.write_text(text, encoding="utf-8")
    failures = run_check(f"{file}:Mine", limit_s=limit_s).failures
    assert failures
    return failures[0]


def transmit(message: str) -> str:
    return f"return [Transmit(self.others(), {message})]"


@pytest.mark.slow
def test_the_class_without_a_mistake_passes(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        find_failure(tmp_path)


@pytest.mark.parametrize(
    ("part", "line", "words"),
    [
        ("send", "return Transmit(self.others(), self.note(payload))", "send returned a bare Tran"),
        ("receive", "return Deliver(message)", "receive returned a bare Deliver; return a sequ"),
        ("receive", "return None", "receive returned None; return a sequence of effects"),
        ("receive", "return 5", "receive returned 5 (int); return a sequence of effects"),
        ("receive", "return [None]", "receive returned None among its effects"),
        ("receive", "return ['x']", "receive returned 'x' (str) among its effects"),
        ("receive", "return [[Deliver(message)]]", "; return one flat sequence"),
        ("send", transmit("self.note(payload, [1])"), "its field extra holds a list; use a tuple"),
        (
            "send",
            transmit("self.note(payload, {})"),
            "its field extra holds a dict; use a tuple of pairs",
        ),
        ("send", transmit("Plain(self.me, 1, payload)"), "a Plain, which compares by identity"),
        ("send", transmit("payload"), "which has no sender"),
        ("send", "return [Transmit(self.members, self.note(payload))]", "to the member itself"),
        ("send", "return [Transmit((7,), self.note(payload))]", "to 7 (int), which was never in"),
        ("send", "return [Transmit(1 - self.me, self.note(payload))]", "`to` is a tuple of member"),
        ("send", transmit("self.note((payload, 1))"), "keep `payload` unchanged"),
        ("receive", "return [Hold(message, 3)]", "expected a tuple of MessageId"),
        ("receive", "return [Hold(message, (3,))]", "expected MessageId(sender, seq)"),
    ],
)
def test_what_no_protocol_may_give_back_is_named(
    tmp_path: Path, part: str, line: str, words: str
) -> None:
    failure = find_failure(tmp_path, parts={part: line})
    assert failure.what == CONTRACT_BROKEN
    assert words in failure.detail
    assert failure.actions


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("sys.exit()", "SystemExit"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("{}['k']", "KeyError: 'k'"),
    ],
)
def test_whatever_the_class_raises_is_a_counterexample_with_its_line(
    tmp_path: Path, line: str, words: str
) -> None:
    failure = find_failure(tmp_path, receive=line)
    assert failure.what == RAISED
    assert words in failure.detail
    assert f"mine.py, line {RECEIVE}, in receive" in failure.detail
    assert failure.lines()[-1].startswith("arrive")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "line", "place"),
    [
        ("receive", "while True: pass", f"line {RECEIVE}, in receive"),
        ("send", "time.sleep(1_000)", f"line {SEND}, in send"),
        (
            "receive",
            "yield from (Deliver(message) for _ in iter(int, 1) if False)",
            f"line {RECEIVE}",
        ),
    ],
)
def test_a_call_that_does_not_return_is_a_counterexample_with_its_line(
    tmp_path: Path, part: str, line: str, place: str
) -> None:
    failure = find_failure(tmp_path, limit_s=0.3, parts={part: line})
    assert failure.what == TIMED_OUT
    assert "did not return within 0.3 s" in failure.detail
    assert place in failure.detail


@pytest.mark.slow
def test_a_tick_that_does_not_return(tmp_path: Path) -> None:
    failure = find_failure(tmp_path, limit_s=0.3, receive="pass" + TICK)
    assert failure.what == TIMED_OUT
    assert "in tick" in failure.detail


BLOCKED = """
        if message not in self.seen:
            self.seen.add(message)
            return [Deliver(message)]
        return [Discard(message, DUPLICATE)]

    def list_held(self):
        """


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "what", "words"),
    [
        ("while True: pass", TIMED_OUT, "in list_held"),
        ("raise SystemExit(0)", RAISED, "SystemExit: 0"),
        ("return None", RAISED, "NoneType"),
    ],
)
def test_what_a_group_asks_must_be_answered(
    tmp_path: Path, line: str, what: str, words: str
) -> None:
    failure = find_failure(tmp_path, limit_s=0.3, receive="pass" + BLOCKED + line)
    assert (failure.what, words in failure.detail) == (what, True)


def test_an_error_that_cannot_be_shown_is_a_finding(tmp_path: Path) -> None:
    broken = "raise type('Broken', (Exception,), {'__str__': lambda self: 1 / 0})()"
    failure = find_failure(tmp_path, receive=broken)
    assert failure.what == RAISED
    assert "Broken: (no text)" in failure.detail


@pytest.mark.slow
def test_it_ends_outside_the_main_thread_too(tmp_path: Path) -> None:
    failures: list[Failure] = []

    def work() -> None:
        failures.append(find_failure(tmp_path, limit_s=0.3, receive="while True: pass"))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert failures[0].what == TIMED_OUT
    assert f"line {RECEIVE}, in receive" in failures[0].detail


def test_effects_without_end_are_bounded(tmp_path: Path) -> None:
    failure = find_failure(tmp_path, receive="return (Deliver(message) for _ in itertools.count())")
    assert failure.what == ENDLESS
    assert "more than 10,000 effects" in failure.detail


@pytest.mark.slow
@pytest.mark.parametrize("line", ["while True: pass", "raise SystemExit"])
def test_a_constructor_that_fails_on_trial_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(InputError, match=r"mine\.py:2\d: Mine\(me, members\) fails: "):
        find_failure(tmp_path, init=line)


def test_a_constructor_that_fails_in_larger_groups_is_a_finding(tmp_path: Path) -> None:
    failure = find_failure(tmp_path, init="assert len(self.members) < 3, 'two at most'")
    assert failure.what == RAISED
    assert "two at most" in failure.detail
    assert "in __init__" in failure.detail


def test_state_of_the_class_is_not_that_of_a_member(tmp_path: Path) -> None:
    failure = find_failure(tmp_path, receive="self.box.append(message)")
    assert failure.what == SHARED_STATE
    assert "class attribute Mine.box changed" in failure.detail


def test_one_list_for_all_members_is_found(tmp_path: Path) -> None:
    failure = find_failure(tmp_path, init="self.queue = Mine.box")
    assert failure.what == SHARED_STATE
    assert "A and B share one list as self.queue" in failure.detail


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("hold", "words"),
    [
        ("Hold(message, (MessageId(message.sender, 2),))", "it waits for itself"),
        ("Hold(message, ())", "it lists no causes; put them into `missing`"),
    ],
)
def test_a_reason_that_is_none_is_named(tmp_path: Path, hold: str, words: str) -> None:
    failure = find_failure(tmp_path, parts=_fifo(hold))
    assert failure.what == WRONG_REASON
    assert words in failure.detail


@pytest.mark.slow
def test_a_wait_whose_cause_cannot_be_named_is_said_in_words(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        find_failure(tmp_path, parts=_fifo("Hold(message, (), 'a number before it')"))


def _fifo(hold: str) -> dict[str, str]:
    """Return the lines of FIFO order that holds back with this effect."""
    init = "self.last, self.kept = {}, {}"
    receive = f"""
        key = (message.sender, message.seq)
        done = self.last.get(message.sender, 0)
        if message.sender == self.me or key in self.kept or message.seq <= done:
            return [Discard(message, DUPLICATE)]
        self.kept[key] = message
        effects = []
        while (message.sender, done + 1) in self.kept:
            ready = self.kept.pop((message.sender, done + 1))
            done = self.last[message.sender] = ready.seq
            effects.append(Deliver(ready))
        return effects or [{hold}]
"""
    return {"init": init, "receive": receive.strip()}
