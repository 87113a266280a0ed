"""Linear: causal order by Lamport's clock alone, with 8 bytes per message for any group size.

Source: Tsuneizumi et al., sections 4.1 and 6, with the clock repaired. On receipt LT becomes
`max(LT, m.LT + 1)`, so that later messages have a later LT. As printed, `max(LT, m.LT)`
(`equal-times`), both can be equal, and the reply overtakes its cause.

A message carries LT, which is then incremented. It precedes every message with a greater LT; most
pairs ordered this way are concurrent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from antecede.core.clocks import Bounds
from antecede.core.protocols.clock_based.base import ClockOrdered
from antecede.core.protocols.clock_based.relations import ClockRelation, LinearRelation, Separation


class Linear(ClockOrdered):
    """Member of a group; needs null messages, or a delay bound."""

    carries_pt: ClassVar[bool] = False
    misprints: ClassVar[frozenset[str]] = ClockOrdered.misprints | {"equal-times"}

    def relate(self, separation: Separation) -> ClockRelation:
        return LinearRelation()

    @classmethod
    def trial_options(cls, members: Sequence[int]) -> Mapping[str, Any]:
        unlike = {(3, 0): (3.0, 6.0), (3, 2): (1.0, 6.0)}
        bounds = Bounds[int](accuracy_s=1, least_s=1, most_s=3, channels=unlike)
        return {"bounds": bounds, "heartbeat_s": 2.0}
