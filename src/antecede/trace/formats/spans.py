"""Spans of distributed traces: Nezha's CSV, Zipkin's JSON (v1 and v2), OpenTelemetry's JSON.

A span is an interval of work in one process, and names the span that caused it. It becomes one
event, called TRACE/SPAN; `topics` holds its trace, `member` the process whose clock timed it,
`role` its side of an exchange (client, server, producer, consumer), `text` its name. A span
without times keeps null times. Causes are declared as written, whether or not they are there;
links are further causes, also into other traces.

Each dialect is a module beside this one; all read files of any size.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from antecede.errors import FormatError, InputError
from antecede.trace import text
from antecede.trace.formats import spans_nezha, spans_otlp, spans_zipkin
from antecede.trace.reader import Item, ReadOptions
from antecede.trace.schema import Quarantined

_ZIPKIN = re.compile(r'"traceId"\s*:\s*"')
_ZIPKIN_ID = re.compile(r'"id"\s*:\s*"')


class SpansReader:
    """Reader of spans; see the module."""

    name = "spans"
    uses: tuple[str, ...] = ()

    def sniff(self, path: Path, head: bytes) -> float:
        """Recognize the header of the CSV, or the keys of the JSON."""
        return 0.95 if _dialect(head) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Iterator[Item]:
        """Yield every span of the file."""
        dialect = _dialect(b"" if path.is_dir() else text.read_up_to(path, text.HEAD_BYTES)[0])
        if dialect is None:
            message = (
                "is no file of spans that is known: CSV with the columns "
                f"{', '.join(spans_nezha.COLUMNS)}; Zipkin JSON; OpenTelemetry JSON (resourceSpans)"
            )
            raise FormatError(message, path=str(path))
        try:
            yield from dialect(path)
        except FormatError:
            raise
        except InputError as error:  # the file breaks off on that line
            if error.line is None:
                raise
            yield Quarantined(str(path), error.line, None, error.message, "")


def _dialect(head: bytes) -> Callable[[Path], Iterator[Item]] | None:
    """Return the function that reads a file which begins like this; None if there is none."""
    sample = text.decode(head).lstrip("\ufeff \t\r\n")
    if spans_nezha.recognize(sample):
        return spans_nezha.read
    if sample[:1] not in ("{", "["):
        return None
    if spans_otlp.recognize(sample):
        return spans_otlp.read
    return spans_zipkin.read if _ZIPKIN.search(sample) and _ZIPKIN_ID.search(sample) else None
