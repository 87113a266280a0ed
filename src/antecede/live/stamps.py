"""Where causes go from a live group into the headers of other transports
(`antecede.core.propagation`).

A live message is called LANE:NUMBER, and so it is in a header, but for characters that no id of a
stamp may hold: those are percent-encoded. What a peer's program follows is kept as a frontier of
messages that were handed to it: in orders that deliver by happened-before everything else it knows
stands before these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote

from antecede.core.propagation import MAX_ID, CausalContext
from antecede.errors import LimitError

_NOT_IN_A_STAMP = re.compile(r"[^!#-+\--:<-\[\]-~]|%")


def token(lane: str, number: int) -> str:
    """Return what a message is called in headers: its id, percent-encoded where that must be.

    Raises LimitError where that is longer than MAX_ID characters, as long names may be.
    """
    found = f"{_NOT_IN_A_STAMP.sub(lambda one: quote(one[0], safe=''), lane)}:{number}"
    if len(found) > MAX_ID:
        raise LimitError(
            f"{lane:.40}... takes {len(found)} characters as an id in a header, at most {MAX_ID}: "
            "a shorter name, or one of plain letters, fits"
        )
    return found


def past_of(message: tuple[str, int], answers: Iterable[tuple[str, int]] = ()) -> CausalContext:
    """Return the past of who handles one message, and nothing else: (lane, number) of each."""
    return CausalContext((token(*message),), tuple(token(*one) for one in answers))


class Handed:
    """The newest message of each lane that was handed over since one's own last sending.

    Kept by what was said at once, not by message, since that is much less often.
    """

    __slots__ = ("_newest",)

    def __init__(self) -> None:
        self._newest: dict[str, tuple[int, int]] = {}
        """Lane -> (number of the newest, how many messages one had sent by then)."""

    def note(self, lane: str, number: int, sent: int) -> None:
        """This message, and what came before it in its lane, was handed over."""
        self._newest[lane] = number, sent

    def past(self, me: str, sent: int) -> CausalContext:
        """Return what one follows by now, having sent so many messages in the lane `me`."""
        last = [token(me, sent)] if sent else []
        since = [token(lane, n) for lane, (n, then) in self._newest.items() if then >= sent]
        return CausalContext((*last, *since))
