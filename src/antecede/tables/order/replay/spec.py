"""Specification of a replay: protocol and columns, the same for every engine.

Rows are members' logs: receiver (`observer`), the bytes of a `Group` (`wire`), `time` and `group`.
A member's own messages belong in its log, marked in `sent`: messages of others depend on them, and
protocols count own messages as they send them.
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
"""The added columns, before the prefix. Types: `antecede.tables.order.replay.table.added`."""


class DeliverStatus(StrEnum):
    """Value of the status column: what became of a row. No input row is ever left out."""

    DELIVERED = "delivered"
    """Has a position: the protocol handed it to the application."""
    RELEASED = "released"
    """Has a position, although the messages in `waits_for` never came; the protocol's policy."""
    HELD = "held"
    """Batch: still held back when time ended, by what stands in `waits_for`; where no message can
    be named (members must be heard of, time must pass), `reason` says what the protocol knows."""
    EXPIRED = "expired"
    """Held for `patience_s`; given out without a position. The protocol goes on holding it."""
    DUPLICATE = "duplicate"
    """A copy of a message that had arrived or been sent before."""
    DISCARDED = "discarded"
    """The protocol will not deliver it; it says why in `reason`."""
    REFUSED = "refused"
    """Malformed or impossible, as `reason` says; it changed nothing."""
    SENT = "sent"
    """The observer's own; `reason` tells when the protocol would have sent other bytes.

    In total order it has a position: own messages are delivered in their turn. Until then the row
    is held (and may end as `held` or `expired`) like a received one."""
    CONTROL = "control"
    """A message between protocols (or one that a super peer forwards): nothing to deliver."""


@dataclass(frozen=True)
class DeliverSpec:
    """The protocol, the columns, and how time passes.

    `order`, `members`, `options` are those of `Group`: an alias or a protocol's name, the closed
    list (None: an open group), the protocol's own options. Where observers begin otherwise (an
    invitation, a snapshot, a role of the hierarchical protocol), give `make` in place of the three:
    a picklable function (observer, group as text or None) -> Group. Where it raises LocalError,
    LookupError or ValueError the observer's rows are refused.

    `observer`, `wire`, `time`, `group`, `tiebreak` name columns. Rows of one (group, observer)
    arrive by (time, tiebreak). A timestamp serves as time, and a number of `time_unit`; both become
    the protocol's clock, in whole nanoseconds. `sent` names a boolean column, true for the
    observer's own messages. `to` and `topics` name columns (arrays of strings) with the arguments
    of `Group.post` that the bytes do not hold. The protocols of Tsuneizumi et al. need them for
    messages that are not for everybody, those of Nakayama 2017 for messages about topics without
    subscribers, which count and have no bytes.

    `tick_s`: time-bound protocols get a tick at each multiple of it. `finish_s`: time after an
    observer's last row in a batch. `late_s`: in a stream, how far a row's time may lie behind the
    greatest one seen; time-outs act that much later. `patience_s`: the longest hold of a row (None:
    no limit). `shards`: partitions. `prefix` goes before the names of the added columns. Raises
    InputError for choices that make no sense.
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
            raise InputError(f"time_unit must be one of {', '.join(PER_S)}, not {self.time_unit!r}")
        patience_s = 1.0 if self.patience_s is None else self.patience_s
        for name, value, least in (
            ("tick_s", self.tick_s, 1e-9),
            ("patience_s", patience_s, 1e-9),
            ("finish_s", self.finish_s, 0.0),
            ("late_s", self.late_s, 0.0),
        ):
            if not least <= value <= 4e9:
                raise InputError(f"{name} is {value} seconds; {least:g} to 4e9 can be")
        if self.shards is not None and self.shards < 1:
            raise InputError(f"shards must be at least 1, not {self.shards}")
        if self.make is None:
            self._check_group()
        elif self.members is not None or self.options:
            raise InputError("make= makes the groups: give it no members= and options= beside")

    def _check_group(self) -> None:
        """Make one group now, so that a general error does not turn up in every row."""
        members = None if self.members is None else tuple(self.members)
        if members is not None and not members:
            raise InputError("a closed group has at least one member; members=None is an open one")
        try:
            if members is None and self._protocol_class.mentions is Protocol.mentions:
                raise InputError(f"{self.order} needs a closed group: give members=")
            Group("a" if members is None else members[0], members, order=self.order, **self.options)
        except (LocalError, TypeError) as error:
            raise InputError(f"no group of order {self.order!r} can be made: {error}") from error

    @cached_property
    def _protocol_class(self) -> type[Protocol]:
        return flat_class(ALIASES.get(self.order, self.order))

    @property
    def told_time(self) -> bool:
        """Whether the passing of time alone may change something."""
        ticks = self.make is not None or self._protocol_class.tick is not Protocol.tick
        return ticks or self.patience_s is not None

    def group_of(self, observer: str, group: Any) -> Group:
        """Return an observer's group as it is before the first row. Raises LocalError."""
        if self.make is not None:
            try:
                return self.make(observer, group)
            except (LookupError, ValueError) as error:  # a name that its tables do not know
                raise LocalError(f"make= has no group for {observer!r}: {error!r}") from error
        return Group(observer, self.members, order=self.order, **self.options)

    @property
    def added_columns(self) -> tuple[str, ...]:
        """Names of the added columns, in the order of `ADDED`."""
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
