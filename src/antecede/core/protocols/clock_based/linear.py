"""Linear: causal order by Lamport's clock alone, for 8 bytes a message however large the group.

Source: Tsuneizumi et al., sections 4.1 and 6, with the clock repaired: on receipt LT becomes
`max(LT, m.LT + 1)`, so that later messages are later by the clock. As printed, `max(LT, m.LT)`
(`equal-times`), both can be equal, and the answer overtakes.

A message carries LT, which then goes on by one. It comes before every other with a greater LT; most
of the pairs so ordered are concurrent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from antecede.core.clocks import Bounds
from antecede.core.protocols.clock_based.base import ClockOrdered
from antecede.core.protocols.clock_based.relations import LinearRelation, Relation, Separation


class Linear(ClockOrdered):
    """One member; needs null messages, or a bound of the delay."""

    carries_pt: ClassVar[bool] = False
    misprints: ClassVar[frozenset[str]] = ClockOrdered.misprints | {"equal-times"}

    def relate(self, separation: Separation) -> Relation:
        """Return the order by linear time."""
        return LinearRelation()

    @classmethod
    def trial_options(cls, members: Sequence[int]) -> Mapping[str, Any]:
        """Return clocks off by a second, and delays that let answers overtake, one pair unlike."""
        unlike = {(3, 0): (3.0, 6.0), (3, 2): (1.0, 6.0)}
        bounds = Bounds[int](accuracy_s=1, least_s=1, most_s=3, channels=unlike)
        return {"bounds": bounds, "heartbeat_s": 2.0}
