"""Total order: whether two members deliver the same two messages in different orders."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Generic, NamedTuple, TypeVar

Member = TypeVar("Member", bound=Hashable)
Label = TypeVar("Label", bound=Hashable)


class Disagreement(NamedTuple, Generic[Member, Label]):
    """`one` delivers `first` before `then`, `other` delivers `then` before `first`."""

    one: Member
    other: Member
    first: Label
    then: Label


def disagreement(orders: Mapping[Member, Sequence[Label]]) -> Disagreement[Member, Label] | None:
    """Return a pair of messages that two members deliver in different orders, if there is one.

    `orders` are each member's deliveries in its order; nothing is said of messages that only
    one of two members delivers.
    """
    places = {at: {label: place for place, label in enumerate(all_)} for at, all_ in orders.items()}
    for one, other in combinations(orders, 2):
        there = places[other]
        both = [label for label in orders[one] if label in there]
        for first, then in pairwise(both):
            if there[first] > there[then]:
                return Disagreement(one, other, first, then)
    return None
