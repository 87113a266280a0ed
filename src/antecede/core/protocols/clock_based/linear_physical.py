"""Linear-physical: causal order by Lamport's clock, less the pairs that real clocks exclude.

Source: Tsuneizumi et al., section 5, with rules 1 and 2 replaced by a sound one: a comes before b
when a.LT is less AND b.PT - a.PT is at least the separation of a causal pair
(`clock_based.relations`). As printed (`rule-1b`) pairs within 2 lambda are called concurrent, and
so some causal ones are.

The better the clocks, and the longer the least delay, the fewer pairs are ordered unnecessarily.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from antecede.core.clocks import Bounds
from antecede.core.protocols.clock_based.base import ClockOrdered
from antecede.core.protocols.clock_based.published_relations import PrintedRelation
from antecede.core.protocols.clock_based.relations import (
    LinearPhysicalRelation,
    Relation,
    Separation,
)


class LinearPhysical(ClockOrdered):
    """One member; needs bounds of clocks and delays, of whatever size."""

    misprints: ClassVar[frozenset[str]] = ClockOrdered.misprints | {"equal-times", "rule-1b"}

    def relate(self, separation: Separation) -> Relation:
        """Return the order by both times; raises LocalError where the printed one is not said."""
        if "rule-1b" in self.printed:
            return PrintedRelation(separation.bounds)
        return LinearPhysicalRelation(separation)

    @classmethod
    def trial_options(cls, members: Sequence[int]) -> Mapping[str, Any]:
        """Return clocks coarser than the network, and delays that let an answer overtake."""
        return {"bounds": Bounds[int](accuracy_s=1, least_s=1, most_s=3), "heartbeat_s": 2.0}
