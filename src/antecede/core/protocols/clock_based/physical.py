"""Physical: causal order by synchronized clocks alone, if they are better than the network.

Source: Tsuneizumi et al., sections 4.2, 5 and 6. A causal pair is separated by at least the least
delay of a path. The constructor rejects bounds for which that does not exceed the error of two
clocks. Tsuneizumi et al. also use the converse of property (7) and order only pairs that are surely
causal. `as_published=("property-7",)` reproduces that and misses causal pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from antecede.core.clocks import Bounds
from antecede.core.protocols.clock_based.base import ClockOrdered
from antecede.core.protocols.clock_based.published_relations import ConverseRelation
from antecede.core.protocols.clock_based.relations import (
    ClockRelation,
    PhysicalRelation,
    Separation,
)


class Physical(ClockOrdered):
    """Member of a group; needs clocks whose errors are below the delay of any message."""

    carries_lt: ClassVar[bool] = False
    misprints: ClassVar[frozenset[str]] = ClockOrdered.misprints | {"property-7"}

    def relate(self, separation: Separation) -> ClockRelation:
        separation.check_positive()
        if "property-7" in self.as_published:
            return ConverseRelation(separation.bounds)
        return PhysicalRelation(separation)

    @classmethod
    def trial_options(cls, members: Sequence[int]) -> Mapping[str, Any]:
        unlike = {(3, 0): (3.0, 6.0), (3, 2): (1.0, 6.0)}
        bounds = Bounds[int](accuracy_s=0.25, least_s=1, most_s=3, channels=unlike)
        return {"bounds": bounds, "heartbeat_s": 2.0}
