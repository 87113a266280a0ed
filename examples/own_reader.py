"""Custom reader: notes that name the notes they reply to, one per line.

    python examples/own_reader.py FILE

    %notes                             the first line identifies the format
    17 ann 2026-03-01T10:00:00Z - Shall we move the release?
    18 bob 2026-03-01T09:59:58Z 17 Fine with me.
    19 eve 2026-03-01T10:00:09Z 17,18 Moved.

number, author, time by the author's clock, numbers of the notes it replies to, text.
"""

from __future__ import annotations

import datetime
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from antecede.tables.trace import Detail, Event, Item, Quarantined, ReadOptions, register

NOTE = re.compile(
    r"(?P<id>\d+) (?P<author>\S+) (?P<time>\S+) (?P<answers>-|\d+(,\d+)*) (?P<text>.*)"
)


class NotesReader:
    """Reader: an object with a name, `sniff` and `read`."""

    name = "notes"

    def sniff(self, path: Path, head: bytes) -> float:
        """Return the confidence, 0: none; `head` is the decompressed start of the file."""
        return 1.0 if head.startswith(b"%notes") else 0.0

    def read(self, path: Path, options: ReadOptions) -> Iterator[Item]:
        """Yield events, bad records with the reason, and facts on the file, one line at a time."""
        empty = 0
        with path.open(encoding="utf-8", errors="backslashreplace") as file:
            for number, line in enumerate(file, 1):
                note = NOTE.fullmatch(line.rstrip("\n"))
                if number == 1 or not line.strip():
                    empty += number > 1
                elif note is None:
                    yield Quarantined(str(path), number, None, "not a note", line[:500])
                else:
                    yield Event(
                        kind="send",
                        id=note["id"],
                        member=note["author"],
                        causes=() if note["answers"] == "-" else tuple(note["answers"].split(",")),
                        send_time=nanoseconds(note["time"]),
                        text=note["text"],
                        source=str(path),
                        line=number,
                    )
        yield Detail("empty_lines", empty)


def nanoseconds(text: str) -> int | None:
    """Return an ISO time as ns since 1970 UTC; None if it is unreadable."""
    try:
        when = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=datetime.UTC)
    since = when - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return (since // datetime.timedelta(microseconds=1)) * 1000


if __name__ == "__main__":
    from antecede.tables.audit import audit

    register(NotesReader())
    print(audit(sys.argv[1:]).summary())
