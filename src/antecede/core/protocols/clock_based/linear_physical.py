"""Linear-physical: causal order by Lamport's clock, without the pairs that real clocks exclude.

Source: Tsuneizumi et al., section 5, with rules 1 and 2 replaced by a sound one. Message a precedes
b when a.LT is less AND b.PT - a.PT is at least the separation of a causal pair
(`clock_based.relations`). As printed (`rule-1b`), pairs within 2 lambda are called concurrent,
although some are causal.

The better the clocks, and the longer the least delay, the less false causality.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from antecede.core.clocks import Bounds
from antecede.core.protocols.clock_based.base import ClockOrdered
from antecede.core.protocols.clock_based.published_relations import PrintedRelation
from antecede.core.protocols.clock_based.relations import (
    ClockRelation,
    LinearPhysicalRelation,
    Separation,
)


class LinearPhysical(ClockOrdered):
    """Member of a group; needs bounds of clocks and delays of any size."""

    misprints: ClassVar[frozenset[str]] = ClockOrdered.misprints | {"equal-times", "rule-1b"}

    def relate(self, separation: Separation) -> ClockRelation:
        if "rule-1b" in self.as_published:
            return PrintedRelation(separation.bounds)
        return LinearPhysicalRelation(separation)

    @classmethod
    def trial_options(cls, members: Sequence[int]) -> Mapping[str, Any]:
        return {"bounds": Bounds[int](accuracy_s=1, least_s=1, most_s=3), "heartbeat_s": 2.0}
