"""The causes that stamps carry are exactly happened-before: against plain sets, for any run.

The reference keeps, for each thread of control, the set of all messages before it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import Context
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from antecede.core.propagation import ContextPropagator, read
from antecede.errors import LimitError

SERVICES = 2
KINDS = ("send", "receive", "handle", "end", "begin", "fork", "join", "resume")
OFTEN = ("send", "receive") * 4 + KINDS
STEPS = st.lists(
    st.tuples(st.sampled_from(OFTEN), st.integers(0, 40), st.integers(0, 40)),
    min_size=50,  # short runs seldom have anything to reduce
    max_size=90,
)


class Control:
    """One thread of control: the real context, and the truth as a stack of sets."""

    def __init__(
        self, service: int, context: Context, truth: list[set[str]], inside: bool = False
    ) -> None:
        self.service, self.context, self.truth = service, context, truth
        self.inside = inside
        self.blocks: list[tuple[AbstractContextManager[Any], bool]] = []


class Run:
    def __init__(self, max_causes: int) -> None:
        self.stamps = [
            ContextPropagator(f"s{k}", incarnation="i", max_causes=max_causes)
            for k in range(SERVICES)
        ]
        self.controls = [Control(k, Context(), [set()]) for k in range(SERVICES)]
        self.sent: list[tuple[str, Any]] = []
        self.named: dict[str, tuple[str, ...]] = {}
        self.before: dict[str, set[str]] = {}
        self.refused = 0

    def step(self, kind: str, who: int, what: int) -> None:
        control = self.controls[who % len(self.controls)]
        stamp = self.stamps[control.service]
        getattr(self, f"_{kind}")(control, stamp, what)
        past = control.context.run(lambda: stamp.past)
        assert max(map(len, past)) <= stamp.max_causes

    def _send(self, control: Control, stamp: ContextPropagator, what: int) -> None:
        headers = control.context.run(stamp.make_headers)
        sent = read(headers)
        assert sent is not None
        assert sent.id not in self.before
        self.sent.append((sent.id, headers))
        self.named[sent.id] = sent.causes
        self.before[sent.id] = set(control.truth[-1])
        control.truth[-1].add(sent.id)

    def _receive(self, control: Control, stamp: ContextPropagator, what: int) -> None:
        if not self.sent:
            return
        name, headers = self.sent[what % len(self.sent)]
        try:
            control.context.run(stamp.receive, headers)
        except LimitError:
            self.refused += 1
        else:
            control.truth[-1] |= {name, *self.before[name]}

    def _enter(self, control: Control, block: Any, own: bool, truth: set[str]) -> None:
        control.context.run(block.__enter__)
        control.blocks.append((block, own))
        if own:
            control.truth.append(set(truth))

    def _handle(self, control: Control, stamp: ContextPropagator, what: int) -> None:
        if not self.sent:
            return
        name, headers = self.sent[what % len(self.sent)]
        try:
            own = not control.blocks and not control.inside
            self._enter(control, stamp.handle(headers), own, control.truth[-1])
        except LimitError:
            self.refused += 1
        else:
            control.truth[-1] |= {name, *self.before[name]}

    def _begin(self, control: Control, stamp: ContextPropagator, what: int) -> None:
        self._enter(control, stamp.begin(), True, set())

    def _resume(self, control: Control, stamp: ContextPropagator, what: int) -> None:
        other = self._other(control, what)
        past = other.context.run(lambda: stamp.past)
        self._enter(control, stamp.resume(past), True, other.truth[-1])

    def _end(self, control: Control, stamp: ContextPropagator, what: int) -> None:
        if control.blocks:
            block, own = control.blocks.pop()
            control.context.run(block.__exit__, None, None, None)
            if own:
                control.truth.pop()

    def _fork(self, control: Control, stamp: ContextPropagator, what: int) -> None:
        """A task that begins in a block is in that block, and never leaves it."""
        if len(self.controls) < 6:
            inside = bool(control.blocks) or control.inside
            truth = [set(control.truth[-1])]
            copy = control.context.copy()
            self.controls.append(Control(control.service, copy, truth, inside))

    def _join(self, control: Control, stamp: ContextPropagator, what: int) -> None:
        other = self._other(control, what)
        past = other.context.run(lambda: stamp.past)
        try:
            control.context.run(stamp.join, past)
        except LimitError:
            self.refused += 1
        else:
            control.truth[-1] |= other.truth[-1]

    def close(self) -> None:
        for control in self.controls:
            for block, _ in reversed(control.blocks):
                control.context.run(block.__exit__, None, None, None)

    def _other(self, control: Control, what: int) -> Control:
        same = [other for other in self.controls if other.service == control.service]
        return same[what % len(same)]


def closed(named: dict[str, tuple[str, ...]]) -> dict[str, set[str]]:
    """All that follows from direct causes; messages come after their causes in `named`."""
    found: dict[str, set[str]] = {}
    for name, causes in named.items():
        found[name] = set(causes).union(*(found[cause] for cause in causes))
    return found


@given(STEPS, st.sampled_from([1, 2, 3, 64]))
def test_causes_are_exactly_what_happened_before(
    steps: list[tuple[str, int, int]], max_causes: int
) -> None:
    run = Run(max_causes)
    try:
        for kind, who, what in steps:
            run.step(kind, who, what)
    finally:
        run.close()
    assert closed(run.named) == run.before
    if max_causes == 64:
        assert run.refused == 0
