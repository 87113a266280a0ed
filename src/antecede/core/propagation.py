"""Causes in the headers of other transports: an id for each message, and what came before it.

    stamp = ContextPropagator("payments")
    with stamp.handling(message.headers()):                 # Kafka: pairs of text and bytes
        producer.produce(topic, value, headers=stamp.outgoing())

Two headers, the same on every transport:

    antecede-id       payments:6f1c2a...:42      service, incarnation, number; or any other token
    antecede-causes   orders:9b1d...:7,shipping:e4...:3      direct causes; empty: there are none

Theory of operation
-------------------
Happened-before is that of Lamport (1978), where a *thread of control* is what he calls a process:
a block `with stamp.handling(...)`, a thread, an asyncio task. Its past is kept as the frontier: ids
that nothing else in it is known to follow. A message names the frontier as its causes and then
is the frontier itself, so causes are direct ones and all others follow from them. A message
that is received takes the place of what it names as its own causes, and what is already known
to stand before the frontier is not put into it again: that much is reduced transitively, with
no memory beyond the bound. A cause too many is harmless, one too few never happens.

The past lies in a context variable: a task starts with a copy of it (a fork), and what it does
later is its own. `past`, `resuming` and `join` carry it to where context variables do not go (a
thread, a pool, a row in a database) and back. Blocks at the top, as in a consumer's loop, do not
follow each other; blocks within a block do, since they are the same thread of control.

Bound: a context holds at most `max_causes` ids of its frontier and as many that stand before
it, each of at most MAX_ID characters. Beyond that a message is refused with LimitError and
nothing is forgotten in silence: send a message (a marker will do), which stands for all of them.

Ids are unique over restarts as long as the incarnation is. By default a random one is made with
the `ContextPropagator`, and again in a forked process. Nothing else here is random; no clock, no
socket.
"""

from __future__ import annotations

import os
import re
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, NamedTuple, overload
from urllib.parse import quote

from antecede.errors import DecodeError, InputError, LimitError, LocalError

__all__ = [
    "CAUSES",
    "ID",
    "MAX_ID",
    "TOKEN",
    "ContextPropagator",
    "Past",
    "Stamp",
    "Stats",
    "read",
    "unstamped",
]

ID = "antecede-id"
"""Header that holds a message's id."""
CAUSES = "antecede-causes"
"""Header that holds the ids of its direct causes, with commas between them."""
MAX_ID = 200
"""Most characters of an id."""

Value = str | bytes
Headers = Mapping[str, Any] | Iterable[tuple[str, Any]] | None
OnBad = Literal["raise", "count"]

TOKEN = rf"[!#-+\--:<-\[\]-~]{{1,{MAX_ID}}}"
"""Regular expression of an id: visible ASCII but comma, semicolon, quotation mark, backslash."""
_TOKEN = re.compile(TOKEN)
_INCARNATION = re.compile(r"[A-Za-z0-9._~-]{1,64}")


class Stamp(NamedTuple):
    """What the headers of one message say."""

    id: str
    causes: tuple[str, ...]


class Past(NamedTuple):
    """What a thread of control follows: frozen, may be kept and handed to another."""

    frontier: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    """Ids known to stand before the frontier; not complete, and need not be."""


_NOTHING = Past()


class Stats(NamedTuple):
    """Counts since the ContextPropagator was made; messages, not bytes."""

    sent: int
    received: int
    unstamped: int
    """Messages received without either header."""
    bad: int
    """Messages whose headers were no stamp: their causes are not known."""
    last_bad: str | None
    """What was wrong with the last of these."""


def read(headers: Headers) -> Stamp | None:
    """Return the stamp in the headers of a message; None when they bear none.

    Names count without regard to case, values are text or bytes. Raises DecodeError when one of
    the two is missing or there twice, or when a value is no id or no list of ids.
    """
    found: dict[str, str] = {}
    for name, value in _pairs(headers):
        key = name.lower() if isinstance(name, str) else name
        if key in (ID, CAUSES):
            text = _text(key, value)
            if found.setdefault(key, text) != text:
                both = f"{_short(found[key])} and {_short(text)}"
                raise DecodeError(f"header {key} is there twice: {both}")
    if not found:
        return None
    for key, other in ((ID, CAUSES), (CAUSES, ID)):
        if key not in found:
            raise DecodeError(f"header {other} is there without {key}: one of them got lost")
    causes = tuple(dict.fromkeys(found[CAUSES].split(","))) if found[CAUSES] else ()
    for token in (found[ID], *causes):
        if not _TOKEN.fullmatch(token):
            raise DecodeError(f"{_short(token)} in {ID} or {CAUSES} is no id of a message")
    if found[ID] in causes:
        raise DecodeError(f"message {found[ID]} names itself as its cause")
    return Stamp(found[ID], causes)


def unstamped(headers: Headers) -> list[tuple[str, Any]]:
    """Return headers without the stamp, as pairs: what a forwarded message may keep."""
    return [(name, value) for name, value in _pairs(headers) if name.lower() not in (ID, CAUSES)]


class ContextPropagator:
    """Gives the messages of one service their ids and causes; make one for a process.

    `service` is any name; `incarnation` tells one life of it from the next (default: random),
    letters, digits and "._~-". `max_causes` bounds what is remembered and named (see the module).
    `on_bad`: "raise" DecodeError for headers that are no stamp, or "count" them and go on without.
    Safe under threads and asyncio. Raises InputError for names that cannot stand in an id and
    unknown options.
    """

    def __init__(
        self,
        service: str,
        *,
        incarnation: str | None = None,
        max_causes: int = 64,
        on_bad: OnBad = "raise",
    ) -> None:
        self._name = _service(service)
        self._given = incarnation
        if incarnation is not None and not _INCARNATION.fullmatch(incarnation):
            raise InputError(
                f'an incarnation is of letters, digits and "._~-", not {incarnation!r}'
            )
        if isinstance(max_causes, bool) or not isinstance(max_causes, int) or max_causes < 1:
            raise InputError(f"max_causes must be a whole number of at least 1, not {max_causes!r}")
        if on_bad not in ("raise", "count"):
            raise InputError(f"on_bad must be raise or count, not {on_bad!r}")
        self.max_causes = max_causes
        self._counts_bad = on_bad == "count"
        self._past: ContextVar[Past] = ContextVar("antecede-past", default=_NOTHING)
        self._inside: ContextVar[bool] = ContextVar("antecede-inside", default=False)
        self._lock = threading.Lock()
        self._last_bad: str | None = None
        self._begin()

    @property
    def incarnation(self) -> str:
        """The part of all ids that tells this life of the service from others."""
        return self._incarnation

    @overload
    def outgoing(self, headers: Mapping[str, Any], *, id: str | None = None) -> dict[str, Any]: ...
    @overload
    def outgoing(
        self, headers: Iterable[tuple[str, Any]] = (), *, id: str | None = None
    ) -> list[tuple[str, Any]]: ...

    def outgoing(
        self, headers: Mapping[str, Any] | Iterable[tuple[str, Any]] = (), *, id: str | None = None
    ) -> dict[str, Any] | list[tuple[str, Any]]:
        """Return the headers of a new message: those given, its id and its causes.

        A mapping gives a dict, ours in text (HTTP, trace context); pairs give a list of pairs,
        ours in bytes (Kafka, AMQP). Each call is one message: send a copy to several receivers
        with the headers of one call. `id`: as in `sent`. Raises LocalError when the headers bear a
        stamp already.
        """
        others = list(_pairs(headers))
        taken = [name for name, _ in others if name.lower() in (ID, CAUSES)]
        if taken:
            raise LocalError(
                f"the headers bear {taken[0]} of another message: tell `received` or `handling` of "
                "them, and pass on `unstamped(headers)`"
            )
        stamp = self.sent(id)
        ours = {ID: stamp.id, CAUSES: ",".join(stamp.causes)}
        if isinstance(headers, Mapping):
            return {**dict(others), **ours}
        return [*others, *((name, text.encode("ascii")) for name, text in ours.items())]

    def sent(self, id: str | None = None) -> Stamp:
        """Make the stamp of a new message, for transports that have other places than headers.

        `id`: what the message is called already, where it has an id of another source (a live
        message's `id.token`); None: it gets one. Raises LocalError for what is no id, or is that of
        a message which this one follows.
        """
        past = self._past.get()
        if id is not None and (not _is_token(id) or id in past.frontier or id in past.before):
            raise LocalError(f"{_short(id)} is no id, or is that of a message before this one")
        with self._lock:
            if os.getpid() != self._process:
                self._forked()
            self._sent += 1
            if id is None:
                self._numbered += 1
                id = f"{self._name}:{self._incarnation}:{self._numbered}"
            stamp = Stamp(id, past.frontier)
        self._past.set(Past((stamp.id,), past.frontier))
        return stamp

    def received(self, headers: Headers) -> Stamp | None:
        """Learn from the headers of a message: what this thread of control sends follows it.

        Returns its stamp, None when it has none (both are counted). Raises DecodeError for
        headers that are no stamp, unless they are counted, and LimitError when more than
        `max_causes` messages came since the last one was sent; nothing is learnt then.
        """
        try:
            stamp = read(headers)
        except DecodeError as error:
            with self._lock:
                self._bad += 1
                self._last_bad = str(error)
            if self._counts_bad:
                return None
            raise
        if stamp is not None:
            self._past.set(self._followed(self._past.get(), stamp))
        with self._lock:
            if stamp is None:
                self._unstamped += 1
            else:
                self._received += 1
        return stamp

    @contextmanager
    def handling(self, headers: Headers) -> Iterator[Stamp | None]:
        """Handle a message: what is sent in the block follows it, what is sent after does not.

        Within another block it goes on with that one: the message is received, and all that comes
        after in the outer block follows. Raises what `received` does.
        """
        if self._inside.get():
            yield self.received(headers)
            return
        with self._block(self._past.get()):
            yield self.received(headers)

    @contextmanager
    def beginning(self) -> Iterator[None]:
        """Begin something that follows nothing, as a customer's request does."""
        with self._block(_NOTHING):
            yield

    @contextmanager
    def resuming(self, past: Past) -> Iterator[None]:
        """Go on where `past` was taken. Raises LimitError for more than `max_causes` ids."""
        if len(self._checked(past).frontier) > self.max_causes:
            raise LimitError(
                f"a past of {len(past.frontier)} messages, more than max_causes={self.max_causes}: "
                "raise the bound"
            )
        with self._block(past):
            yield

    @property
    def past(self) -> Past:
        """What this thread of control follows now."""
        return self._past.get()

    def join(self, past: Past) -> None:
        """Follow `past` of another thread of control too. Raises LimitError as `received`."""
        self._past.set(self._joined(self._past.get(), self._checked(past)))

    def stats(self) -> Stats:
        """Return the counts so far."""
        with self._lock:
            return Stats(self._sent, self._received, self._unstamped, self._bad, self._last_bad)

    def _begin(self) -> None:
        self._process = os.getpid()
        self._incarnation = self._given or uuid.uuid4().hex
        self._sent = self._numbered = self._received = self._unstamped = self._bad = 0
        self._last_bad = None

    def _forked(self) -> None:
        if self._given is not None:
            raise LocalError(
                f"this ContextPropagator was made before a fork, with incarnation {self._given!r}: "
                "two processes would give one id twice. Make one in each process"
            )
        self._begin()

    @contextmanager
    def _block(self, past: Past) -> Iterator[None]:
        outer, inside = self._past.set(past), self._inside.set(True)
        try:
            yield
        finally:
            self._inside.reset(inside)
            self._past.reset(outer)

    def _followed(self, past: Past, stamp: Stamp) -> Past:
        if stamp.id in past.frontier or stamp.id in past.before:
            return past
        return self._joined(past, Past((stamp.id,), stamp.causes))

    def _joined(self, past: Past, other: Past) -> Past:
        """Return both pasts as one; what stands before the other's frontier is in neither."""
        behind = {*past.before, *other.before}
        both = dict.fromkeys((*past.frontier, *other.frontier))
        # All is behind only where headers lie (each before the other): then keep them all.
        frontier = tuple(name for name in both if name not in behind) or tuple(both)
        if len(frontier) > self.max_causes:
            raise LimitError(
                f"{len(frontier)} messages came since the last one was sent, more than max_causes="
                f"{self.max_causes}: send one (it will stand for all of them), or raise the bound"
            )
        replaced = (name for name in both if name in behind)
        before = dict.fromkeys((*replaced, *other.before, *past.before))
        return Past(frontier, tuple(before)[: self.max_causes])

    def _checked(self, past: Past) -> Past:
        parts = (past.frontier, past.before) if isinstance(past, Past) else (None,)
        for part in parts:
            if not isinstance(part, tuple) or not all(_is_token(name) for name in part):
                raise LocalError(
                    f"a past comes from `ContextPropagator.past`; this is {_short(past)}"
                )
        return past


def _is_token(name: object) -> bool:
    return isinstance(name, str) and _TOKEN.fullmatch(name) is not None


def _service(name: str) -> str:
    if not isinstance(name, str) or not name:
        raise InputError(f"a service needs a name, as text, not {name!r}")
    quoted = quote(name, safe="")
    if len(quoted) > MAX_ID - 90:
        raise InputError(
            f"the service's name takes {len(quoted)} characters, at most {MAX_ID - 90}"
        )
    return quoted


def _pairs(headers: Headers) -> Sequence[tuple[str, Any]]:
    if headers is None:
        return ()
    items = getattr(headers, "items", None)
    return list(items() if items is not None else headers)


def _text(name: str, value: object) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        try:
            return bytes(value).decode("ascii").strip(" \t")
        except UnicodeDecodeError as error:
            raise DecodeError(f"header {name} holds bytes that are no ASCII: {error}") from error
    if not isinstance(value, str):
        raise DecodeError(f"header {name} is {type(value).__name__}, neither text nor bytes")
    return value.strip(" \t")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
