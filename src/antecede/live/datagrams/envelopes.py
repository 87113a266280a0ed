"""Datagrams as they go over the network: sealed by keys that the two ends of a session share.

    session   8 bytes, by which the receiver knows the session
    counter   8 bytes, from 1, never twice under one key
    the rest  packets (`packets`), encrypted and authenticated by ChaCha20-Poly1305 (RFC 8439);
              the counter is the nonce, session and counter are authenticated with it

Both ends drew an offer (session and secret) for this session alone and exchanged it when one called
the other, over TLS with both certificates; keys of either direction come from both secrets by
HKDF (RFC 5869). They live in memory, so a restart has other keys, and no nonce comes twice.

What does not open (another session, another key, changed, cut short, or come before) is dropped and
counted, and nothing is answered to it: a datagram of a stranger never causes one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

from antecede.errors import DecodeError, MissingExtraError

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF
except ImportError as error:
    raise MissingExtraError("datagrams of live peers", "live") from error

SESSION_BYTES, SECRET_BYTES, COUNTER_BYTES, TAG_BYTES = 8, 32, 8, 16
HEAD_BYTES: Final = SESSION_BYTES + COUNTER_BYTES
WINDOW: Final = 4096
"""Counters below the newest of which it is known whether they came; older ones are dropped."""
PURPOSE: Final = b"antecede datagrams 1"


class Offer(NamedTuple):
    """What one end draws for a session: the name by which it knows it, and a secret."""

    session: bytes
    secret: bytes

    @classmethod
    def draw(cls, random_bytes: Callable[[int], bytes]) -> Offer:
        """Draw one."""
        return cls(random_bytes(SESSION_BYTES), random_bytes(SECRET_BYTES))

    @classmethod
    def read(cls, data: bytes) -> Offer:
        """Read what `bytes()` wrote. Raises DecodeError."""
        if len(data) != SESSION_BYTES + SECRET_BYTES:
            raise DecodeError(f"an offer of {len(data)} bytes for a session")
        return cls(data[:SESSION_BYTES], data[SESSION_BYTES:])

    def __bytes__(self) -> bytes:
        return self.session + self.secret


class Replays:
    """Which counters have come."""

    def __init__(self) -> None:
        self._newest = self._seen = 0

    def is_new(self, counter: int) -> bool:
        """Tell whether a counter has not come, as far as that is known."""
        behind = self._newest - counter
        return counter > 0 and (behind < 0 or (behind < WINDOW and not self._seen >> behind & 1))

    def note(self, counter: int) -> None:
        """Note that it has come: only of what was found authentic."""
        ahead = counter - self._newest
        if ahead > 0:
            self._seen = (self._seen << min(ahead, WINDOW) | 1) & ((1 << WINDOW) - 1)
            self._newest = counter
        else:
            self._seen |= 1 << -ahead


class Envelope:
    """One end of a session. `secure`: whether its datagrams are encrypted and authenticated."""

    def __init__(self, mine: Offer, theirs: Offer, *, called: bool, secure: bool) -> None:
        """`called`: whether this end called the other."""
        self.mine, self._theirs = mine, theirs
        first, second = (mine, theirs) if called else (theirs, mine)
        pair = bytes(first) + bytes(second)
        self._seal = self._open = None
        if secure:
            self._seal = _cipher(pair, theirs.session)
            self._open = _cipher(pair, mine.session)
        self._sent = 0
        self._replays = Replays()

    def seal(self, data: bytes) -> bytes:
        """Return the datagram that carries these packets."""
        self._sent += 1
        head = self._theirs.session + self._sent.to_bytes(COUNTER_BYTES, "big")
        if self._seal is None:
            return head + data
        return head + self._seal.encrypt(b"\0\0\0\0" + head[SESSION_BYTES:], data, head)

    def open(self, datagram: bytes) -> bytes:
        """Return the packets in a datagram. Raises DecodeError with one word for what is wrong."""
        counter = int.from_bytes(datagram[SESSION_BYTES:HEAD_BYTES], "big")
        if len(datagram) < HEAD_BYTES:
            raise DecodeError("short")
        if not self._replays.is_new(counter):
            raise DecodeError("replayed")
        data = datagram[HEAD_BYTES:]
        if self._open is not None:
            nonce = b"\0\0\0\0" + datagram[SESSION_BYTES:HEAD_BYTES]
            try:
                data = self._open.decrypt(nonce, data, datagram[:HEAD_BYTES])
            except InvalidTag:
                raise DecodeError("forged") from None
        self._replays.note(counter)
        return data


def _cipher(pair: bytes, session: bytes) -> ChaCha20Poly1305:
    """Return the cipher of what goes to the end that knows the session by this name."""
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=PURPOSE + session).derive(pair)
    return ChaCha20Poly1305(derived)


class Envelopes:
    """All sessions of one peer, by number, and by the name in front of a datagram."""

    def __init__(self) -> None:
        self._by_number: dict[int, Envelope] = {}
        self._numbers: dict[bytes, int] = {}
        self.dropped: Counter[str] = Counter()
        """Datagrams that did not open, by what was wrong."""

    def add(self, number: int, envelope: Envelope) -> None:
        """Add a session."""
        self._by_number[number] = envelope
        self._numbers[envelope.mine.session] = number

    def forget(self, number: int) -> None:
        """Forget a session: its datagrams open no more."""
        if (envelope := self._by_number.pop(number, None)) is not None:
            self._numbers.pop(envelope.mine.session)

    def seal(self, number: int, data: bytes) -> bytes | None:
        """Return the datagram; None: there is no such session."""
        envelope = self._by_number.get(number)
        return None if envelope is None else envelope.seal(data)

    def open(self, datagram: bytes) -> tuple[int, bytes] | None:
        """Return the session and the packets of a datagram; None: it does not open."""
        number = self._numbers.get(datagram[:SESSION_BYTES])
        if number is None:
            self.dropped["stranger"] += 1
            return None
        try:
            return number, self._by_number[number].open(datagram)
        except DecodeError as error:
            self.dropped[str(error)] += 1
            return None
