"""What one peer knows of one connection."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from antecede.live import wire
from antecede.live.lanes import SignedBatch


class Reader:
    """What the other end of a link reads, in orders by topics (`antecede.live.audience`)."""

    __slots__ = ("lacks", "runs_do", "skips", "told_lacking", "topics")

    def __init__(self) -> None:
        self.topics: frozenset[str] | None = None
        """What it subscribes to; None: it has not said so."""
        self.lacks: dict[str, tuple[int, int]] = {}
        """Lane -> first and last number of the batches for which the other end has only a run."""
        self.told_lacking: dict[str, int] = {}
        """Lane -> the number of a batch of which the other end was told that we have only a run."""
        self.skips: set[str] = set()
        """Lanes of which a run was not taken whole: what follows it here comes too early."""
        self.runs_do: set[str] = set()
        """Lanes of which the other end takes runs in place of batches that it subscribes to."""


class Link:
    """One connection: what was read of it, what is to be written, who is at the other end."""

    def __init__(self, number: int, name: str, now: int, *, dialed: bool) -> None:
        self.number, self.name, self.dialed = number, name, dialed
        """`name` is the certificate's at the other end; `dialed`: it was we who called."""
        self.lane = ""
        """The other end's lane; empty until it has greeted."""
        self.member = False
        """Whether batches go over it: both ends are in one group."""
        self.names: list[str] = []
        """Lanes by their places, as the other end named them."""
        self.named = 0
        """How many of our lanes the other end was told the names of."""
        self.owners: set[str] = set()
        """Lanes whose owners were shown to the other end."""
        self.control: deque[bytes] = deque()
        """Frames that go before all batches."""
        self.cursors: dict[str, int] = {}
        """Lane -> number of the newest batch written here: of ours, and those asked for."""
        self.staged: dict[str, deque[tuple[int, SignedBatch]]] = {}
        """Batches that were read from the store for this link."""
        self.loading: set[str] = set()
        """Lanes of which the store is to be asked for some."""
        self.asked: set[str] = set()
        """Those of which it was."""
        self.distrusted: set[str] = set()
        """Lanes of which the other end has handed on what cannot be."""
        self.given_up: dict[str, int] = {}
        """Lane -> the oldest number that the other end says it still has."""
        self.told_gone: dict[str, int] = {}
        """Lane -> the oldest number that we have, as the other end was told."""
        self.unheard: frozenset[str] = frozenset()
        """Members that the other end does not hear."""
        self.reader = Reader()
        self.told_budget = False
        """True if the other end was told how much is kept here for others."""
        self.told_unheard = False
        """Whether the other end was told of members that are not heard here."""
        self.up_ns = self.heard_ns = self.pinged_ns = self.spoke_ns = now
        """Since when it stands; when something came last, was asked last, was written last."""
        self.round_trip_ns: int | None = None
        self.closing = ""
        """Why it ends; empty: it does not."""
        self.is_rejected = False
        """True if one end closed it for a fault of the other."""
        self.said_bye = False
        """Whether it was the other end that ended it."""
        self.bytes_in = self.bytes_out = 0
        self._chunks: list[bytes] = []
        self._size, self._needed = 0, 1

    def read(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield (kind, body) of each whole frame that has come. Raises RemoteError.

        The limit of a frame depends on whether the other end has greeted. Its greeting may come
        in one read with what follows it, so the next frame is parsed after the greeting is handled.
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
