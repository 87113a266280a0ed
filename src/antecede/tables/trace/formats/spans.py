"""Reader of spans: OpenTelemetry, Jaeger, Zipkin (JSON), Chrome trace events, Nezha (CSV).

The modules `spans_otlp`, `spans_jaeger`, `spans_zipkin`, `spans_chrome` and `spans_nezha` list the
versions.

A span becomes an event with the id TRACE/SPAN. `topics` has its trace, `member` its process, `role`
its side of a call, `text` its name. Its causes are its parent and its links, also into other
traces. Status, kind and attributes are extra columns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from antecede.errors import FormatError
from antecede.tables.trace import text
from antecede.tables.trace.formats import (
    spans_chrome,
    spans_jaeger,
    spans_nezha,
    spans_otlp,
    spans_zipkin,
)
from antecede.tables.trace.formats.json_stream import Broken, items
from antecede.tables.trace.formats.partial_span import KIND, STATUS, Bad, Part, name_of
from antecede.tables.trace.formats.spans_ids import TraceIds
from antecede.tables.trace.formats.spans_times import TimeCounts, Unit, unit_for
from antecede.tables.trace.reader import Detail, Item, ReadOptions, to_the_break
from antecede.tables.trace.schema import Event, Quarantined
from antecede.tables.trace.time_text import SPLIT

MOST_COLUMNS: Final = 200
"""Limit of extra columns of a file; other attributes go to `OTHERS` as JSON."""
OTHERS: Final = "other_attributes"

_LISTS = (*spans_otlp.BLOCKS, *(way[-1] for way in spans_jaeger.LISTS), spans_chrome.LIST)
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(:?)\s*(\[?)|[{}\[\]]')
_TRACE_ID = re.compile(r'"trace_?[iI][dD]"\s*:')
_ZIPKIN_ID = re.compile(r'"id"\s*:\s*"')

Found = Iterator[tuple[Item, Mapping[str, Any] | None]]
Dialect = Callable[[Path, ReadOptions, bool], Found]


class SpansReader:
    """Reader of all formats of spans."""

    name = "spans"
    uses = ("time_unit",)

    def sniff(self, path: Path, head: bytes) -> float:
        """Recognize the header of the CSV, or the keys of the JSON."""
        return 0.95 if _dialect(head) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Iterator[Item]:
        """Yield every span of the file."""
        return (item for item, _ in self._items(path, options, own=False))

    def read_with_own(self, path: Path, options: ReadOptions) -> Found:
        """Yield every span with its status, kind and attributes."""
        return self._items(path, options, own=True)

    def _items(self, path: Path, options: ReadOptions, *, own: bool) -> Found:
        dialect = _dialect(b"" if path.is_dir() else text.read_up_to(path, text.HEAD_BYTES)[0])
        if dialect is None:
            message = (
                "unknown format of spans; expected OpenTelemetry JSON (resourceSpans, batches, or "
                "of a console exporter), Jaeger JSON, Zipkin JSON, Chrome's traceEvents, or CSV "
                f"with the columns {', '.join(spans_nezha.COLUMNS)}"
            )
            raise FormatError(message, path=str(path))
        columns, traces = _Columns(), TraceIds()
        for found in to_the_break(dialect(path, options, own), path):
            item, further = (found, None) if isinstance(found, Quarantined) else found
            if isinstance(item, Event):
                for trace in item.topics:
                    traces.add(trace)
                yield item, columns.limited(further or {}) if own else None
            else:
                yield item, None
        if split := traces.count_halves():
            yield Detail(SPLIT, split), None


class _Columns:
    """Limit of the extra columns: some programs create a key for each value."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def limited(self, own: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {STATUS: None, KIND: None}
        others: dict[str, Any] = {}
        for name, value in own.items():
            if name in self._names or len(self._names) < MOST_COLUMNS:
                self._names.add(name)
                found[name] = value
            else:
                others[name] = value
        if others:
            found[OTHERS] = json.dumps(others, default=str)
        return found


def _dialect(head: bytes) -> Dialect | None:
    sample = text.decode(head).lstrip("\ufeff \t\r\n")
    if spans_nezha.recognize(sample):
        return spans_nezha.read
    if sample[:1] not in ("{", "["):
        return None
    if not sample.startswith("{") and _is_chrome(sample):
        return partial(spans_chrome.read, ())
    jaeger: tuple[str, ...] = ()
    for keys in _ways(sample):
        if keys[-1] == spans_chrome.LIST:
            return partial(spans_chrome.read, keys)
        if keys[-1] in spans_otlp.BLOCKS and spans_otlp.SHAPES.search(sample):
            return partial(_read_elements, keys, spans_otlp.spans_in, "ns")
        if keys in spans_jaeger.LISTS:
            jaeger = keys
    if _TRACE_ID.search(sample):
        if spans_jaeger.SHAPE.search(sample):
            return partial(_read_elements, jaeger, spans_jaeger.spans_in, "us")
        if _ZIPKIN_ID.search(sample):
            return spans_zipkin.read
    if spans_otlp.is_console(sample):
        return partial(_read_elements, (), spans_otlp.spans_in, "ns")
    return None


def _is_chrome(sample: str) -> bool:
    found = spans_chrome.SHAPE.search(sample)
    return sample[0] == "[" and found is not None and '"ts"' in sample


def _ways(sample: str) -> Iterator[tuple[str, ...]]:
    if not any(f'"{name}"' in sample for name in _LISTS):
        return
    keys: list[str | None] = []
    key: str | None = None
    for token in _TOKEN.finditer(sample):
        bracket = token[0]
        if token[2]:
            key = token[1]
            if not token[3]:
                continue
            if key in _LISTS:
                yield (*(one for one in keys if one is not None), key)
        if token[3] or bracket in ("{", "["):
            keys.append(key)
        elif bracket in ("}", "]") and keys:
            keys.pop()
        key = None


def _read_elements(
    keys: Sequence[str],
    spans_in: Callable[[object, Unit, bool], Iterator[Part | Bad]],
    declared: str,
    path: Path,
    options: ReadOptions,
    own: bool,
) -> Found:
    source = str(path)
    unit = unit_for(declared, options.time_unit)
    counts = TimeCounts(unit)
    for found in items(path, keys):
        if isinstance(found, Broken):
            yield Quarantined(source, found.line, None, found.reason, found.raw), None
            continue
        for part in spans_in(found.value, unit, own):
            if isinstance(part, Bad):
                yield Quarantined(source, found.line, *part), None
                continue
            counts.add(part.unreadable, part.taken, part.unreadable_causes)
            event = part.event(name_of(part.trace, part.span), part.causes, source, found.line)
            yield event, part.own
    for name, value in counts.details().items():
        yield Detail(name, value), None
