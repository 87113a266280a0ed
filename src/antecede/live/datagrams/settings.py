"""What a group over datagrams is made with, and what one peer does about loss, size and silence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from antecede.clocks.bounds import Bounds
from antecede.errors import LocalError
from antecede.group.group import Group
from antecede.live.settings import NS, fingerprint
from antecede.live.values import check_fields
from antecede.protocols.given import effective
from antecede.protocols.registry import flat_class
from antecede.protocols.timed.channel import KEEP

CLOCKED: Final = ("linear", "physical", "linear-physical")
ORDERS: Final = ("matrix", *CLOCKED)
LEAST_DATAGRAM: Final = 256
MOST_DATAGRAM: Final = 65_000


@dataclass(frozen=True)
class DatagramSettings:
    """Everything but who one is. Times are nanoseconds, sizes bytes.

    Raises LocalError for an order that does not recover what is lost, and for values that cannot
    be.
    """

    room: str = ""
    """All members give the same."""
    order: str = "matrix"
    """All members give the same: "matrix", "linear", "physical" or "linear-physical"."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the order; all members give the same."""
    heartbeat_ns: int = NS // 5
    """At least so often a member says how far it has come."""
    silence_ns: int = 2 * NS
    """Who was heard within this is not put out because others do not hear it."""
    put_out_ns: int | None = None
    """After so long unheard a member is put out; None: only by hand."""
    acknowledge_ns: int = NS // 50
    """How long one waits to say what has come, to say more at once."""
    tick_ns: int = NS // 100
    """How often the order is told that time has passed."""
    resend_ns: int = NS // 20
    """After so long without an answer one sends again; from there on after twice as long."""
    datagram: int = 1200
    """Of a datagram, without what encryption adds: what every path carries whole."""
    largest: int = 1 << 18
    """Of one message of the application; above a datagram it goes in parts."""
    window: int = 1024
    """Batches that some member may lack before nothing more is sent."""
    pending: int = 4 << 20
    """Bytes that wait to be sent before more is refused."""
    rate: int = 32 << 20
    """Bytes a second to one member at most."""
    burst: int = 64 << 10
    """Bytes to one member at once at most."""
    reassembly: int = 16 << 20
    """Bytes of unfinished parts that are kept of one member."""
    memory: int = 64 << 20
    """Bytes of others' messages that are kept to be handed on (orders by clocks)."""

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        above_zero = (
            *("heartbeat_ns", "silence_ns", "acknowledge_ns", "tick_ns", "resend_ns"),
            *("largest", "window", "pending", "rate", "burst", "reassembly", "memory"),
        )
        check_fields(self, above_zero)
        if not LEAST_DATAGRAM <= self.datagram <= MOST_DATAGRAM:
            raise LocalError(
                f"datagram is {LEAST_DATAGRAM} to {MOST_DATAGRAM}, not {self.datagram}"
            )
        if self.burst < self.datagram:
            raise LocalError("burst is at least a datagram, or nothing would ever be sent")
        if self.largest > self.reassembly // 2:
            raise LocalError("largest is at most half of reassembly, or no member could take it in")
        if self.silence_ns <= self.heartbeat_ns:
            raise LocalError("silence_s= must be above heartbeat_s=, or idle members seem silent")
        if self.put_out_ns is not None and self.put_out_ns < self.silence_ns:
            raise LocalError("put_out_s= is at least silence_s=")
        self._check_order()

    def _check_order(self) -> None:
        order, options = self.order, self.options
        if order not in ORDERS:
            raise LocalError(
                f"order {order!r} does not recover what is lost, so it does not go over datagrams: "
                f'there are {", ".join(ORDERS)}; others go over transport="tcp"'
            )
        if order == "matrix" and not options.get("recovering"):
            raise LocalError(
                'order "matrix" recovers what is lost with options={"recovering": True} alone'
            )
        if order in CLOCKED:
            self._check_clocked()
        self.group("a~00000000")

    def _check_clocked(self) -> None:
        order, options = self.order, self.options
        if options.get("retry_s") is None:
            raise LocalError(
                f'order "{order}" recovers what is lost with retry_s alone: '
                'options={"retry_s": 0.2, ...}'
            )
        if "heartbeat_s" in options and options["heartbeat_s"] is None:
            raise LocalError("without null messages the loss of a last message is not found")
        bounds = options.get("bounds")
        if not isinstance(bounds, Bounds):
            raise LocalError(
                f'order "{order}" needs bounds=Bounds(...): what died with its sender would be '
                "waited for without end"
            )
        if bounds.clocks_ns or bounds.channels_ns:
            raise LocalError("bounds of single members or channels do not go over datagrams")
        keep = options.get("keep", KEEP)
        if keep is not None and keep < 2 * self.window:
            raise LocalError(
                f"keep is {keep}, and window is {self.window}: keep twice the window at least, or "
                "what a member still lacks would be gone"
            )
        if options.get("buffer_limit") is not None or options.get("printed"):
            raise LocalError("buffer_limit and printed do not go over datagrams")

    @property
    def clocked(self) -> bool:
        """Whether it is an order by clocks; else members hand on what they have by themselves."""
        return self.order in CLOCKED

    def group(self, lane: str, invitation: bytes = b"") -> Group:
        """Return the ordering group of a founder, or of one who was invited."""
        if invitation:
            return Group.accept(lane, invitation, room=self.room, by_channel=True, **self.options)
        return Group(lane, [lane], order=self.order, room=self.room, **self.options)

    def tags(self) -> tuple[bytes, bytes]:
        """Return the fingerprints of the room and of what else all members give alike."""
        kind = flat_class(self.order)
        agreed = {
            name: value
            for name, value in effective(kind, self.options).items()
            if name not in kind.own_options
        }
        return fingerprint(self.room), fingerprint("datagrams", repr(sorted(agreed.items())))
