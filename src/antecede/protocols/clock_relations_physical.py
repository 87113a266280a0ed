"""The relations by physical time, alone and with linear time; sound for true bounds (002).

Source: 002, sections 4.2 and 5, with the repairs of the errata; why they miss no causal pair is
said in `clock_relations`.
"""

from __future__ import annotations

from antecede.protocols.clock_relations import Floor, LinearRelation, Separation, Stamped


class PhysicalRelation:
    """a before b when b's physical time is later by what separates a causal pair, or more."""

    def __init__(self, separation: Separation) -> None:
        self.separation = separation

    def precedes(self, a: Stamped, b: Stamped) -> bool:
        """Tell whether a of another sender comes before b."""
        return b.pt_s - a.pt_s >= self.separation.between_s(a.sender, b.sender)

    def excludes(self, floor: Floor, member: int, b: Stamped) -> bool:
        """Tell whether nothing that `member` sends from `floor` on can come before b."""
        return b.pt_s - floor.pt_s < self.separation.between_s(member, b.sender)


class LinearPhysicalRelation:
    """a before b when both times allow it: fewer pairs than either alone (section 5)."""

    def __init__(self, separation: Separation) -> None:
        self.linear = LinearRelation()
        self.physical = PhysicalRelation(separation)

    def precedes(self, a: Stamped, b: Stamped) -> bool:
        """Tell whether a of another sender comes before b."""
        return self.linear.precedes(a, b) and self.physical.precedes(a, b)

    def excludes(self, floor: Floor, member: int, b: Stamped) -> bool:
        """Tell whether nothing that `member` sends from `floor` on can come before b."""
        return self.linear.excludes(floor, member, b) or self.physical.excludes(floor, member, b)
