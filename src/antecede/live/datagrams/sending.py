"""Sessions, and what goes over them: packets that wait, in parts, and what is sent again.

Who asks again before the answer can have come gets it once: what was sent again lately to a member
is not sent to it once more, each time for twice as long, up to sixteen times `resend_ns`.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Final

from antecede.live.datagrams import parcels
from antecede.live.datagrams.pacing import Pace
from antecede.live.datagrams.settings import DatagramSettings
from antecede.live.wire import Hello

REMEMBERED: Final = 4096
"""Frames of which it is known when they were last sent again to whom."""


class Session:
    """A way to one life of a member."""

    def __init__(self, number: int, hello: Hello, settings: DatagramSettings, now: int) -> None:
        self.number, self.lane, self.address = number, hello.lane, hello.address
        self.up_ns = now
        self.heard_ns: int | None = None
        """When something came over it; None: nothing has."""
        self.clock = self.clock_ns = 0
        """The other end's clock as it last came, and when."""
        self.round_trip_ns: int | None = None
        self.told_ns = -settings.resend_ns
        """When it was last told how far one has come."""
        self.pace = Pace(settings.rate, settings.burst, settings.datagram)
        self.parcels: dict[int, parcels.Outgoing] = {}
        self.sent_parcels = 0
        self.incoming = parcels.Incoming(settings.reassembly)


class Sending:
    """Puts packets into the queues of sessions."""

    def __init__(self, settings: DatagramSettings) -> None:
        self._settings = settings
        self._again: OrderedDict[tuple[str, bytes], tuple[int, int]] = OrderedDict()
        """(lane, digest) -> when it was last sent again, and how often."""
        self.resent = self.suppressed = 0

    def is_early(self, lane: str, body: bytes, now: int) -> bool:
        """Tell whether a frame was sent again so lately that it may still be under way."""
        key = lane, hashlib.blake2b(body, digest_size=8).digest()
        last, times = self._again.pop(key, (-(1 << 62), 0))
        early = now - last < self._settings.resend_ns << min(times, 4)
        self._again[key] = (last, times) if early else (now, times + 1)
        if len(self._again) > REMEMBERED:
            self._again.popitem(last=False)
        self.suppressed += early
        self.resent += not early
        return early

    def queue(self, session: Session, packet: bytes, now: int, *, urgent: bool = False) -> None:
        """Send a packet over a session, in parts where it fits no datagram."""
        size = self._settings.datagram - parcels.HEAD
        if len(packet) <= size + parcels.HEAD - 3:
            session.pace.add(packet, urgent=urgent)
        elif all(one.whole != packet for one in session.parcels.values()):
            session.sent_parcels += 1
            number = session.sent_parcels
            parcel = parcels.Outgoing(number, packet, size, now)
            session.parcels[number] = parcel
            self.send_parts(session, now)

    def send_parts(self, session: Session, now: int) -> None:
        """Send the parts that are due; give up what nobody acknowledges."""
        for number, parcel in list(session.parcels.items()):
            if parcel.due_ns <= now:
                if parcel.tries >= parcels.TRIES:
                    del session.parcels[number]
                    continue
                for part in parcel.send(now, self._settings.resend_ns):
                    session.pace.add(part)
