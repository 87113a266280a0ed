"""Specification of a causal order: columns and policies, the same for every engine.

Causes come in one of three ways, never mixed in one spec:

declared      `id` names a row, the `after` columns name its causes (a value or an array).
vector clock  `clock` holds the event's vector, `member` its maker. The identity is
              (member, clock[member]); the causes are (m, clock[m]) for every other m and the
              member's event before. `waited_for` and `missing_causes` hold "member:count".
FIFO          `sender` and `seq`: the cause of number n is number n - 1 of the same sender,
              written "sender:n-1"; numbers up to `first_seq` need nothing before them.

Rows of different `group` values never wait for each other. Batch, stream and local engine add the
same six columns.
"""

from __future__ import annotations

import datetime as dt
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, get_args

from antecede.errors import InputError
from antecede.tables.order.durations import duration_ms


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
    SELF_CAUSE = "self_cause"
    """Set aside: names itself as its cause."""
    CYCLE = "cycle"
    """Set aside: is its own cause by way of other rows."""
    NULL_KEY = "null_key"
    """Set aside: no id (member, sender, number; blanks are none) or no group."""
    BAD_CLOCK = "bad_clock"
    """Set aside: the vector lacks its own member's entry, or an entry is negative or null."""
    LATE = "late"
    """Stream: came after rows that need it were released without it; has a position."""
    DROPPED = "dropped"
    """Stream, `on_missing="drop"`: set aside, a cause did not come in time."""
    RESTARTED = "restarted"
    """Stream, `state_ttl=`: the first row of a group that was forgotten; has position 0 again."""


POSITIONED = (Status.ORDERED, Status.MISSING_CAUSE, Status.LATE, Status.RESTARTED)
"""The statuses of rows that have a position; all others have none."""

MissingPolicy = Literal["hold", "release", "drop"]
OverflowPolicy = Literal["fail", "release", "drop"]
TimeUnit = Literal["s", "ms", "us", "ns"]
LargeGroupPolicy = Literal["auto", "always", "never"]


@dataclass(frozen=True, slots=True)
class OrderSpec:
    """Columns that tell causes, policies, and the names of the columns to add.

    `time` orders arrivals and breaks ties (then the id does); a timestamp gives `waited_ms`, an
    integer column only with `time_unit`. `on_missing` and `patience` are for streams: in a batch an
    absent cause counts as satisfied and the row is marked. `patience` and `state_ttl` are text with
    units ("10 minutes", "90 s") or a timedelta. `content` lists the columns that tell a repeated
    row from a conflicting one (None: all but `time`).

    `shards` is the number of partitions (None: the session's); in a stream that of pieces of state,
    fixed for good (None: that of `checkpoint`; a new stream with groups gets the session's
    partitions, doubled until they are 32 or more). `state_ttl` is how long a stream knows an id
    after its release (None: for good), and a group, or a member of clocks and numbers, after its
    last row. `max_held_rows` bounds the rows that a stream holds back (None: no limit), with groups
    in equal parts per shard. `on_overflow` is the fate of the oldest beyond it: "fail" stops the
    query, "release" and "drop" are those of `on_missing`. `checkpoint` is the query's checkpoint
    folder, whose content is compared with this spec before the start. `metrics` is the name under
    which a stream's figures are observed (None: not at all).

    `large_groups` and `max_rows_per_task` are for Spark batches: groups of more rows than that
    ("always": all) are ordered by a fixpoint over joins, the others ("never": all) each in one
    task. Raises InputError when the columns do not make up exactly one of the three ways.
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
    on_missing: MissingPolicy = "hold"
    patience: str | dt.timedelta = "10 minutes"
    shards: int | None = None
    state_ttl: str | dt.timedelta | None = None
    max_held_rows: int | None = 10_000_000
    on_overflow: OverflowPolicy = "fail"
    checkpoint: str | None = None
    metrics: str | None = "antecede"
    content: tuple[str, ...] | None = None
    large_groups: LargeGroupPolicy = "auto"
    max_rows_per_task: int = 4_000_000
    position: str = "position"
    waited_for: str = "waited_for"
    missing_causes: str = "missing_causes"
    waited_ms: str = "waited_ms"
    released_at: str = "released_at"
    status: str = "antecede_status"

    def __post_init__(self) -> None:
        for what in ("after", "content"):  # one name is as good as a tuple of one
            if isinstance(getattr(self, what), str):
                object.__setattr__(self, what, (getattr(self, what),))
        self._check_types()
        ways = {
            "id and after": (self.id, self.after),
            "clock and member": (self.clock, self.member),
            "sender and seq": (self.sender, self.seq),
        }
        begun = [name for name, parts in ways.items() if any(parts)]
        if len(begun) != 1 or not all(ways[begun[0]]):
            given = f"parts of: {', '.join(begun)}" if begun else "none"
            raise InputError(f"give exactly one of {' / '.join(ways)} in full; given {given}")
        if self.on_overflow != "fail" and self.max_held_rows is None:
            raise InputError(
                "on_overflow says what becomes of rows beyond max_held_rows: give that, too"
            )
        if self.first_seq != 1 and self.sender is None:
            raise InputError("first_seq says where a sender's numbers begin: give sender and seq")
        if self.time_unit is not None and self.time is None:
            raise InputError("time_unit is the unit of the column time: give time, too")
        duration_ms(self.patience, "patience")
        if self.state_ttl is not None:
            duration_ms(self.state_ttl, "state_ttl")
        if len(set(self.added)) != len(self.added):
            raise InputError(f"the added columns need distinct names, not {self.added}")

    def _check_types(self) -> None:
        """Refuse columns that are not names, and values of other types or sets."""
        one = ("id", "group", "clock", "member", "sender", "seq", "time")
        given = [(f, getattr(self, f)) for f in one if getattr(self, f) is not None]
        given += [("after", name) for name in self.after]
        given += [("content", name) for name in self.content or ()]
        names = ("position", "waited_for", "missing_causes", "waited_ms", "released_at", "status")
        given += list(zip(names, self.added, strict=True))
        for what, name in given:
            if not isinstance(name, str) or not name:
                kind = type(name).__name__
                raise InputError(f"{what} is the name of a column, as text; this is a {kind}")
        for what in ("first_seq", "shards", "max_held_rows", "max_rows_per_task"):
            number = getattr(self, what)
            if number is None:
                continue
            if isinstance(number, bool) or not isinstance(number, int):
                raise InputError(f"{what} must be a whole number, not {number!r}")
            if number < 1 and what != "first_seq":
                raise InputError(f"{what} must be at least 1, not {number}")
        for what in ("checkpoint", "metrics"):
            name = getattr(self, what)
            if name is not None and (not isinstance(name, str) or not name):
                raise InputError(f"{what} must be text, not {name!r}")
        for what, values in (
            ("on_missing", MissingPolicy),
            ("on_overflow", OverflowPolicy),
            ("large_groups", LargeGroupPolicy),
            ("time_unit", TimeUnit),
        ):
            *others, last = get_args(values)
            value = getattr(self, what)
            if value not in (*others, last) and (what, value) != ("time_unit", None):
                raise InputError(f"{what} must be {', '.join(others)} or {last}, not {value!r}")

    @property
    def added(self) -> tuple[str, str, str, str, str, str]:
        """Names of the added columns: position, waited_for, missing_causes, waited_ms, released_at,
        status.

        Their types: 64-bit integer from 0 within the group; two arrays of strings; 64-bit float,
        milliseconds; that of `time` (a timestamp for dates, and without times); string. Waits and
        releases are null without times, or with numbers that have no `time_unit`. All but the
        status are null where the row has no position. `waited_for` has the causes that came out
        later than the row came, `missing_causes` those that had not come when the row went (in a
        batch: nowhere).
        """
        return (
            self.position,
            self.waited_for,
            self.missing_causes,
            self.waited_ms,
            self.released_at,
            self.status,
        )

    @property
    def written(self) -> tuple[str, ...]:
        """Names of the added columns that a command writes: `released_at` is for watermarks."""
        return tuple(name for name in self.added if name != self.released_at)

    @property
    def used(self) -> tuple[str, ...]:
        """Names of the input columns that the spec reads, each once, without those of `content`."""
        single = (self.id, self.group, self.clock, self.member, self.sender, self.seq, self.time)
        names = [name for name in single if name is not None]
        return tuple(dict.fromkeys([*names, *self.after]))

    def content_of(self, columns: Sequence[str]) -> list[str]:
        """Return the columns that tell a repeated row from a conflicting one."""
        if self.content is not None:
            return list(self.content)
        return [name for name in columns if name != self.time] or list(columns)

    @property
    def ways(self) -> str:
        """The columns that tell causes, in words."""
        names = [*self.after] if self.id else [self.clock, self.member, self.sender, self.seq]
        return ", ".join(f"column {name}" for name in names if name is not None)

    def check_batch(self) -> None:
        """Raise InputError for a policy that a batch cannot follow."""
        if self.on_missing == "drop":
            raise InputError(
                "on_missing='drop' is for streams: in a batch a row without its cause is kept and "
                f"marked; filter on {self.status} = '{Status.MISSING_CAUSE}'"
            )

    def check_stream(self) -> None:
        """Raise InputError for a choice that a stream cannot follow; warn of one without effect."""
        fields = type(self).__dataclass_fields__
        if self.on_missing == "hold" and self.patience != fields["patience"].default:
            warnings.warn(
                f"patience={self.patience!r} has no effect with on_missing='hold', where rows wait "
                "for ever: choose on_missing='release' or 'drop', or leave patience out",
                stacklevel=2,
            )
        given = [
            name
            for name in ("large_groups", "max_rows_per_task")
            if getattr(self, name) not in (fields[name].default, "never")
        ]
        if given:
            raise InputError(
                f"{' and '.join(given)} is for batches: a stream keeps a group in one shard, and "
                "counts nothing before it runs"
            )

    def check_columns(self, columns: Sequence[str]) -> None:
        """Raise InputError for an absent or repeated column, or an added name that is taken."""
        named = dict.fromkeys([*self.used, *(self.content or ())])
        absent = [name for name in named if name not in columns]
        if absent:
            inside = any("." in name and name.split(".")[0] in columns for name in absent)
            hint = "; select the field of a struct as a column of its own first" if inside else ""
            raise InputError(f"no column {', '.join(absent)}; there are {', '.join(columns)}{hint}")
        twice = [name for name, count in Counter(columns).items() if count > 1]
        if twice:
            raise InputError(f"two columns are called {', '.join(twice)}: rename one of them")
        taken = [name for name in self.added if name in columns]
        if taken:
            raise InputError(
                f"the input has a column {', '.join(taken)} already; rename it, or the added one "
                "with position=, waited_for=, missing_causes=, waited_ms=, released_at=, status="
            )
