"""Short notation for S_b messages and effects, and ancestors from sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from antecede.core.protocols.base import (
    Deliver,
    DeliverIncomplete,
    Discard,
    Effect,
    Hold,
    MessageId,
)
from antecede.core.protocols.reply.messages import SbMessage

NAMES = {0: "A", 1: "B", 2: "C", 3: "D"}
NUMBERS = {name: number for number, name in NAMES.items()}


def mid(label: str) -> MessageId:
    """Return the id of a label: `B3` is message 3 of member 1."""
    return MessageId(NUMBERS[label[0]], int(label[1:]))


def msg(label: str, *parents: str) -> SbMessage:
    """Return a message by labels: `msg("B3", "B2")` is <B3, B2, data>; the payload is the label."""
    return SbMessage(*mid(label), tuple(mid(parent) for parent in parents), label)


def said(effects: Sequence[Effect]) -> list[str]:
    """Return effects as text: "deliver B3", "hold B3 for B2", "release B3 without B2", ..."""
    words = []
    for effect in effects:
        match effect:
            case Deliver(message):
                words.append(f"deliver {message.payload}")
            case Hold(message, missing):
                words.append(f"hold {message.payload} for {_labels(missing)}")
            case DeliverIncomplete(message, missing):
                words.append(f"release {message.payload} without {_labels(missing)}")
            case Discard(message, reason):
                words.append(f"discard {message.payload}: {reason}")
            case _:
                raise AssertionError(f"unexpected {effect}")
    return words


def _labels(ids: Iterable[MessageId]) -> str:
    return " ".join(f"{NAMES[sender]}{seq}" for sender, seq in ids)


def ancestors(
    parents: Mapping[MessageId, frozenset[MessageId]],
) -> dict[MessageId, frozenset[MessageId]]:
    """Return the transitive closure of declared parents, by the definition (III.A.3)."""
    closure = {child: set(direct) for child, direct in parents.items()}
    grew = True
    while grew:
        grew = False
        for above in closure.values():
            wider = above.union(*(closure.get(parent, set()) for parent in above))
            if len(wider) > len(above):
                above |= wider
                grew = True
    return {child: frozenset(above) for child, above in closure.items()}
