"""Source of served pages: a trace that is read again when its files change."""

from __future__ import annotations

import glob
import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.compute

from antecede.errors import AntecedeError
from antecede.tables.causality import EventRef
from antecede.tables.trace import Trace
from antecede.tables.view.render_model import LARGEST, picture

pc: Any = pyarrow.compute


def event_named(events: pyarrow.Table, text: str, run: str | None) -> EventRef:
    """Return the event of a text: an id, or ID@MEMBER if no event has that id."""
    name, at, member = text.rpartition("@")
    # Terminal input may be invalid UTF-8; the search for the event rejects it.
    plain = text.encode(errors="replace").decode()
    if at and not pc.any(pc.equal(events["id"], plain)).as_py():
        return EventRef(name, member, run)
    return EventRef(text, None, run)


class Followed:
    """A trace that is read again when its files change; unreadable files keep the last model."""

    grows = True

    def __init__(
        self,
        title: str,
        paths: Sequence[str | Path],
        read: Callable[[], Trace],
        *,
        by: str | None = None,
        around: str | None = None,
        run: str | None = None,
        most: int = LARGEST,
        grows: bool = True,
    ) -> None:
        self.title, self.grows = title, grows
        self._paths, self._read = [Path(path) for path in paths], read
        self._by, self._max_events = by, most
        self._focus, self._run = around, run
        self._lock = threading.Lock()
        self._cached: tuple[str, bytes] | None = None

    def version(self) -> str:
        """Return a digest of names, sizes and times of all files."""
        found = hashlib.sha256()
        # A path that does not exist is a pattern, as for readers.
        listed = [
            [path] if path.exists() else sorted(map(Path, glob.glob(str(path))))
            for path in self._paths
        ]
        for path in chain.from_iterable(listed):
            for file in [path] if path.is_file() else sorted(path.rglob("*")):
                if file != path and file.name.startswith("."):
                    continue  # a draft, which readers ignore
                try:
                    about = file.stat()
                except OSError:  # renamed in the meantime
                    continue
                found.update(f"{file}\0{about.st_size}\0{about.st_mtime_ns}\n".encode())
        return found.hexdigest()

    def block(self, query: Mapping[str, str]) -> bytes:
        """Return the model of the last readable trace."""
        with self._lock:
            now = self.version()
            if self._cached is not None and self._cached[0] == now:
                return self._cached[1]
            try:
                trace, around = self._read(), None
                if self._focus is not None:
                    around = event_named(trace.events, self._focus, self._run)
                block = picture(
                    trace,
                    title=self.title,
                    by=self._by,
                    around=around,
                    most=self._max_events,
                    latest=self.grows,
                ).pack()
            except AntecedeError:
                if self._cached is None:
                    raise
                return self._cached[1]
            self._cached = now, block
            return block
