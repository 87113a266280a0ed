"""The relations by physical time, alone and with linear time; sound for true bounds (Tsuneizumi et
al.).

Source: Tsuneizumi et al., sections 4.2 and 5, with the repairs of the errata; why they miss no
causal pair is said in `timed.relations`.
"""

from __future__ import annotations

from antecede.protocols.timed.relations import Floor, Separation, Stamped


class PhysicalRelation:
    """a before b when b's physical time is later by what separates a causal pair, or more."""

    def __init__(self, separation: Separation) -> None:
        self.separation = separation

    def precedes(self, a: Stamped, b: Stamped) -> bool:
        """Tell whether a of another sender comes before b."""
        return b.pt_ns - a.pt_ns >= self.separation.between_ns(a.sender, b.sender)

    def excludes(self, floor: Floor, member: int, b: Stamped) -> bool:
        """Tell whether nothing that `member` sends from `floor` on can come before b."""
        return b.pt_ns - floor.pt_ns < self.separation.between_ns(member, b.sender)


class LinearPhysicalRelation:
    """a before b when both times allow it: fewer pairs than either alone (section 5)."""

    def __init__(self, separation: Separation) -> None:
        self.separation = separation

    def precedes(self, a: Stamped, b: Stamped) -> bool:
        """Tell whether a of another sender comes before b."""
        if a.lt >= b.lt:
            return False
        return b.pt_ns - a.pt_ns >= self.separation.between_ns(a.sender, b.sender)

    def excludes(self, floor: Floor, member: int, b: Stamped) -> bool:
        """Tell whether nothing that `member` sends from `floor` on can come before b."""
        if floor.lt >= b.lt:
            return True
        apart_ns = self.separation.same_ns
        if apart_ns is None or member == b.sender:
            apart_ns = self.separation.between_ns(member, b.sender)
        return b.pt_ns - floor.pt_ns < apart_ns
