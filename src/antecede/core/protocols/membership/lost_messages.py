"""Lost messages that a member passes over, in orders in which a sender's messages come by number.

A number is passed over in its turn: when all before it of the same sender are delivered, or are
passed over too. So a message that only is late is not given up by mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from antecede.core.protocols.base import Effect, MessageId, Protocol
from antecede.errors import LocalError


def pass_over(
    protocol: Protocol,
    lost: Collection[MessageId],
    count_of: Callable[[int], int],
    is_here: Callable[[MessageId], bool],
    pass_one: Callable[[MessageId], Sequence[Effect]],
    is_next: Callable[[MessageId], bool] | None = None,
) -> list[Effect]:
    """Pass over lost messages, each in its turn, and return what follows.

    `count_of`: the number up to which a member's messages are delivered. `pass_one` counts one more
    as delivered and returns what it lets go. `is_next`: whether it is a message's turn, where the
    numbers of its sender do not tell. Raises LocalError, and leaves the protocol as it was, for a
    message that is here, one after its sender's last, and one whose turn does not come.
    """
    departed = protocol.departed()
    waiting = {one for one in lost if one.sender != protocol.me and one.seq > count_of(one.sender)}
    for one in sorted(waiting):
        if is_here(one):
            raise LocalError(f"message {one.seq} of member {one.sender} is here and not lost")
        if one.seq > departed.get(one.sender, one.seq):
            raise LocalError(
                f"message {one.seq} of member {one.sender} cannot be lost: that member left after "
                f"message {departed[one.sender]}"
            )
    before, effects = protocol.snapshot(), list[Effect]()
    while waiting:
        ready = sorted(
            one
            for one in waiting
            if one.seq == count_of(one.sender) + 1 and (is_next is None or is_next(one))
        )
        if not ready:
            protocol.restore(before)
            one = min(waiting)
            raise LocalError(_too_early(one, count_of(one.sender) + 1))
        waiting.discard(ready[0])
        effects += pass_one(ready[0])
    return effects


def _too_early(one: MessageId, first: int) -> str:
    """Return why it is not the turn of a lost message, for an error; `first`: whose turn it is."""
    what = f"message {one.seq} of member {one.sender}"
    if first == one.seq:
        return f"{what} is passed over only in its turn, and its place is not known here yet"
    which = f"message {first}" if first == one.seq - 1 else f"messages {first} to {one.seq - 1}"
    return (
        f"{what} is passed over only after {which}: name what never comes of these too, and wait "
        "for the rest"
    )
