"""Skipping of lost messages, in orders in which a sender's messages are delivered by number.

A number is skipped in its turn, when all earlier ones of its sender are delivered or skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from antecede.core.protocols.base import Effect, MessageId, Protocol
from antecede.errors import LocalError


def skip_lost_messages(
    protocol: Protocol,
    lost: Collection[MessageId],
    count_of: Callable[[int], int],
    is_here: Callable[[MessageId], bool],
    skip: Callable[[MessageId], Sequence[Effect]],
    is_next: Callable[[MessageId], bool] | None = None,
) -> list[Effect]:
    """Skip lost messages, each in its turn, and return the effects.

    `count_of`: number up to which a member's messages are delivered. `skip`: counts one more as
    delivered. `is_next`: whether it is a message's turn. Raises LocalError, without a change, for a
    message that is here, that comes after its sender's last one, or whose turn does not come.
    """
    departed = protocol.list_departed()
    waiting = {one for one in lost if one.sender != protocol.me and one.seq > count_of(one.sender)}
    for one in sorted(waiting):
        if is_here(one):
            raise LocalError(f"message {one.seq} of member {one.sender} is here and not lost")
        if one.seq > departed.get(one.sender, one.seq):
            raise LocalError(
                f"message {one.seq} of member {one.sender} cannot be lost: the member left "
                f"after message {departed[one.sender]}"
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
            raise LocalError(_explain_too_early(one, count_of(one.sender) + 1))
        waiting.discard(ready[0])
        effects += skip(ready[0])
    return effects


def _explain_too_early(lost: MessageId, first: int) -> str:
    what = f"message {lost.seq} of member {lost.sender}"
    if first == lost.seq:
        return f"{what} can be skipped only in its turn, which is not known here yet"
    which = f"message {first}" if first == lost.seq - 1 else f"messages {first} to {lost.seq - 1}"
    return f"{what} can be skipped only after {which}: declare these lost too, or wait for them"
