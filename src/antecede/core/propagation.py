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

The context is a context variable. A task starts with a copy (a fork). `past`,
`resuming` and `join` carry it across a thread, a pool or a database row. Top-level blocks, as in
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
    "CausalContext",
    "ContextPropagator",
    "MessageContext",
    "PropagationStats",
    "read",
    "strip_context",
]

ID = "antecede-id"
CAUSES = "antecede-causes"
MAX_ID = 200

Value = str | bytes
Headers = Mapping[str, Any] | Iterable[tuple[str, Any]] | None
OnBad = Literal["raise", "count"]

TOKEN = rf"[!#-+\--:<-\[\]-~]{{1,{MAX_ID}}}"
"""Regular expression of an id: visible ASCII except comma, semicolon, quotation mark, backslash."""
_ID_REGEX = re.compile(TOKEN)
_INCARNATION_REGEX = re.compile(r"[A-Za-z0-9._~-]{1,64}")


class MessageContext(NamedTuple):
    """Id and direct causes of a message, from its headers."""

    id: str
    causes: tuple[str, ...]


class CausalContext(NamedTuple):
    """Causal context of a thread of control; immutable, and valid in any other thread."""

    frontier: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    """Known ids that precede the frontier; may be incomplete."""


_EMPTY = CausalContext()


class PropagationStats(NamedTuple):
    """Message counts of a ContextPropagator."""

    sent: int
    received: int
    without_headers: int
    bad: int
    """Messages received with invalid headers; their causes are unknown."""
    last_error: str | None


def read(headers: Headers) -> MessageContext | None:
    """Return id and causes from message headers; None if both are absent. Raise DecodeError."""
    values: dict[str, str] = {}
    for name, value in _list_pairs(headers):
        key = name.lower() if isinstance(name, str) else name
        if key in (ID, CAUSES):
            text = _decode_value(key, value)
            if values.setdefault(key, text) != text:
                both = f"{_shorten(values[key])} and {_shorten(text)}"
                raise DecodeError(f"duplicate header {key}: {both}")
    if not values:
        return None
    for key, partner in ((ID, CAUSES), (CAUSES, ID)):
        if key not in values:
            raise DecodeError(f"header {partner} without {key}; expected both or none")
    causes = tuple(dict.fromkeys(values[CAUSES].split(","))) if values[CAUSES] else ()
    for token in (values[ID], *causes):
        if not _ID_REGEX.fullmatch(token):
            raise DecodeError(f"{_shorten(token)} in {ID} or {CAUSES} is not a valid id")
    if values[ID] in causes:
        raise DecodeError(f"message {values[ID]} names itself as its cause")
    return MessageContext(values[ID], causes)


def strip_context(headers: Headers) -> list[tuple[str, Any]]:
    """Return headers without id and causes, as pairs, to forward a message."""
    return [
        (name, value) for name, value in _list_pairs(headers) if name.lower() not in (ID, CAUSES)
    ]


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
        self._service = _quote_service(service)
        self._fixed_incarnation = incarnation
        if incarnation is not None and not _INCARNATION_REGEX.fullmatch(incarnation):
            raise InputError(
                f'incarnation={incarnation!r}: expected up to 64 letters, digits and "._~-"'
            )
        if isinstance(max_causes, bool) or not isinstance(max_causes, int) or max_causes < 1:
            raise InputError(f"max_causes={max_causes!r}: expected an integer of 1 or more")
        if on_bad not in ("raise", "count"):
            raise InputError(f"unknown on_bad={on_bad!r}; choose from raise, count")
        self.max_causes = max_causes
        self._counts_bad = on_bad == "count"
        self._context: ContextVar[CausalContext] = ContextVar("antecede-past", default=_EMPTY)
        self._in_block: ContextVar[bool] = ContextVar("antecede-inside", default=False)
        self._lock = threading.Lock()
        self._last_error: str | None = None
        self._reset()

    @property
    def incarnation(self) -> str:
        """Incarnation part of all ids."""
        return self._incarnation

    @overload
    def make_headers(
        self, headers: Mapping[str, Any], *, id: str | None = None
    ) -> dict[str, Any]: ...
    @overload
    def make_headers(
        self, headers: Iterable[tuple[str, Any]] = (), *, id: str | None = None
    ) -> list[tuple[str, Any]]: ...

    def make_headers(
        self, headers: Mapping[str, Any] | Iterable[tuple[str, Any]] = (), *, id: str | None = None
    ) -> dict[str, Any] | list[tuple[str, Any]]:
        """Return headers of a new message: the given ones, its id and its causes.

        A mapping returns a dict with text values (HTTP, trace context), pairs return pairs with
        bytes values (Kafka, AMQP). Each call is a new message. Raises LocalError if the headers
        have an id.
        """
        others = list(_list_pairs(headers))
        present = [name for name, _ in others if name.lower() in (ID, CAUSES)]
        if present:
            raise LocalError(
                f"headers have {present[0]} of another message: pass them to `receive` or "
                "`handle`, and `strip_context(headers)` here"
            )
        message = self.create_message(id)
        added = {ID: message.id, CAUSES: ",".join(message.causes)}
        if isinstance(headers, Mapping):
            return {**dict(others), **added}
        return [*others, *((name, text.encode("ascii")) for name, text in added.items())]

    def create_message(self, id: str | None = None) -> MessageContext:
        """Return id and causes of a new message, for transports without headers.

        `id`: existing id, such as `id.token` of a live message. Raises LocalError unless it is
        valid and new.
        """
        context = self._context.get()
        if id is not None and (not _is_token(id) or id in context.frontier or id in context.before):
            raise LocalError(f"{_shorten(id)} is not a valid id, or the id of a cause")
        with self._lock:
            if os.getpid() != self._process:
                self._handle_fork()
            self._sent += 1
            if id is None:
                self._numbered += 1
                id = f"{self._service}:{self._incarnation}:{self._numbered}"
            message = MessageContext(id, context.frontier)
        self._context.set(CausalContext((message.id,), context.frontier))
        return message

    def receive(self, headers: Headers) -> MessageContext | None:
        """Add a received message to the context: later messages of this thread of control follow
        it.

        Returns its id and causes, None without headers. Raises DecodeError for invalid headers
        unless they are counted, and LimitError for more than `max_causes` messages since the last
        send.
        """
        try:
            message = read(headers)
        except DecodeError as error:
            with self._lock:
                self._bad += 1
                self._last_error = str(error)
            if self._counts_bad:
                return None
            raise
        if message is not None:
            self._context.set(self._follow(self._context.get(), message))
        with self._lock:
            if message is None:
                self._without_headers += 1
            else:
                self._received += 1
        return message

    @contextmanager
    def handle(self, headers: Headers) -> Iterator[MessageContext | None]:
        """Receive a message in a new context for the block; a nested block uses the outer one."""
        if self._in_block.get():
            yield self.receive(headers)
            return
        with self._enter_block(self._context.get()):
            yield self.receive(headers)

    @contextmanager
    def begin(self) -> Iterator[None]:
        """Use an empty context in the block, for work without a cause such as a user's request."""
        with self._enter_block(_EMPTY):
            yield

    @contextmanager
    def resume(self, context: CausalContext) -> Iterator[None]:
        """Continue a context in the block. Raise LimitError for more than `max_causes` ids."""
        if len(self._check_context(context).frontier) > self.max_causes:
            raise LimitError(
                f"context of {len(context.frontier)} messages exceeds "
                f"max_causes={self.max_causes}; raise it"
            )
        with self._enter_block(context):
            yield

    @property
    def past(self) -> CausalContext:
        """Causal context of this thread of control."""
        return self._context.get()

    def join(self, context: CausalContext) -> None:
        """Add the causal context of another thread of control. Raise LimitError."""
        self._context.set(self._merge(self._context.get(), self._check_context(context)))

    def stats(self) -> PropagationStats:
        """Return the counts so far."""
        with self._lock:
            return PropagationStats(
                self._sent, self._received, self._without_headers, self._bad, self._last_error
            )

    def _reset(self) -> None:
        self._process = os.getpid()
        self._incarnation = self._fixed_incarnation or uuid.uuid4().hex
        self._sent = self._numbered = self._received = self._without_headers = self._bad = 0
        self._last_error = None

    def _handle_fork(self) -> None:
        if self._fixed_incarnation is not None:
            raise LocalError(
                f"ContextPropagator with incarnation {self._fixed_incarnation!r} was created "
                "before a fork, so ids would repeat; create one in each process"
            )
        self._reset()

    @contextmanager
    def _enter_block(self, context: CausalContext) -> Iterator[None]:
        outer, inside = self._context.set(context), self._in_block.set(True)
        try:
            yield
        finally:
            self._in_block.reset(inside)
            self._context.reset(outer)

    def _follow(self, context: CausalContext, message: MessageContext) -> CausalContext:
        if message.id in context.frontier or message.id in context.before:
            return context
        return self._merge(context, CausalContext((message.id,), message.causes))

    def _merge(self, context: CausalContext, other: CausalContext) -> CausalContext:
        """Merge two contexts; ids that precede either frontier are not in the new one."""
        behind = {*context.before, *other.before}
        both = dict.fromkeys((*context.frontier, *other.frontier))
        # All ids precede each other only with false headers: then keep them all.
        frontier = tuple(name for name in both if name not in behind) or tuple(both)
        if len(frontier) > self.max_causes:
            raise LimitError(
                f"{len(frontier)} messages received since the last send exceed max_causes="
                f"{self.max_causes}: send a message, which replaces them, or raise max_causes"
            )
        replaced = (name for name in both if name in behind)
        before = dict.fromkeys((*replaced, *other.before, *context.before))
        return CausalContext(frontier, tuple(before)[: self.max_causes])

    def _check_context(self, context: CausalContext) -> CausalContext:
        parts = (
            (context.frontier, context.before) if isinstance(context, CausalContext) else (None,)
        )
        for part in parts:
            if not isinstance(part, tuple) or not all(_is_token(name) for name in part):
                raise LocalError(
                    f"expected a context of `ContextPropagator.past`, got {_shorten(context)}"
                )
        return context


def _is_token(name: object) -> bool:
    return isinstance(name, str) and _ID_REGEX.fullmatch(name) is not None


def _quote_service(name: str) -> str:
    if not isinstance(name, str) or not name:
        raise InputError(f"service={name!r}: expected a name")
    quoted = quote(name, safe="")
    if len(quoted) > MAX_ID - 90:
        raise InputError(f"service name has {len(quoted)} characters; the limit is {MAX_ID - 90}")
    return quoted


def _list_pairs(headers: Headers) -> Sequence[tuple[str, Any]]:
    if headers is None:
        return ()
    items = getattr(headers, "items", None)
    return list(items() if items is not None else headers)


def _decode_value(name: str, value: object) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        try:
            return bytes(value).decode("ascii").strip(" \t")
        except UnicodeDecodeError as error:
            raise DecodeError(f"header {name} is not ASCII: {error}") from error
    if not isinstance(value, str):
        raise DecodeError(f"header {name} is {type(value).__name__}; expected text or bytes")
    return value.strip(" \t")


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
