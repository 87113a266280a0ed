"""Context propagation: message ids and causes in headers of other transports.

    propagator = ContextPropagator("payments")
    with propagator.handle(message.headers()):                  # Kafka: pairs of text and bytes
        producer.produce(topic, value, headers=propagator.inject(headers))

Two headers, the same on every transport:

    antecede-id       payments:6f1c2a...:42      service, incarnation, number; or any other token
    antecede-causes   orders:9b1d...:7,shipping:e4...:3      direct causes; may be empty

Theory of operation
-------------------
A *thread of control* is a process in the sense of Lamport (1978): a `handle` block, a thread, an
asyncio task. Its causal context is a frontier: ids that no other known id follows. A message has
the frontier as its direct causes, and then is the frontier. A received message replaces its own
causes there. Ids that precede the frontier are remembered and not added again. So a superfluous
cause is possible and harmless, a missing one is not.

The context is a context variable. A task starts with a copy (a fork). `causal_context`,
`use_context` and `join` carry it across a thread, a pool or a database row. Top-level blocks, as in
a consumer loop, are independent; nested blocks belong to the outer one.

A context holds at most `max_causes` ids of its frontier and as many that precede it. Beyond that a
received message raises LimitError. Sending any message replaces the frontier by one id.
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
CAUSES = "antecede-causes"
MAX_ID = 200

Value = str | bytes
Headers = Mapping[str, Any] | Iterable[tuple[str, Any]] | None
OnBad = Literal["raise", "count"]

TOKEN = rf"[!#-+\--:<-\[\]-~]{{1,{MAX_ID}}}"
"""Regular expression of an id: visible ASCII except comma, semicolon, quotation mark, backslash."""
_TOKEN = re.compile(TOKEN)
_INCARNATION = re.compile(r"[A-Za-z0-9._~-]{1,64}")


class Stamp(NamedTuple):
    """Id and direct causes of a message, from its headers."""

    id: str
    causes: tuple[str, ...]


class Past(NamedTuple):
    """Causal context of a thread of control; immutable, and valid in any other thread."""

    frontier: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    """Known ids that precede the frontier; may be incomplete."""


_NOTHING = Past()


class Stats(NamedTuple):
    """Message counts of a ContextPropagator."""

    sent: int
    received: int
    unstamped: int
    bad: int
    """Messages received with invalid headers; their causes are unknown."""
    last_bad: str | None


def read(headers: Headers) -> Stamp | None:
    """Return id and causes from message headers; None if both are absent. Raise DecodeError."""
    found: dict[str, str] = {}
    for name, value in _pairs(headers):
        key = name.lower() if isinstance(name, str) else name
        if key in (ID, CAUSES):
            text = _text(key, value)
            if found.setdefault(key, text) != text:
                both = f"{_short(found[key])} and {_short(text)}"
                raise DecodeError(f"duplicate header {key}: {both}")
    if not found:
        return None
    for key, other in ((ID, CAUSES), (CAUSES, ID)):
        if key not in found:
            raise DecodeError(f"header {other} without {key}; expected both or none")
    causes = tuple(dict.fromkeys(found[CAUSES].split(","))) if found[CAUSES] else ()
    for token in (found[ID], *causes):
        if not _TOKEN.fullmatch(token):
            raise DecodeError(f"{_short(token)} in {ID} or {CAUSES} is not a valid id")
    if found[ID] in causes:
        raise DecodeError(f"message {found[ID]} names itself as its cause")
    return Stamp(found[ID], causes)


def unstamped(headers: Headers) -> list[tuple[str, Any]]:
    """Return headers without id and causes, as pairs, to forward a message."""
    return [(name, value) for name, value in _pairs(headers) if name.lower() not in (ID, CAUSES)]


class ContextPropagator:
    """Adds ids and causes to the messages of one service; one per process.

    **Parameters:**

    - `service`: name of the service.
    - `incarnation`: part of all ids of this process: letters, digits and "._~-". (default: random)
    - `max_causes`: maximum causes in a message and in the context. (default: 64)
    - `on_bad`: "raise" DecodeError for invalid headers, or "count" and ignore them. (default:
      "raise")

    Safe for threads and asyncio. Raises InputError for invalid parameters.
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
                f'incarnation={incarnation!r}: expected up to 64 letters, digits and "._~-"'
            )
        if isinstance(max_causes, bool) or not isinstance(max_causes, int) or max_causes < 1:
            raise InputError(f"max_causes={max_causes!r}: expected an integer of 1 or more")
        if on_bad not in ("raise", "count"):
            raise InputError(f"unknown on_bad={on_bad!r}; choose from raise, count")
        self.max_causes = max_causes
        self._counts_bad = on_bad == "count"
        self._past: ContextVar[Past] = ContextVar("antecede-past", default=_NOTHING)
        self._inside: ContextVar[bool] = ContextVar("antecede-inside", default=False)
        self._lock = threading.Lock()
        self._last_bad: str | None = None
        self._begin()

    @property
    def incarnation(self) -> str:
        """Incarnation part of all ids."""
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
        """Return headers of a new message: the given ones, its id and its causes.

        A mapping returns a dict with text values (HTTP, trace context), pairs return pairs with
        bytes values (Kafka, AMQP). Each call is a new message. Raises LocalError if the headers
        have an id.
        """
        others = list(_pairs(headers))
        taken = [name for name, _ in others if name.lower() in (ID, CAUSES)]
        if taken:
            raise LocalError(
                f"headers have {taken[0]} of another message: pass them to `receive` or `handle`, "
                "and `strip_context(headers)` here"
            )
        stamp = self.sent(id)
        ours = {ID: stamp.id, CAUSES: ",".join(stamp.causes)}
        if isinstance(headers, Mapping):
            return {**dict(others), **ours}
        return [*others, *((name, text.encode("ascii")) for name, text in ours.items())]

    def sent(self, id: str | None = None) -> Stamp:
        """Return id and causes of a new message, for transports without headers.

        `id`: existing id, such as `id.token` of a live message. Raises LocalError unless it is
        valid and new.
        """
        past = self._past.get()
        if id is not None and (not _is_token(id) or id in past.frontier or id in past.before):
            raise LocalError(f"{_short(id)} is not a valid id, or the id of a cause")
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
        """Add a received message to the context: later messages of this thread of control follow
        it.

        Returns its id and causes, None without headers. Raises DecodeError for invalid headers
        unless they are counted, and LimitError for more than `max_causes` messages since the last
        send.
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
        """Receive a message in a new context for the block; a nested block uses the outer one."""
        if self._inside.get():
            yield self.received(headers)
            return
        with self._block(self._past.get()):
            yield self.received(headers)

    @contextmanager
    def beginning(self) -> Iterator[None]:
        """Use an empty context in the block, for work without a cause such as a user's request."""
        with self._block(_NOTHING):
            yield

    @contextmanager
    def resuming(self, past: Past) -> Iterator[None]:
        """Continue a context in the block. Raise LimitError for more than `max_causes` ids."""
        if len(self._checked(past).frontier) > self.max_causes:
            raise LimitError(
                f"context of {len(past.frontier)} messages exceeds max_causes={self.max_causes}; "
                "raise it"
            )
        with self._block(past):
            yield

    @property
    def past(self) -> Past:
        """Causal context of this thread of control."""
        return self._past.get()

    def join(self, past: Past) -> None:
        """Add the causal context of another thread of control. Raise LimitError."""
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
                f"ContextPropagator with incarnation {self._given!r} was created before a fork, so "
                "ids would repeat; create one in each process"
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
        """Merge two contexts; ids that precede either frontier are not in the new one."""
        behind = {*past.before, *other.before}
        both = dict.fromkeys((*past.frontier, *other.frontier))
        # All ids precede each other only with false headers: then keep them all.
        frontier = tuple(name for name in both if name not in behind) or tuple(both)
        if len(frontier) > self.max_causes:
            raise LimitError(
                f"{len(frontier)} messages received since the last send exceed max_causes="
                f"{self.max_causes}: send a message, which replaces them, or raise max_causes"
            )
        replaced = (name for name in both if name in behind)
        before = dict.fromkeys((*replaced, *other.before, *past.before))
        return Past(frontier, tuple(before)[: self.max_causes])

    def _checked(self, past: Past) -> Past:
        parts = (past.frontier, past.before) if isinstance(past, Past) else (None,)
        for part in parts:
            if not isinstance(part, tuple) or not all(_is_token(name) for name in part):
                raise LocalError(
                    f"expected a context of `ContextPropagator.causal_context`, got {_short(past)}"
                )
        return past


def _is_token(name: object) -> bool:
    return isinstance(name, str) and _TOKEN.fullmatch(name) is not None


def _service(name: str) -> str:
    if not isinstance(name, str) or not name:
        raise InputError(f"service={name!r}: expected a name")
    quoted = quote(name, safe="")
    if len(quoted) > MAX_ID - 90:
        raise InputError(f"service name has {len(quoted)} characters; the limit is {MAX_ID - 90}")
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
            raise DecodeError(f"header {name} is not ASCII: {error}") from error
    if not isinstance(value, str):
        raise DecodeError(f"header {name} is {type(value).__name__}; expected text or bytes")
    return value.strip(" \t")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
