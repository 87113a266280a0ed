"""Specification of a replay: protocol and columns, the same for every engine.

Rows are members' logs. A member's log must contain its own messages, marked in `sent`: messages of
others depend on them, and protocols count them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal

from antecede.core.group import ALIASES, Group
from antecede.core.protocols import Protocol, flat_class
from antecede.errors import InputError, LocalError

Unit = Literal["s", "ms", "us", "ns"]
PER_S: Mapping[str, int] = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}

ADDED_COLUMNS = (
    "position",
    "status",
    "waited_ms",
    "waits_for",
    "reason",
    "sender",
    "seq",
    "payload",
)
"""Names of the added columns, before the prefix."""


class DeliverStatus(StrEnum):
    """Value of the status column. The output has every input row."""

    DELIVERED = "delivered"
    """Has a position: the protocol delivered it to the application."""
    RELEASED = "released"
    """Has a position, although messages in `waits_for` never came, by the protocol's policy."""
    HELD = "held"
    """Batch: still held when time ended; `waits_for` or `reason` has the condition."""
    EXPIRED = "expired"
    """Held for `patience_s`, output without a position. The protocol still holds it."""
    DUPLICATE = "duplicate"
    """A copy of a message that had arrived or been sent before."""
    DISCARDED = "discarded"
    """Never delivered by the protocol, for the given `reason`."""
    REJECTED = "rejected"
    """Malformed or impossible, for the given `reason`; it changed nothing."""
    SENT = "sent"
    """The observer's own; in total order it has a position, and is held like a received row."""
    CONTROL = "control"
    """Control message, or one that a super peer forwards: nothing to deliver."""


@dataclass(frozen=True)
class DeliverSpec:
    """Protocol, columns, and passing of time.

    `order`, `members`, `options` are those of `Group`: an alias or a protocol's name, the closed
    list (None: an open group), the protocol's options. For other starts (an invitation, a snapshot,
    a hierarchical role) give `make` instead, a picklable function (observer, group as text
    or None) -> Group. If it raises LocalError, LookupError or ValueError, the observer's rows are
    rejected.

    - `observer`, `wire`, `group`: columns of the receiver, the bytes, and the group (None: one)
    - `time`, `tiebreak`: columns of the order of arrival. `time` is a timestamp, or a number of
      `time_unit`; it is the protocol's clock, in whole ns.
    - `sent`: boolean column, true for the observer's own messages
    - `to`, `topics`: columns (arrays of strings) of arguments of `Group.send_packets` that the
      bytes do not contain. The protocols of Tsuneizumi et al. need `to` for messages with
      recipients, those of Nakayama 2017 `topics` for messages without subscribers, which have no
      bytes.
    - `tick_s`: clock-based protocols get a tick at each multiple of it
    - `finish_s`: time after an observer's last row in a batch
    - `late_s`: in a stream, the greatest lateness of a row; time-outs act that much later
    - `patience_s`: longest hold of a row (None: no limit)
    - `shards`: number of partitions; `prefix` of the names of the added columns

    Raises InputError for contradicting choices.
    """

    order: str = "causal"
    members: tuple[str, ...] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    make: Callable[[str, Any], Group] | None = None
    observer: str = "observer"
    wire: str = "wire"
    time: str = "time"
    time_unit: Unit = "s"
    group: str | None = None
    tiebreak: str | None = None
    sent: str | None = None
    to: str | None = None
    topics: str | None = None
    tick_s: float = 0.01
    finish_s: float = 60.0
    late_s: float = 0.0
    patience_s: float | None = None
    shards: int | None = None
    prefix: str = ""

    def __post_init__(self) -> None:
        if self.time_unit not in PER_S:
            raise InputError(
                f"unknown time_unit {self.time_unit!r}; choose from {', '.join(PER_S)}"
            )
        patience_s = 1.0 if self.patience_s is None else self.patience_s
        for name, value, least in (
            ("tick_s", self.tick_s, 1e-9),
            ("patience_s", patience_s, 1e-9),
            ("finish_s", self.finish_s, 0.0),
            ("late_s", self.late_s, 0.0),
        ):
            if not least <= value <= 4e9:
                raise InputError(f"{name}={value}: expected {least:g} to 4e9 seconds")
        if self.shards is not None and self.shards < 1:
            raise InputError(f"shards must be at least 1, not {self.shards}")
        if self.make is None:
            self._check_group()
        elif self.members is not None or self.options:
            raise InputError("members= and options= have no effect with make=: leave them out")

    def _check_group(self) -> None:
        """Create one group now, so that a general error does not repeat in every row."""
        members = None if self.members is None else tuple(self.members)
        if members is not None and not members:
            raise InputError(
                "members= is empty: a closed group needs a member; members=None is an open group"
            )
        try:
            if members is None and self._protocol_class.mentions is Protocol.mentions:
                raise InputError(f"{self.order} needs a closed group: give members=")
            Group("a" if members is None else members[0], members, order=self.order, **self.options)
        except (LocalError, TypeError) as error:
            raise InputError(f"cannot create a group of order {self.order!r}: {error}") from error

    @cached_property
    def _protocol_class(self) -> type[Protocol]:
        return flat_class(ALIASES.get(self.order, self.order))

    @property
    def told_time(self) -> bool:
        """Return whether the passing of time alone may change something."""
        ticks = self.make is not None or self._protocol_class.tick is not Protocol.tick
        return ticks or self.patience_s is not None

    def group_of(self, observer: str, group: Any) -> Group:
        """Return an observer's group as it is before the first row. Raises LocalError."""
        if self.make is not None:
            try:
                return self.make(observer, group)
            except (LookupError, ValueError) as error:  # an unknown name
                raise LocalError(f"make= has no group for {observer!r}: {error!r}") from error
        return Group(observer, self.members, order=self.order, **self.options)

    @property
    def added_columns(self) -> tuple[str, ...]:
        """Names of the added columns, with the prefix."""
        return tuple(self.prefix + name for name in ADDED_COLUMNS)

    @property
    def used(self) -> tuple[str, ...]:
        """Names of the input columns that the spec reads, each once."""
        names = (self.observer, self.wire, self.time, self.group, self.tiebreak)
        more = (self.sent, self.to, self.topics)
        return tuple(dict.fromkeys(name for name in (*names, *more) if name is not None))

    def check_columns(self, columns: list[str]) -> None:
        """Raise InputError for an absent column, or an added name that is taken."""
        absent = [name for name in self.used if name not in columns]
        if absent:
            raise InputError(f"no column {', '.join(absent)}; there are {', '.join(columns)}")
        taken = [name for name in self.added_columns if name in columns]
        if taken:
            raise InputError(
                f"the input has a column {', '.join(taken)} already; "
                "rename it, or give prefix= for the added ones"
            )
