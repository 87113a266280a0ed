"""Which event a user means by an id."""

from __future__ import annotations

from typing import Any

import pyarrow
import pyarrow.compute

from antecede.tables.causality import Event

pc: Any = pyarrow.compute


def event_named(events: pyarrow.Table, text: str, run: str | None) -> Event:
    """Return the event that a text names: an id, or ID@MEMBER where no id is called that."""
    name, at, member = text.rpartition("@")
    # In UTF-8, which bytes of a terminal's may not be: these are refused where the event is sought.
    plain = text.encode(errors="replace").decode()
    if at and not pc.any(pc.equal(events["id"], plain)).as_py():
        return Event(name, member, run)
    return Event(text, None, run)
