"""Specification of a causal order: columns and policies, the same for every engine.

Exactly one kind of columns gives the causes:

- declared: `id` names a row, the `after` columns name its causes (a value or an array)
- vector clock: `clock` is the event's vector, `member` its process. The identity is (member,
  clock[member]). The causes are (m, clock[m]) of every other m, and the member's preceding event,
  written "member:count".
- FIFO: `sender` and `seq`. The cause of number n is number n - 1 of the same sender, written
  "sender:n-1". Numbers up to `first_seq` have no cause.

Rows of different `group` values never wait for each other.
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
    """Value of the status column. The output has every input row."""

    ORDERED = "ordered"
    """Has a position; every cause precedes it."""
    MISSING_CAUSE = "missing_cause"
    """Has a position, but a cause is nowhere in the data (stream: not within `patience`)."""
    DUPLICATE = "duplicate"
    """Excluded: repeats a row of the same identity and content."""
    CONFLICT = "conflict"
    """Excluded: repeats an identity with other content."""
    SELF_CAUSE = "self_cause"
    """Excluded: names itself as its cause."""
    CYCLE = "cycle"
    """Excluded: is its own cause through other rows."""
    NULL_KEY = "null_key"
    """Excluded: no id (member, sender, number; blanks are none) or no group."""
    BAD_CLOCK = "bad_clock"
    """Excluded: the vector lacks its own member's entry, or an entry is negative or null."""
    LATE = "late"
    """Stream: came after rows that need it were released without it; has a position."""
    DROPPED = "dropped"
    """Stream, `on_missing="drop"`: excluded, a cause did not come within `patience`."""
    RESTARTED = "restarted"
    """Stream, `state_ttl=`: the first row of a forgotten group; has position 0 again."""


POSITIONED = (Status.ORDERED, Status.MISSING_CAUSE, Status.LATE, Status.RESTARTED)
"""Statuses of rows that have a position; all others have none."""

MissingPolicy = Literal["hold", "release", "drop"]
OverflowPolicy = Literal["fail", "release", "drop"]
TimeUnit = Literal["s", "ms", "us", "ns"]
LargeGroupPolicy = Literal["auto", "always", "never"]


@dataclass(frozen=True, slots=True)
class OrderSpec:
    """Columns of causes, policies, and names of the added columns.

    `time` orders arrivals and breaks ties (the id does so next). A timestamp also gives
    `waited_ms`; an integer column only with `time_unit`. `content` lists the columns that
    distinguish a repeat from a conflict (default: all but `time`). Streams only; durations are text
    ("90 s") or a timedelta:

    - `on_missing`: "hold" a row until its causes come, or "release" or "drop" it after `patience`
      (batch: a missing cause counts as satisfied)
    - `state_ttl`: time that ids are known after their release, and groups and members after their
      last row (None: no limit)
    - `max_held_rows`: limit of held rows (None: no limit), divided among shards with groups
    - `on_overflow`: beyond the limit "fail" the query, or "release" or "drop" the oldest rows
    - `checkpoint`: the query's checkpoint folder, compared with this spec before the start
    - `metrics`: name under which metrics are observed (None: not at all)

    `shards` is the number of partitions (default: the session's). In a stream it is fixed (default:
    as in `checkpoint`, else, with groups, doubled to at least 32). Spark batches order groups of
    more than `max_rows_per_task` rows by a fixpoint over joins, others in one task each.
    `large_groups` "always" does so with every group, "never" with none. Raises InputError unless
    the columns of causes are exactly one kind.
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
        for what in ("after", "content"):  # text means a tuple of one name
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
            named = [
                name
                for way, parts in ways.items()
                for name, part in zip(way.split(" and "), parts, strict=True)
                if part
            ]
            given = ", ".join(named) or "none"
            raise InputError(f"give exactly one of the pairs {', '.join(ways)}; given: {given}")
        if self.on_overflow != "fail" and self.max_held_rows is None:
            raise InputError("on_overflow has no effect without max_held_rows: give both")
        if self.first_seq != 1 and self.sender is None:
            raise InputError("first_seq has no effect without sender and seq: give them, too")
        if self.time_unit is not None and self.time is None:
            raise InputError("time_unit has no effect without time: give time, too")
        duration_ms(self.patience, "patience")
        if self.state_ttl is not None:
            duration_ms(self.state_ttl, "state_ttl")
        if len(set(self.added)) != len(self.added):
            raise InputError(f"the added columns need distinct names, not {self.added}")

    def _check_types(self) -> None:
        """Raise InputError for column names and values of other types or sets."""
        single = ("id", "group", "clock", "member", "sender", "seq", "time")
        given = [(f, getattr(self, f)) for f in single if getattr(self, f) is not None]
        given += [("after", name) for name in self.after]
        given += [("content", name) for name in self.content or ()]
        names = ("position", "waited_for", "missing_causes", "waited_ms", "released_at", "status")
        given += list(zip(names, self.added, strict=True))
        for what, name in given:
            if not isinstance(name, str) or not name:
                kind = type(name).__name__
                raise InputError(f"{what} must be a column name (text), not {kind}")
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
        """Names of the six added columns. All but the status are null for rows without a position.

        - `position`: 64-bit integer from 0 within the group
        - `waited_for`: array of strings, causes that were released after the row came
        - `missing_causes`: array of strings, causes absent at the release (batch: nowhere)
        - `waited_ms`: 64-bit float; null without times, or for numbers without `time_unit`
        - `released_at`: type of `time` (a timestamp for dates and without times), or null
        - `status`: string
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
        """Names of the added columns that a command writes: all but `released_at`."""
        return tuple(name for name in self.added if name != self.released_at)

    @property
    def used(self) -> tuple[str, ...]:
        """Names of the input columns that the spec reads, without those of `content`."""
        single = (self.id, self.group, self.clock, self.member, self.sender, self.seq, self.time)
        names = [name for name in single if name is not None]
        return tuple(dict.fromkeys([*names, *self.after]))

    def content_of(self, columns: Sequence[str]) -> list[str]:
        """Return the columns that distinguish a repeat from a conflict."""
        if self.content is not None:
            return list(self.content)
        return [name for name in columns if name != self.time] or list(columns)

    @property
    def ways(self) -> str:
        """Columns of causes, as text for messages."""
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
        """Raise InputError for a batch option; warn about a patience without effect."""
        fields = type(self).__dataclass_fields__
        if self.on_missing == "hold" and self.patience != fields["patience"].default:
            warnings.warn(
                f"patience={self.patience!r} has no effect with on_missing='hold', where rows wait "
                "without limit: choose on_missing='release' or 'drop', or leave patience out",
                stacklevel=2,
            )
        given = [
            name
            for name in ("large_groups", "max_rows_per_task")
            if getattr(self, name) not in (fields[name].default, "never")
        ]
        if given:
            raise InputError(
                f"{' and '.join(given)} is for batches: a stream keeps each group in one shard; "
                "leave it out"
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
            raise InputError(f"two columns have the name {', '.join(twice)}: rename one of them")
        taken = [name for name in self.added if name in columns]
        if taken:
            raise InputError(
                f"the input has a column {', '.join(taken)} already; rename it, or the added one "
                "with position=, waited_for=, missing_causes=, waited_ms=, released_at=, status="
            )
