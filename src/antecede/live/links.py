"""State of one connection."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from antecede.live import wire
from antecede.live.lanes import SignedBatch


class RemoteSubscription:
    """Subscription of the other end (orders by topics, `antecede.live.audience`)."""

    __slots__ = ("lacks", "runs_do", "skips", "told_lacking", "topics")

    def __init__(self) -> None:
        self.topics: frozenset[str] | None = None
        """Subscribed topics. None: not announced yet."""
        self.lacks: dict[str, tuple[int, int]] = {}
        """Sender -> first and last number of batches that the other end has only as a skip marker.
        """
        self.told_lacking: dict[str, int] = {}
        """Sender -> batch that the other end knows is here only as a skip marker."""
        self.skips: set[str] = set()
        """Senders with a partly accepted skip marker: batches behind it are early."""
        self.runs_do: set[str] = set()
        """Senders of which the other end accepts skip markers for subscribed batches."""


class Link:
    """Connection to one member: received bytes, bytes to write, identity of the other end."""

    def __init__(self, number: int, name: str, now: int, *, dialed: bool) -> None:
        self.number, self.name, self.dialed = number, name, dialed
        """`name`: name in its certificate. `dialed`: this end dialed."""
        self.lane = ""
        """Sender id of the other end. Empty before its HELLO."""
        self.member = False
        """True if batches are sent: both ends are in one group."""
        self.names: list[str] = []
        """Sender ids by the indices of the other end."""
        self.named = 0
        """Number of own sender ids announced."""
        self.owners: set[str] = set()
        """Senders whose proofs were sent."""
        self.control: deque[bytes] = deque()
        """Control frames, which precede batches."""
        self.cursors: dict[str, int] = {}
        """Sender -> newest batch written here, for the own log and requested ones."""
        self.staged: dict[str, deque[tuple[int, SignedBatch]]] = {}
        self.loading: set[str] = set()
        self.asked: set[str] = set()
        self.distrusted: set[str] = set()
        """Senders of which the other end relayed invalid batches."""
        self.given_up: dict[str, int] = {}
        """Sender -> oldest batch that the other end still has."""
        self.told_gone: dict[str, int] = {}
        """Sender -> oldest batch here, as announced."""
        self.unheard: frozenset[str] = frozenset()
        """Members that the other end does not hear."""
        self.reader = RemoteSubscription()
        self.told_budget = False
        self.told_unheard = False
        self.up_ns = self.heard_ns = self.pinged_ns = self.spoke_ns = now
        """Start of the connection; last bytes received, last PING, last bytes written."""
        self.round_trip_ns: int | None = None
        self.closing = ""
        """Reason of the close. Empty: open."""
        self.is_rejected = False
        """True if one end closed it for a fault of the other."""
        self.said_bye = False
        """True if the other end sent BYE."""
        self.bytes_in = self.bytes_out = 0
        self._chunks: list[bytes] = []
        self._size, self._needed = 0, 1

    def read(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield (kind, body) of each complete frame. Raises RemoteError. The size limit depends on
        HELLO. That may come together with later frames, so the next frame is parsed after HELLO is
        handled.
        """
        self.bytes_in += len(data)
        self._chunks.append(data)
        self._size += len(data)
        if self._size < self._needed:
            return
        whole = b"".join(self._chunks) if len(self._chunks) > 1 else data
        used, is_unknown = 0, True
        while is_unknown:
            is_unknown = not self.lane
            limit, most = (wire.MAX_FIRST, 1) if is_unknown else (wire.MAX_FRAME, None)
            found, used, needed = wire.split_frames(whole, limit, used, most)
            for kind, start, end in found:
                yield kind, whole[start:end]
            is_unknown = is_unknown and bool(found)
        rest = whole[used:]
        self._chunks, self._size, self._needed = [rest] if rest else [], len(rest), needed - used
