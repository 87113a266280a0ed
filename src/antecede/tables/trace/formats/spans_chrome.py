"""Parser of Chrome's trace events ("Trace Event Format", revision of 2016; also Perfetto).

A file is `{"traceEvents": [...]}` or the list alone, whose closing bracket may be missing. Slices
are events: complete (`X`), begin and end (`B`, `E`; asynchronous `b`, `e`, `S`, `F`), instants. The
id is PROCESS/THREAD/NUMBER with the number of the slice in the file, from 1. The member is the
thread. Times are microseconds of any clock.

Flow events give the causes: from the slice around the start through those of the steps to that of
the end. An end without `bp: e` belongs to the next slice of its thread. Slices with `bind_id` are
part of a flow. Nesting gives no cause.

Slices and flows come in any order, so a file is read twice. The index needs about 200 bytes per
slice, plus the flows.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from antecede.tables.trace import text
from antecede.tables.trace.formats.json_stream import MalformedElement, read_elements
from antecede.tables.trace.formats.partial_span import strip_text
from antecede.tables.trace.formats.spans_times import Unit, choose_unit
from antecede.tables.trace.reader import Detail, Item, ReadOptions
from antecede.tables.trace.schema import Event, Quarantined
from antecede.tables.trace.time_text import UNBOUND_FLOWS, UNENDED_SLICES

LIST: Final = "traceEvents"
SHAPE = re.compile(r'"ph"\s*:\s*"')
_BEGIN, _END, _FLOW = (*"BbS",), (*"EeF",), (*"stf",)
_SLICES: Final = ("X", *_BEGIN, "i", "I", "R", "n", "T", "p")
_KNOWN_PHASES: Final = (*_SLICES, *_END, *_FLOW, "M")
_FAR = 1 << 65
NO_CLOSING: Final = "the file ends before ]"
SKIPPED_PHASES = "phases_not_read"
"""Name of a detail: counts of ignored phases."""

Thread = tuple[str, str]
SlicePosition = tuple[Thread, int]
"""Thread of a slice and its number in the file, from 0."""


def read(
    keys: Sequence[str], path: Path, options: ReadOptions, keep_extra: bool
) -> Iterator[tuple[Item, Mapping[str, Any] | None]]:
    """Yield the events of a file; `keys`: path to the list."""
    unit = choose_unit("us", options.time_unit)
    known = SliceIndex(path, keys, unit)
    source = str(path)
    left: Counter[str] = Counter()
    number = 0
    for found in read_elements(path, keys):
        if isinstance(found, MalformedElement):
            if not keys and found.reason == NO_CLOSING:  # the format allows it
                continue
            yield Quarantined(source, found.line, None, found.reason, found.raw), None
            continue
        record = found.value
        phase = record.get("ph") if isinstance(record, dict) else None
        reason = _find_defect(record, phase, unit)
        if reason:
            raw = text.shorten(repr(record))
            yield Quarantined(source, found.line, None, reason, raw), None
        elif phase in _SLICES:
            place = _get_thread(record), number
            yield (
                known.make_event(record, place, unit, source, found.line),
                _collect_columns(record, keep_extra),
            )
            number += 1
        elif phase not in _KNOWN_PHASES:
            left[str(phase)] += 1
    if left:
        yield (
            Detail(SKIPPED_PHASES, ", ".join(f"{n:,} x {phase}" for phase, n in left.items())),
            None,
        )
    for name, count in (
        (UNBOUND_FLOWS, known.unbound_flows),
        (UNENDED_SLICES, known.unended_slices),
    ):
        if count:
            yield Detail(name, count), None


def _find_defect(record: object, phase: object, unit: Unit) -> str:
    """Return why a record is not a trace event, "" if it is."""
    if not isinstance(record, dict):
        return "not a JSON object"
    if not isinstance(phase, str) or not phase:
        return "no phase (ph)"
    if phase in _KNOWN_PHASES and phase != "M" and _parse_time(record, unit) is None:
        return "no readable time (ts)"
    return ""


def _collect_columns(record: Mapping[str, Any], keep_extra: bool) -> Mapping[str, Any] | None:
    if not keep_extra:
        return None
    arguments = record.get("args")
    return {"category": record.get("cat"), **(arguments if isinstance(arguments, dict) else {})}


def _make_id(place: SlicePosition) -> str:
    return f"{place[0][0]}/{place[0][1]}/{place[1] + 1}"


def _get_thread(record: Mapping[str, Any]) -> Thread:
    return str(record.get("pid", "")), str(record.get("tid", ""))


def _parse_time(record: Mapping[str, Any], unit: Unit) -> int | None:
    return text.parse_nanoseconds(record.get("ts"), unit.declared)


def _find_end(record: Mapping[str, Any], start: int, unit: Unit) -> int | None:
    length = text.parse_nanoseconds(record.get("dur"), unit.declared)
    return None if length is None else text.parse_int64(start + length)


def _make_pair_key(record: Mapping[str, Any], phase: str, thread: Thread) -> tuple[Any, ...]:
    if phase in "BE":
        return ("thread", *thread)
    named = (record.get("name"),) if phase in "SF" else ()
    return ("async", record.get("cat"), *_get_scoped_id(record), *named)


def _get_scoped_id(record: Mapping[str, Any]) -> tuple[str, ...]:
    scoped = record.get("id2")
    if isinstance(scoped, dict) and "local" in scoped:
        return str(scoped["local"]), str(record.get("pid", ""))
    if isinstance(scoped, dict) and "global" in scoped:
        return (str(scoped["global"]),)
    return str(record.get("id")), str(record.get("scope", ""))


class _Slices:
    def __init__(self) -> None:
        self.slices: list[tuple[int, int, int]] = []
        self._around: list[int] = []

    def index(self) -> None:
        self.slices.sort()
        stack: list[int] = []
        for at, (_, minus_end, _) in enumerate(self.slices):
            while stack and self.slices[stack[-1]][1] > minus_end:
                stack.pop()
            self._around.append(stack[-1] if stack else -1)
            stack.append(at)

    def find_around(self, when: int) -> int | None:
        """Return the number of the innermost slice around a time, if any."""
        place = bisect_right(self.slices, (when, _FAR, 0)) - 1
        while place >= 0 and -self.slices[place][1] < when:
            place = self._around[place]
        return self.slices[place][2] if place >= 0 else None

    def find_next(self, when: int) -> int | None:
        """Return the number of the first slice that begins at a time or later, if any."""
        place = bisect_left(self.slices, (when, -_FAR, 0))
        return self.slices[place][2] if place < len(self.slices) else None


class _FlowPoint(NamedTuple):
    when: int
    phase: int
    """0: start, 1: step, 2: end."""
    thread: Thread
    slice_number: int | None
    """Number of its slice (None: found by time)."""
    is_next: bool
    """True if it belongs to the slice that begins next."""


class SliceIndex:
    """Result of the first reading: ends of slices, causes, names."""

    def __init__(self, path: Path, keys: Sequence[str], unit: Unit) -> None:
        self.unbound_flows = 0
        """Number of flow events without a slice or start."""
        self.unended_slices = 0
        """Number of begins without an end, and of ends without a begin."""
        self._ends: dict[int, int] = {}
        self._causes: dict[int, list[SlicePosition]] = {}
        self._names: dict[tuple[str, ...], str] = {}
        self._slices: dict[Thread, _Slices] = {}
        self._flows: dict[tuple[Any, ...], list[_FlowPoint]] = {}
        self._scan(path, keys, unit)
        for slices in self._slices.values():
            slices.index()
        for points in self._flows.values():
            self._bind_flow(points)
        self._flows.clear()
        self._slices.clear()

    def make_event(
        self, record: Mapping[str, Any], place: SlicePosition, unit: Unit, source: str, line: int
    ) -> Event:
        """Return the event of a slice."""
        (process, thread), number = place
        process_name = self._make_member_name((process,))
        start = _parse_time(record, unit)
        end = self._ends.get(number)
        if end is None and start is not None and record.get("ph") == "X":
            end = _find_end(record, start, unit)
        return Event(
            id=_make_id(place),
            member=f"{process_name}/{self._make_member_name((process, thread))}",
            causes=tuple(map(_make_id, self._causes.get(number, ()))),
            start_time=start,
            end_time=end,
            text=strip_text(record.get("name")),
            source=source,
            line=line,
        )

    def _make_member_name(self, key: tuple[str, ...]) -> str:
        name = self._names.get(key)
        return f"{name} ({key[-1]})" if name else key[-1]

    # -- the first reading -----------------------------------------------------------------------

    def _scan(self, path: Path, keys: Sequence[str], unit: Unit) -> None:
        begun: dict[tuple[Any, ...], list[tuple[int, int]]] = {}
        number = 0
        for found in read_elements(path, keys):
            record = None if isinstance(found, MalformedElement) else found.value
            if not isinstance(record, dict) or _find_defect(record, record.get("ph"), unit):
                continue
            phase = str(record["ph"])
            thread, when = _get_thread(record), _parse_time(record, unit) or 0
            if phase == "M":
                self._add_name(record, thread)
            elif phase in _FLOW:
                is_next = phase == "f" and record.get("bp") != "e"
                key = (record.get("cat"), record.get("name"), *_get_scoped_id(record))
                point = _FlowPoint(when, _FLOW.index(phase), thread, None, is_next)
                self._flows.setdefault(key, []).append(point)
            elif phase in _END:
                began = begun.get(_make_pair_key(record, phase, thread))
                self.unended_slices += not began
                if began:
                    at, start = began.pop()
                    self._ends[at] = when
                    if phase == "E":
                        self._add_slice(thread, start, when, at)
            elif phase in _SLICES:
                if phase in _BEGIN:
                    begun.setdefault(_make_pair_key(record, phase, thread), []).append(
                        (number, when)
                    )
                elif phase == "X":
                    end = _find_end(record, when, unit)
                    self._add_slice(thread, when, when if end is None else end, number)
                if "bind_id" in record:
                    self._add_bound_flow(record, when, thread, number)
                number += 1
        for (kind, *rest), began in begun.items():
            self.unended_slices += len(began)
            for at, start in began if kind == "thread" else ():  # open until the end of the file
                self._add_slice((rest[0], rest[1]), start, 1 << 63, at)

    def _add_slice(self, thread: Thread, start: int, end: int, number: int) -> None:
        self._slices.setdefault(thread, _Slices()).slices.append((start, -end, number))

    def _add_name(self, record: Mapping[str, Any], thread: Thread) -> None:
        arguments = record.get("args")
        name = strip_text(arguments.get("name")) if isinstance(arguments, dict) else None
        key = {"process_name": thread[:1], "thread_name": thread}.get(str(record.get("name")))
        if name and key:
            self._names[key] = name

    def _add_bound_flow(
        self, record: Mapping[str, Any], when: int, thread: Thread, number: int
    ) -> None:
        flows_in, flows_out = (record.get(key) is True for key in ("flow_in", "flow_out"))
        if flows_in or flows_out:
            phase = 0 if not flows_in else 1 if flows_out else 2
            point = _FlowPoint(when, phase, thread, number, False)
            self._flows.setdefault(("bind_id", str(record["bind_id"])), []).append(point)

    def _bind_flow(self, points: list[_FlowPoint]) -> None:
        starts = sum(point.phase == 0 for point in points)
        # Clocks of processes may differ, so a single start comes first at any time.
        points.sort(key=lambda one: (one.phase, one.when) if starts == 1 else (one.when, one.phase))
        before: SlicePosition | None = None
        for point in points:
            here = self._find_slice(point)
            if here is None or (point.phase and before is None):
                self.unbound_flows += 1
                continue
            if point.phase and before is not None and here != before:
                causes = self._causes.setdefault(here[1], [])
                if before not in causes:
                    causes.append(before)
            if point.phase < 2:
                before = here
            elif starts > 1:
                before = None

    def _find_slice(self, point: _FlowPoint) -> SlicePosition | None:
        if point.slice_number is not None:
            return point.thread, point.slice_number
        slices = self._slices.get(point.thread)
        if slices is None:
            return None
        number = slices.find_next(point.when) if point.is_next else slices.find_around(point.when)
        return None if number is None else (point.thread, number)
