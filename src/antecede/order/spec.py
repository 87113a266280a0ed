"""What to put in causal order, and by which columns: one frozen value for every engine.

Causes come in one of three ways, never mixed in one spec:

declared      `id` names a row, the `after` columns name its causes (a value or an array).
vector clock  `clock` holds the event's vector, `member` who made it. The event's identity is
              (member, clock[member]); its causes are (m, clock[m]) for every other m and its
              member's event before. In `waited_for` a cause is written "member:count".
FIFO          `sender` and `seq`: the cause of number n is number n - 1 of the same sender,
              written "sender:n-1"; numbers up to `first_seq` need nothing before them.

Rows of different `group` values never wait for each other. The batch engine, the stream and
the local engine read the same spec and add the same four columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from antecede.errors import InputError


class Status(StrEnum):
    """Value of the status column: what became of a row. No input row is ever left out."""

    ORDERED = "ordered"
    """Has a position; every cause has one before it."""
    MISSING_CAUSE = "missing_cause"
    """Has a position, but a cause is nowhere in the data (stream: did not come in time)."""
    DUPLICATE = "duplicate"
    """Set aside: a row with this identity and the same content has come already."""
    CONFLICT = "conflict"
    """Set aside: a row with this identity but other content has come already."""
    SELF_PARENT = "self_parent"
    """Set aside: names itself as its cause."""
    CYCLE = "cycle"
    """Set aside: is its own cause by way of other rows."""
    NULL_KEY = "null_key"
    """Set aside: no id (member, sender, number) or no group."""
    BAD_CLOCK = "bad_clock"
    """Set aside: the vector lacks its own member's entry, or an entry is negative or null."""
    LATE = "late"
    """Stream: came after rows that need it were released without it; has a position."""
    DROPPED = "dropped"
    """Stream, `missing="drop"`: set aside, a cause did not come in time."""


POSITIONED = (Status.ORDERED, Status.MISSING_CAUSE, Status.LATE)
"""The statuses of rows that have a position; all others have none."""

MissingPolicy = Literal["hold", "release", "drop"]
TimeUnit = Literal["s", "ms", "us", "ns"]


@dataclass(frozen=True, slots=True)
class OrderSpec:
    """Columns that tell causes, policies, and the names of the columns to add.

    `time` orders arrivals and breaks ties (then the id does); a timestamp gives `waited_ms`,
    an integer column gives it only with `time_unit`. `missing` and `patience` are for
    streams: in a batch a cause that is nowhere in the data counts as satisfied and the row is
    marked. `content` lists the columns that tell a repeated row from a conflicting one (None:
    all but `time`). `shards` is the number of partitions (None: the session's).
    `remember` is how long a stream knows an id after its release (None: for good).
    Raises InputError when the columns do not make up exactly one of the three ways.
    """

    id: str | None = None
    after: tuple[str, ...] = ()
    group: str | None = None
    clock: str | None = None
    member: str | None = None
    sender: str | None = None
    seq: str | None = None
    first_seq: int = 1
    time: str | None = None
    time_unit: TimeUnit | None = None
    missing: MissingPolicy = "hold"
    patience: str = "10 minutes"
    shards: int | None = None
    remember: str | None = None
    content: tuple[str, ...] | None = None
    position: str = "position"
    waited_for: str = "waited_for"
    waited_ms: str = "waited_ms"
    status: str = "antecede_status"

    def __post_init__(self) -> None:
        ways = {
            "id and after": (self.id, self.after),
            "clock and member": (self.clock, self.member),
            "sender and seq": (self.sender, self.seq),
        }
        begun = [name for name, parts in ways.items() if any(parts)]
        if len(begun) != 1 or not all(ways[begun[0]]):
            given = f"parts of: {', '.join(begun)}" if begun else "none"
            raise InputError(f"give exactly one of {' / '.join(ways)} in full; given {given}")
        if self.missing not in ("hold", "release", "drop"):
            raise InputError(f"missing must be hold, release or drop, not {self.missing!r}")
        if self.shards is not None and self.shards < 1:
            raise InputError(f"shards must be at least 1, not {self.shards}")
        if len(set(self.added)) != len(self.added):
            raise InputError(f"the added columns need distinct names, not {self.added}")

    @property
    def added(self) -> tuple[str, str, str, str]:
        """Names of the added columns: position, waited_for, waited_ms, status.

        Their types: 64-bit integer from 0 within the group; array of strings; 64-bit float,
        milliseconds; string. The first three are null where the row has no position.
        """
        return (self.position, self.waited_for, self.waited_ms, self.status)

    @property
    def used(self) -> tuple[str, ...]:
        """Names of the input columns that the spec reads, each once."""
        single = (self.id, self.group, self.clock, self.member, self.sender, self.seq, self.time)
        names = [name for name in single if name is not None]
        return tuple(dict.fromkeys([*names, *self.after, *(self.content or ())]))

    def check_columns(self, columns: list[str]) -> None:
        """Raise InputError when a column is not there or an added name is taken."""
        absent = [name for name in self.used if name not in columns]
        if absent:
            raise InputError(f"no column {', '.join(absent)}; there are {', '.join(columns)}")
        taken = [name for name in self.added if name in columns]
        if taken:
            raise InputError(
                f"the input has a column {', '.join(taken)} already; rename it, or the added one "
                "with position=, waited_for=, waited_ms=, status="
            )
