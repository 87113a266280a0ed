"""What a live group is made with, and what one peer does about those who are slow or gone."""

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
from antecede.formatting import shown
from antecede.live.heads import own_topics
from antecede.live.values import check_fields, check_seconds, no_argument

NS: Final = 10**9
MERGE, MAJORITY = "merge", "majority"
PARTITIONS = (MERGE, MAJORITY)
RELEASE, SET_ASIDE, HOLD = "release", "set_aside", "hold"
MISSING_PARENT = (RELEASE, SET_ASIDE, HOLD)
SMALL: Final = 16
LONGEST_NS: Final = 2 * NS
FULL: Final = 1 << 20
"""Bytes of messages that make a batch full."""
BESIDE: Final = 1 << 18
"""More than a batch has beside its messages."""
MOST_BYTES: Final = 60 << 20
"""Of one message: with what stands beside it in a batch, it has to go into one frame."""
MOST_HISTORY: Final = 1_000_000
_ABOVE_ZERO: Final = (
    *("heartbeat_ns", "silence_ns", "greeting_ns", "relay_ns", "put_out_ns"),
    *("evict_slow_after_ns", "memory", "disk", "largest"),
)
MOST_LIVES: Final = 1 << 15
"""Lives of all members, as long as a group lasts: each takes room for good."""


@dataclass(frozen=True)
class Settings:
    """Everything but who one is. Times are nanoseconds, sizes bytes.

    Raises LocalError for an order that does not go over live links, and for values that cannot be.
    """

    room: str = ""
    """All members give the same."""
    order: str = "causal"
    """All members give the same: "causal", "reply", "fifo", "none", "bss", ..."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the order; all members give the same."""
    partition: str = MERGE
    """What a part of the group does that is cut off: "merge" goes on and merges later, "majority"
    sends and delivers nothing while it hears no more than half of the members."""
    heartbeat_ns: int = NS
    silence_ns: int = 5 * NS
    """After so long without a byte a link is given up."""
    greeting_ns: int = 5 * NS
    """After so long without a greeting a link is given up."""
    gather_ns: int = NS // 1000
    """Messages said within so long after a batch go out together in the next; four times as long
    after a large one."""
    acknowledge_ns: int = NS // 50
    """How long one waits to say what has come, to say more at once; longer in a large group."""
    relay_ns: int = NS // 2
    """How long a batch may be behind at others before one asks them for it."""
    put_out_ns: int | None = None
    """After so long unheard by all who are connected a member is put out; None: only by hand."""
    evict_slow_after_ns: int = 10 * NS
    """All members give the same: how long senders wait for a member that does not acknowledge what
    they send, before they evict it. Longer than a message takes on the slowest link."""
    memory: int = 64 << 20
    """Bytes of batches in memory that some member lacks. With a store they are read from it beyond
    this. Without one the senders of all members stop there until the others have more. A quarter
    as many bytes of messages wait for the application before nothing more is acknowledged."""
    disk: int = 4 << 30
    """With a store: the same bytes in memory and in the store, beyond which senders stop."""
    largest: int = 1 << 24
    """Of one message of the application; 60 MiB at most."""
    check_all_seals: bool = False
    """All members give the same. Check the seal of what comes from its owner too, and not only of
    what is handed on: then nobody can say to one what that one cannot hand on. It costs a
    verification a batch."""
    history: int = 0
    """How many of the newest messages one keeps, and hands to a newcomer, not more than 16 MiB of
    them. As a newcomer one takes so many at most: the lesser number of both counts."""
    missing_parent: str = RELEASE
    """Order "reply", all members give the same: what becomes of an answer whose parent died with
    its sender, once all who are in the group are connected and none of them has it: "release" hands
    it over with `Message.missing`, "set_aside" tells `GivenUp` instead, "hold" lets it wait."""
    topics: Collection[str] | None = None
    """What one subscribes to, in orders by topics; None: nothing, or what the store knows."""
    clock_error_ns: int | None = None
    """How far one's own clock may be from true time, in orders by clocks; None: the system is
    asked."""

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if self.partition not in PARTITIONS:
            raise LocalError(f"partition= is one of {PARTITIONS}, not {shown(self.partition)}")
        check_fields(self, _ABOVE_ZERO)
        if self.silence_ns <= self.heartbeat_ns:
            raise LocalError("silence_s= must be above heartbeat_s=, or idle links are given up")
        self._check_packets()
        for name, most in (("largest", MOST_BYTES), ("history", MOST_HISTORY)):
            if getattr(self, name) > most:
                raise LocalError(f"{name}= is {most:,} at most, not {shown(getattr(self, name))}")
        self._check_named()
        group = self._tried()
        if group.has_control_messages and not group.guarantee.needs_time:
            own = "; examples/lossy_sockets.py sends it over UDP" if self.order == "matrix" else ""
            raise LocalError(
                f"order {self.order!r} does not go over live links: its members speak to each "
                f"other beside their messages{own}"
            )
        self._check_missing_parent()
        self._check_topics(group)
        self._check_clocks(group)

    def _check_packets(self) -> None:
        """Refuse a limit of packets that a batch of what was said at once could exceed."""
        most = self.options.get("max_packet", Limits().max_packet)
        needed = self.largest + FULL + BESIDE
        if isinstance(most, int) and most < needed:
            raise LocalError(
                f"largest={self.largest}: batches have up to {needed} bytes, and max_packet={most} "
                "is the most that the order takes; lower largest=, or raise max_packet="
            )

    def _tried(self) -> Group:
        """Return the group of one founder; where it cannot be, say in a peer's words why."""
        try:
            return self.group("a~00000000")
        except LocalError as error:
            if str(error).endswith("give members="):
                raise LocalError(
                    f"order {self.order!r} does not go over live links: it needs one list of "
                    "members for good, and members of a live group come and go"
                ) from error
            if "give bounds=" in str(error):
                raise LocalError(
                    f"order {self.order!r} waits by the clock: give options={{"
                    '"bounds": Bounds(accuracy_s=..., least_s=..., most_s=...)}'
                ) from error
            raise

    def _check_named(self) -> None:
        """Refuse options that speak of members: a live group's members are lives."""
        if self.options.get("subscriptions") is not None:
            raise LocalError(
                "subscriptions= speaks of members by name, and a live group's members are lives, "
                "which come and go: each peer says its own, by topics= and `subscribe`"
            )
        if self.bounds is not None and self.bounds.list_members():
            raise LocalError(
                "bounds= by member: a live group's members are lives, which come and go. Give "
                "accuracy_s, least_s and most_s that hold for all of them"
            )

    def _check_topics(self, group: Group) -> None:
        if group.addressing is not Addressing.TOPICS:
            if self.topics is not None:
                raise LocalError(f"topics=: with order {self.order!r} nobody subscribes to topics")
            return
        own_topics(self.topics or ())
        if self.history:
            raise LocalError("history=: what was said lately is not handed to newcomers by topics")

    def _check_clocks(self, group: Group) -> None:
        if not group.guarantee.needs_time:
            if self.clock_error_ns is not None:
                raise LocalError(f"clock_error_s=: order {self.order!r} goes by no clock")
            return
        if group.has_control_messages and self.options.get("delivery", "null") != "bound":
            raise LocalError(
                'options={"delivery": "bound"} is needed: by null messages each member waits for '
                "every other, and one that is away, or not known yet, would stop all of a live "
                "group, or be passed over"
            )
        if self.options.get("retry_s") is not None:
            raise LocalError("retry_s=: live links lose nothing, so no order recovers loss on them")
        group.join("b~00000000")  # whatever the bounds forbid, they forbid to two

    @cached_property
    def timed(self) -> bool:
        """Whether the order goes by clocks."""
        return self.group("a~00000000").guarantee.needs_time

    @property
    def waits_for_clocks(self) -> bool:
        """True if messages wait until the receivers' clocks show the time that they carry."""
        return self.order in ("physical", "linear-physical")

    @cached_property
    def by_topics(self) -> bool:
        """Whether messages are about topics, and members subscribe to these."""
        return self.group("a~00000000").addressing is Addressing.TOPICS

    @property
    def bounds(self) -> Bounds[Any] | None:
        """The bounds that an order by clocks was promised."""
        bounds = self.options.get("bounds")
        return bounds if isinstance(bounds, Bounds) else None

    def _check_missing_parent(self) -> None:
        """Refuse what would have no effect, or would let members come to different results."""
        if self.missing_parent not in MISSING_PARENT:
            raise LocalError(
                f"missing_parent= is one of {MISSING_PARENT}, not {shown(self.missing_parent)}"
            )
        if not self.by_reply:
            if self.missing_parent != RELEASE:
                raise LocalError(f"missing_parent= is for order 'reply', not {self.order!r}")
            return
        own = sorted({"missing_parent", "patience_s", "store_limit", "overflow"} & {*self.options})
        if own:
            raise LocalError(
                f"options={{{own[0]!r}: ...}}: live members do not give up answers each by its own "
                "patience or room, but together; say how by missing_parent= beside options="
            )

    def group(self, lane: str, invitation: bytes = b"") -> Group:
        """Return the ordering group of a founder, or of one who was invited."""
        options = {"max_members": MOST_LIVES, **self.options}
        if invitation:
            return Group.accept(lane, invitation, room=self.room, lanes=True, **options)
        return Group(lane, order=self.order, room=self.room, lanes=True, **options)

    def acknowledge_every_ns(self, members: int) -> int:
        """Return how long one waits in a group of so many to say what has come.

        Everybody says it to everybody, so from 16 members on it is said more seldom: all together
        never say it more often than 16 members do, up to two seconds.
        """
        more = max(1, members * members // SMALL**2)
        return max(self.acknowledge_ns, min(self.acknowledge_ns * more, LONGEST_NS))

    @property
    def by_reply(self) -> bool:
        """Whether messages answer messages: then each is a batch of its own."""
        return self.group("a~00000000").order == "sb"

    def tags(self) -> tuple[bytes, bytes]:
        """Return the fingerprints of the room and of the options."""
        options = [repr(sorted(self.options.items())), self.partition]
        options.append(str(self.evict_slow_after_ns))
        if self.by_reply:
            options.append(self.missing_parent)
        if self.check_all_seals:
            options.append("all seals")
        return fingerprint(self.room), fingerprint(*options)


def fingerprint(*texts: str) -> bytes:
    """Return 8 bytes that differ for other texts."""
    digest = hashlib.blake2b(digest_size=8)
    for one in texts:
        raw = one.encode()
        digest.update(len(raw).to_bytes(8, "big") + raw)
    return digest.digest()


def in_ns(
    given: Mapping[str, Any], kind: type = Settings, arguments: Collection[str] = ()
) -> dict[str, Any]:
    """Turn seconds into nanoseconds, under the names that the settings have.

    Raises LocalError for what is no field of `kind`. `arguments`: what a peer takes beside these,
    which may be meant then.
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
