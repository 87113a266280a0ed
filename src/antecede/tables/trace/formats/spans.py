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
from antecede.tables.trace.formats.json_stream import MalformedElement, read_elements
from antecede.tables.trace.formats.partial_span import (
    KIND,
    STATUS,
    MalformedSpan,
    PartialSpan,
    make_span_id,
)
from antecede.tables.trace.formats.spans_ids import TraceIds
from antecede.tables.trace.formats.spans_times import TimeCounts, Unit, choose_unit
from antecede.tables.trace.reader import Detail, Item, ReadOptions, quarantine_break
from antecede.tables.trace.schema import Event, Quarantined
from antecede.tables.trace.time_text import SPLIT_TRACES

MAX_EXTRA_COLUMNS: Final = 200
"""Limit of extra columns of a file; other attributes go to `OTHER_ATTRIBUTES` as JSON."""
OTHER_ATTRIBUTES: Final = "other_attributes"

_LISTS = (*spans_otlp.BLOCKS, *(way[-1] for way in spans_jaeger.LISTS), spans_chrome.LIST)
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(:?)\s*(\[?)|[{}\[\]]')
_TRACE_ID = re.compile(r'"trace_?[iI][dD]"\s*:')
_ZIPKIN_ID = re.compile(r'"id"\s*:\s*"')

SpanItems = Iterator[tuple[Item, Mapping[str, Any] | None]]
Dialect = Callable[[Path, ReadOptions, bool], SpanItems]


class SpansReader:
    """Reader of all formats of spans."""

    name = "spans"
    uses = ("time_unit",)

    def sniff(self, path: Path, head: bytes) -> float:
        """Recognize the header of the CSV, or the keys of the JSON."""
        return 0.95 if _detect_dialect(head) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Iterator[Item]:
        """Yield every span of the file."""
        return (item for item, _ in self._read_items(path, options, keep_extra=False))

    def read_with_extra(self, path: Path, options: ReadOptions) -> SpanItems:
        """Yield every span with its status, kind and attributes."""
        return self._read_items(path, options, keep_extra=True)

    def _read_items(self, path: Path, options: ReadOptions, *, keep_extra: bool) -> SpanItems:
        dialect = _detect_dialect(
            b"" if path.is_dir() else text.read_bytes(path, text.HEAD_BYTES)[0]
        )
        if dialect is None:
            message = (
                "unknown format of spans; expected OpenTelemetry JSON (resourceSpans, batches, or "
                "of a console exporter), Jaeger JSON, Zipkin JSON, Chrome's traceEvents, or CSV "
                f"with the columns {', '.join(spans_nezha.COLUMNS)}"
            )
            raise FormatError(message, path=str(path))
        columns, traces = _ColumnLimit(), TraceIds()
        for found in quarantine_break(dialect(path, options, keep_extra), path):
            item, further = (found, None) if isinstance(found, Quarantined) else found
            if isinstance(item, Event):
                for trace in item.topics:
                    traces.add(trace)
                yield item, columns.apply(further or {}) if keep_extra else None
            else:
                yield item, None
        if split := traces.count_halves():
            yield Detail(SPLIT_TRACES, split), None


class _ColumnLimit:
    """Limit of the extra columns: some programs create a key for each value."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def apply(self, own: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {STATUS: None, KIND: None}
        others: dict[str, Any] = {}
        for name, value in own.items():
            if name in self._names or len(self._names) < MAX_EXTRA_COLUMNS:
                self._names.add(name)
                found[name] = value
            else:
                others[name] = value
        if others:
            found[OTHER_ATTRIBUTES] = json.dumps(others, default=str)
        return found


def _detect_dialect(head: bytes) -> Dialect | None:
    sample = text.decode(head).lstrip("\ufeff \t\r\n")
    if spans_nezha.recognize(sample):
        return spans_nezha.read
    if sample[:1] not in ("{", "["):
        return None
    if not sample.startswith("{") and _is_chrome(sample):
        return partial(spans_chrome.read, ())
    jaeger: tuple[str, ...] = ()
    for keys in _find_list_keys(sample):
        if keys[-1] == spans_chrome.LIST:
            return partial(spans_chrome.read, keys)
        if keys[-1] in spans_otlp.BLOCKS and spans_otlp.SHAPES.search(sample):
            return partial(_read_elements, keys, spans_otlp.read_spans, "ns")
        if keys in spans_jaeger.LISTS:
            jaeger = keys
    if _TRACE_ID.search(sample):
        if spans_jaeger.SHAPE.search(sample):
            return partial(_read_elements, jaeger, spans_jaeger.read_spans, "us")
        if _ZIPKIN_ID.search(sample):
            return spans_zipkin.read
    if spans_otlp.is_console(sample):
        return partial(_read_elements, (), spans_otlp.read_spans, "ns")
    return None


def _is_chrome(sample: str) -> bool:
    found = spans_chrome.SHAPE.search(sample)
    return sample[0] == "[" and found is not None and '"ts"' in sample


def _find_list_keys(sample: str) -> Iterator[tuple[str, ...]]:
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
    spans_in: Callable[[object, Unit, bool], Iterator[PartialSpan | MalformedSpan]],
    declared: str,
    path: Path,
    options: ReadOptions,
    keep_extra: bool,
) -> SpanItems:
    source = str(path)
    unit = choose_unit(declared, options.time_unit)
    counts = TimeCounts(unit)
    for found in read_elements(path, keys):
        if isinstance(found, MalformedElement):
            yield Quarantined(source, found.line, None, found.reason, found.raw), None
            continue
        for part in spans_in(found.value, unit, keep_extra):
            if isinstance(part, MalformedSpan):
                yield Quarantined(source, found.line, *part), None
                continue
            counts.add(part.unreadable_times, part.actual_unit, part.unreadable_causes)
            event = part.to_event(
                make_span_id(part.trace, part.span), part.causes, source, found.line
            )
            yield event, part.extra
    for name, value in counts.collect_details().items():
        yield Detail(name, value), None
