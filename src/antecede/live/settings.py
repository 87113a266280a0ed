"""Settings of a live group and of one of its peers."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from antecede.core.clocks import Bounds
from antecede.core.group import Group, Limits
from antecede.core.protocols import Addressing
from antecede.errors import LocalError
from antecede.formatting import quote
from antecede.live.heads import own_topics
from antecede.live.values import check_fields, check_seconds, no_argument

NS: Final = 10**9
MERGE, MAJORITY = "merge", "majority"
PARTITIONS = (MERGE, MAJORITY)
DELIVER, DROP, HOLD = "deliver", "drop", "hold"
ON_MISSING_PARENT = (DELIVER, DROP, HOLD)
SMALL: Final = 16
LONGEST_NS: Final = 2 * NS
FULL: Final = 1 << 20
BESIDE: Final = 1 << 18
MAX_MESSAGE_BYTES: Final = 60 << 20
"""Largest message, bytes. With the rest of its batch it fits into one frame."""
MAX_HISTORY: Final = 1_000_000
_ABOVE_ZERO: Final = (
    *("heartbeat_ns", "failure_timeout_ns", "handshake_timeout_ns", "repair_delay_ns"),
    *("evict_after_ns", "evict_slow_after_ns"),
    *("max_memory_bytes", "max_disk_bytes", "max_message_bytes"),
)
MAX_INCARNATIONS: Final = 1 << 15
"""Incarnations of all members in the lifetime of a group. Each takes memory for good."""


@dataclass(frozen=True)
class Settings:
    """Settings of a peer and its group, without its identity. Times are nanoseconds. Raises
    LocalError for an order that live connections do not support, and for invalid values.
    """

    group_name: str = ""
    """Name of the group, the same at all members."""
    order: str = "causal"
    """The same at all members: "causal", "reply", "fifo", "none", "bss", ..."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the order, the same at all members."""
    partition: str = MERGE
    """Behaviour in a partition. "merge": both parts continue and merge later. "majority": a part
    without more than half of the members sends and delivers nothing."""
    heartbeat_ns: int = NS
    failure_timeout_ns: int = 5 * NS
    """Time without received bytes after which a connection is closed."""
    handshake_timeout_ns: int = 5 * NS
    """Time without a HELLO after which a connection is closed."""
    linger_ns: int = NS // 1000
    """Batching delay: messages sent within this time after a batch share the next one. Four times
    as long after a large batch."""
    ack_delay_ns: int = NS // 50
    """Delay of acknowledgements. Several go together. Grows with the group size."""
    repair_delay_ns: int = NS // 2
    """Time that a batch may be overdue before the member requests it from others."""
    evict_after_ns: int | None = None
    """Time after which a member that no connected member hears is evicted. None: by hand only."""
    evict_slow_after_ns: int = 10 * NS
    """Time that senders wait for a member that does not acknowledge, before they evict it. The same
    at all members. Longer than a message takes on the slowest connection."""
    max_memory_bytes: int = 64 << 20
    """Limit of batches in memory that some member lacks. With a store the rest is read from there.
    Without a store all senders wait. Beyond a quarter of it, undelivered messages are not
    acknowledged."""
    max_disk_bytes: int = 4 << 30
    """With a store: limit of these batches in memory and store together. Beyond it senders wait."""
    max_message_bytes: int = 1 << 24
    """Limit of one message, at most 60 MiB."""
    verify_all_signatures: bool = False
    """Verify signatures of directly received batches too, not only of relayed ones. The same at all
    members. This detects equivocation at once and costs one verification per batch."""
    history: int = 0
    """Newest messages to keep, and to give to a joining member: at most 16 MiB. A joining member
    takes the lesser of its own number and the sponsor's."""
    on_missing_parent: str = DELIVER
    """Order "reply": policy for a reply whose parent is lost. The same at all members. It applies
    once all members are connected and none has the parent. "deliver": deliver it with
    `Message.missing_ids`. "drop": report `MessagesAbandoned`. "hold": hold it for good."""
    topics: Collection[str] | None = None
    """Subscription of this peer (orders by topics). None: none, or the one in the store."""
    clock_error_ns: int | None = None
    """Largest error of the own clock (orders by clocks). None: read from the system."""

    def __post_init__(self) -> None:
        if self.partition not in PARTITIONS:
            raise LocalError(f"unknown partition={quote(self.partition)}; choose from {PARTITIONS}")
        check_fields(self, _ABOVE_ZERO)
        if self.failure_timeout_ns <= self.heartbeat_ns:
            raise LocalError(
                "failure_timeout_s= must exceed heartbeat_s=, or idle connections are closed"
            )
        self._check_packets()
        for name, most in (("max_message_bytes", MAX_MESSAGE_BYTES), ("history", MAX_HISTORY)):
            if (value := getattr(self, name)) > most:
                raise LocalError(f"{name}={quote(value)} is too large; the limit is {most:,}")
        self._check_named()
        group = self._try_group()
        if group.has_control_messages and not group.guarantee.needs_time:
            own = "; see examples/lossy_sockets.py for UDP" if self.order == "matrix" else ""
            raise LocalError(
                f"order {self.order!r} is not supported by live groups: it sends control "
                f"messages{own}"
            )
        self._check_on_missing_parent()
        self._check_topics(group)
        self._check_clocks(group)

    def _check_packets(self) -> None:
        """Raise LocalError for a packet limit below the size of a full batch."""
        most = self.options.get("max_packet", Limits().max_packet)
        needed = self.max_message_bytes + FULL + BESIDE
        if isinstance(most, int) and most < needed:
            raise LocalError(
                f"max_message_bytes={self.max_message_bytes}: batches have up to {needed} "
                f"bytes, more than max_packet={most} of the order; lower max_message_bytes=, or "
                "raise max_packet="
            )

    def _try_group(self) -> Group:
        """Return the ordering group of one founder. Rephrase its errors for a peer."""
        try:
            return self.group("a~00000000")
        except LocalError as error:
            if str(error).endswith("give members="):
                raise LocalError(
                    f"order {self.order!r} is not supported by live groups: it needs a fixed list "
                    "of members, and members of a live group join and leave"
                ) from error
            if "give bounds=" in str(error):
                raise LocalError(
                    f"order {self.order!r} needs clock bounds; give options={{"
                    '"bounds": Bounds(accuracy_s=..., least_s=..., most_s=...)}'
                ) from error
            raise

    def _check_named(self) -> None:
        """Raise LocalError for options that name members. Live members are incarnations."""
        if self.options.get("subscriptions") is not None:
            raise LocalError(
                "subscriptions= names members, and members of a live group are incarnations; give "
                "each peer its own topics=, or call `subscribe`"
            )
        if self.bounds is not None and self.bounds.list_members():
            raise LocalError(
                "bounds= names members, and members of a live group are incarnations; give "
                "accuracy_s, least_s and most_s that hold for all of them"
            )

    def _check_topics(self, group: Group) -> None:
        if group.addressing is not Addressing.TOPICS:
            if self.topics is not None:
                raise LocalError(f"topics= has no effect with order {self.order!r}")
            return
        own_topics(self.topics or ())
        if self.history:
            raise LocalError("history= is not supported by orders by topics; leave it out")

    def _check_clocks(self, group: Group) -> None:
        if not group.guarantee.needs_time:
            if self.clock_error_ns is not None:
                raise LocalError(
                    f"clock_error_s= has no effect: order {self.order!r} uses no clock"
                )
            return
        if group.has_control_messages and self.options.get("delivery", "null") != "bound":
            raise LocalError(
                'live groups need options={"delivery": "bound"}: with null messages every member '
                "waits for every other, so an absent one would stop the group"
            )
        if self.options.get("retry_s") is not None:
            raise LocalError("retry_s= has no effect: live connections lose nothing; leave it out")
        group.join("b~00000000")  # raises what the bounds forbid for two members

    @cached_property
    def timed(self) -> bool:
        """True if the order needs clocks."""
        return self.group("a~00000000").guarantee.needs_time

    @property
    def waits_for_clocks(self) -> bool:
        """True if messages wait until the receivers' clocks show the time that they carry."""
        return self.order in ("physical", "linear-physical")

    @cached_property
    def by_topics(self) -> bool:
        """True if messages have topics and members subscribe to them."""
        return self.group("a~00000000").addressing is Addressing.TOPICS

    @property
    def bounds(self) -> Bounds[Any] | None:
        """Promised bounds of an order by clocks."""
        bounds = self.options.get("bounds")
        return bounds if isinstance(bounds, Bounds) else None

    def _check_on_missing_parent(self) -> None:
        """Raise LocalError for policies without effect, and for policies that differ between
        members.
        """
        if self.on_missing_parent not in ON_MISSING_PARENT:
            raise LocalError(
                f"unknown on_missing_parent={quote(self.on_missing_parent)}; choose from "
                f"{ON_MISSING_PARENT}"
            )
        if not self.by_reply:
            if self.on_missing_parent != DELIVER:
                raise LocalError(
                    f"on_missing_parent= has no effect with order {self.order!r}, only with 'reply'"
                )
            return
        own = sorted(
            {"on_missing_parent", "patience_s", "store_limit", "overflow"} & {*self.options}
        )
        if own:
            raise LocalError(
                f"options={{{own[0]!r}: ...}} is not supported: live members abandon replies "
                "together; give on_missing_parent= beside options="
            )

    def group(self, lane: str, invitation: bytes = b"") -> Group:
        """Return the ordering group of a founder or of an invited member."""
        options = {"max_members": MAX_INCARNATIONS, **self.options}
        if invitation:
            return Group.accept(lane, invitation, room=self.group_name, lanes=True, **options)
        return Group(lane, order=self.order, room=self.group_name, lanes=True, **options)

    def ack_period_ns(self, members: int) -> int:
        """Return the delay of acknowledgements in a group of `members`. Every member acknowledges
        to every other. So from 16 members on the delay grows, up to 2 s: a group never sends more
        acknowledgements than 16 members do.
        """
        more = max(1, members * members // SMALL**2)
        return max(self.ack_delay_ns, min(self.ack_delay_ns * more, LONGEST_NS))

    @property
    def by_reply(self) -> bool:
        """True if messages reply to messages. Then each message is a batch."""
        return self.group("a~00000000").order == "sb"

    def tags(self) -> tuple[bytes, bytes]:
        """Return the hashes of group name and options."""
        options = [repr(sorted(self.options.items())), self.partition]
        options.append(str(self.evict_slow_after_ns))
        if self.by_reply:
            options.append(self.on_missing_parent)
        if self.verify_all_signatures:
            options.append("verify all signatures")
        return fingerprint(self.group_name), fingerprint(*options)


def fingerprint(*texts: str) -> bytes:
    """Return an 8-byte hash of texts."""
    digest = hashlib.blake2b(digest_size=8)
    for one in texts:
        raw = one.encode()
        digest.update(len(raw).to_bytes(8, "big") + raw)
    return digest.digest()


def in_ns(
    given: Mapping[str, Any], kind: type = Settings, arguments: Collection[str] = ()
) -> dict[str, Any]:
    """Return settings with times in nanoseconds, from arguments in seconds. `arguments`: further
    arguments of a peer, for suggestions. Raises LocalError for unknown names.
    """
    known = kind.__dataclass_fields__  # type: ignore[attr-defined]
    found: dict[str, Any] = {}
    for name, value in given.items():
        inner = f"{name[:-2]}_ns" if name.endswith("_s") else ""
        if inner in known:
            if value is not None:
                check_seconds(name, value)
            found[inner] = None if value is None else round(value * NS)
        elif name in known and not name.endswith("_ns"):
            found[name] = value
        else:
            raise no_argument(name, (*known, *arguments))
    return found
