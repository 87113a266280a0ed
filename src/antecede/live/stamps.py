"""Causal context of live messages for headers of other transports.

A message id in a header is SENDER-ID:NUMBER with percent-encoding of forbidden characters
(`antecede.core.propagation`). The causal context of a program is a frontier of the messages that it
took. In orders by happened-before all other causes are before these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote

from antecede.core.propagation import MAX_ID, CausalContext
from antecede.errors import LimitError

_NOT_IN_A_STAMP = re.compile(r"[^!#-+\--:<-\[\]-~]|%")


def encode_id(lane: str, number: int) -> str:
    """Return the id of a message in headers, percent-encoded where needed. Raises LimitError beyond
    MAX_ID characters, which long names can reach.
    """
    found = f"{_NOT_IN_A_STAMP.sub(lambda one: quote(one[0], safe=''), lane)}:{number}"
    if len(found) > MAX_ID:
        raise LimitError(
            f"{lane:.40}... has {len(found)} characters as an id in a header, more than {MAX_ID}; "
            "use a shorter name, or one of ASCII letters"
        )
    return found


def past_of(message: tuple[str, int], answers: Iterable[tuple[str, int]] = ()) -> CausalContext:
    """Return the causal context of a handler of one message; ids are (sender id, number)."""
    return CausalContext((encode_id(*message),), tuple(encode_id(*one) for one in answers))


class Handed:
    """Newest message of each sender that was taken since the last own send. Updated for consecutive
    messages together, which is much rarer than for each message.
    """

    __slots__ = ("_newest",)

    def __init__(self) -> None:
        self._newest: dict[str, tuple[int, int]] = {}
        """Sender id -> (number of the newest message, own messages sent by then)."""

    def note(self, lane: str, number: int, sent: int) -> None:
        """Record that this message, and those before it in its sender log, were taken."""
        self._newest[lane] = number, sent

    def past(self, me: str, sent: int) -> CausalContext:
        """Return the causal context after `sent` own messages with sender id `me`."""
        last = [encode_id(me, sent)] if sent else []
        since = [encode_id(lane, n) for lane, (n, then) in self._newest.items() if then >= sent]
        return CausalContext((*last, *since))
