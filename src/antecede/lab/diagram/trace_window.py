"""Diagram of a time window of a recorded trace, in milliseconds.

A hold lasts from the receipt of a message to its delivery at the same member. It waits for the
declared causes that were delivered there in the meantime.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from antecede.core import diagram_model
from antecede.core.diagram_model import Arrow, AxisTick, Diagram, HeldSpan, Lane, Mark
from antecede.errors import InputError
from antecede.tables.trace import DELIVER, RECEIVE, SEND, Event

NS_PER_MS = 1_000_000
MIN_HOLD_MS = 0.5


class _ReceivedCopy(NamedTuple):
    """Copy of a message at one receiver; times in ns, None: not in the trace."""

    event: Event
    received: int
    delivered: int | None


def get_time_ns(event: Event) -> int | None:
    """Return the time of an event: the recorder's or receiver's clock, else the sender's."""
    return event.arrival if event.arrival is not None else event.send_time


def from_events(
    events: Iterable[Event],
    *,
    first: int | None = None,
    last: int | None = None,
    members: Sequence[str] | None = None,
    title: str = "",
) -> Diagram:
    """Return the diagram from `first` to `last`, ns (default: the whole trace).

    `members`: timelines in order. Marks unrelated to holds are dimmed. Raises InputError for an
    empty diagram.
    """
    rows = [
        event for event in events if event.member is not None and get_time_ns(event) is not None
    ]
    if members is None:
        members = sorted({event.member for event in rows if event.member is not None})
    chosen = [event for event in rows if event.member in members]
    times = [_require_time_ns(event) for event in chosen]
    begin = first if first is not None else min(times, default=0)
    end = last if last is not None else max(times, default=0)
    if not any(begin <= at <= end for at in times):
        raise InputError(
            "no send, receive or deliver row with a time in this window; choose another one"
        )
    return _TraceWindow(chosen, begin, max(end, begin + 1), tuple(members)).build(title)


def _require_time_ns(event: Event) -> int:
    return get_time_ns(event) or 0


class _TraceWindow:
    def __init__(self, rows: list[Event], begin: int, end: int, members: tuple[str, ...]) -> None:
        self.begin = begin
        self.end = end
        self.members = members
        self.timeline_of = {name: number for number, name in enumerate(members)}
        self.sends = {event.id: event for event in rows if event.kind == SEND}
        delivered = {(e.member, e.id): _require_time_ns(e) for e in rows if e.kind == DELIVER}
        self.delivered = delivered
        self.copies = [
            _ReceivedCopy(event, _require_time_ns(event), delivered.get((event.member, event.id)))
            for event in rows
            if event.kind == RECEIVE
        ]

    def build(self, title: str) -> Diagram:
        marks: list[Mark] = []
        arrows: list[Arrow] = []
        holds: list[HeldSpan] = []
        for copy in self.copies:
            self._add_copy(copy, marks, arrows, holds)
        marks += [
            Mark(
                self._get_timeline(send),
                self._to_ms(_require_time_ns(send)),
                diagram_model.SEND,
                send.id,
            )
            for send in self.sends.values()
            if self._is_inside(_require_time_ns(send))
        ]
        marks.sort(key=lambda mark: mark.at)
        marks, arrows = _dim_unrelated(marks, arrows, holds)
        span_ms = (self.end - self.begin) / NS_PER_MS
        return Diagram(
            title,
            tuple(Lane(name) for name in self.members),
            tuple(marks),
            tuple(arrows),
            tuple(sorted(holds, key=lambda held: (held.begin, held.lane))),
            0.0,
            span_ms,
            "ms",
            _make_ticks(span_ms),
        )

    def _add_copy(
        self, copy: _ReceivedCopy, marks: list[Mark], arrows: list[Arrow], holds: list[HeldSpan]
    ) -> None:
        lane, label = self._get_timeline(copy.event), copy.event.id
        arrived = self._to_ms(copy.received)
        done = None if copy.delivered is None else self._to_ms(copy.delivered)
        held = done is None or done - arrived > MIN_HOLD_MS
        if self._is_inside(copy.received):
            kind = diagram_model.HOLD if held else diagram_model.DELIVER
            early = "" if held else self._describe_violation(copy)
            waits = self._find_awaited(copy) if held else ()
            note = f"waits for {', '.join(waits)}" if waits else early
            marks.append(Mark(lane, arrived, kind, label, note, bool(early)))
            send = self.sends.get(label)
            if send is not None:
                sent = self._to_ms(_require_time_ns(send))
                arrows.append(Arrow(label, self._get_timeline(send), sent, lane, arrived))
        if not held:
            return
        if copy.delivered is not None and self._is_inside(copy.delivered):
            early = self._describe_violation(copy)
            at = self._to_ms(copy.delivered)
            marks.append(Mark(lane, at, diagram_model.DELIVER, label, early, bool(early)))
        if copy.received <= self.end and (copy.delivered is None or copy.delivered >= self.begin):
            inside = done is not None and copy.delivered is not None and copy.delivered <= self.end
            waits = self._find_awaited(copy)
            holds.append(HeldSpan(lane, label, max(0.0, arrived), done if inside else None, waits))

    def _find_awaited(self, copy: _ReceivedCopy) -> tuple[str, ...]:
        member = copy.event.member
        until = math.inf if copy.delivered is None else copy.delivered
        declared = self.sends[copy.event.id].causes if copy.event.id in self.sends else ()
        return tuple(
            cause
            for cause in dict.fromkeys((*declared, *copy.event.causes))
            if copy.received < self.delivered.get((member, cause), -1) <= until
        )

    def _describe_violation(self, copy: _ReceivedCopy) -> str:
        member, done = copy.event.member, copy.delivered
        late = [
            cause
            for cause in copy.event.causes
            if done is not None and self.delivered.get((member, cause), -1) > done
        ]
        return f"before {', '.join(late)}" if late else ""

    def _is_inside(self, at: int) -> bool:
        return self.begin <= at <= self.end

    def _get_timeline(self, event: Event) -> int:
        return self.timeline_of[event.member or ""]

    def _to_ms(self, at: int) -> float:
        return (at - self.begin) / NS_PER_MS


def _dim_unrelated(
    marks: list[Mark], arrows: list[Arrow], holds: list[HeldSpan]
) -> tuple[list[Mark], list[Arrow]]:
    if not holds:
        return marks, arrows
    there = {(held.lane, label) for held in holds for label in (held.label, *held.waits_for)}
    labels = {label for _, label in there}
    marks = [
        mark._replace(faint=not mark.wrong and (mark.lane, mark.label) not in there)
        if mark.kind != diagram_model.SEND
        else mark._replace(faint=mark.label not in labels)
        for mark in marks
    ]
    return marks, [
        arrow._replace(faint=(arrow.target, arrow.label) not in there) for arrow in arrows
    ]


def _make_ticks(span_ms: float) -> tuple[AxisTick, ...]:
    power = 10.0 ** math.floor(math.log10(max(span_ms, 1e-6) / 10.0))
    step = next(m * power for m in (1, 2, 5, 10) if span_ms / (m * power) <= 12)
    count = int(span_ms / step) + 1
    return tuple(AxisTick(k * step, f"{k * step:g}") for k in range(count))
