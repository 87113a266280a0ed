"""Rules 2 and 3 of Nakayama 2017, and its vector clock, as printed, to measure their effects.

Rule 3 lost its minus signs in print. As restored (errata) it still orders no pair closer than
maxd_ij + 2 epsilon where mind_ij < 2 epsilon. It also uses the channel between the two sources,
where a chain of events may be faster. There is no delay from a source to itself. So events of one
source are ordered by its counter, as in the repaired rule.

On receipt, the vector clock of section 3 adds one to every other entry, whatever the event carries.
So it counts receipts and loses the number of events behind the received one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from antecede.core.clocks import unit
from antecede.core.protocols.topics.delays import Delays
from antecede.core.protocols.topics.relations import TopicRelation, TopicTimestamp


class PrintedTopicRelation(TopicRelation):
    """Relation of TV and other times, with LT and PT by rules 2 and 3 as printed."""

    def __init__(self, delays: Delays, **parts: Any) -> None:
        super().__init__(delays, **parts)
        self.untimed = TopicRelation(delays, vector=self.vector, reading=self.reading)

    def precedes(
        self, e1: TopicTimestamp, e2: TopicTimestamp, subscription: Collection[str]
    ) -> bool:
        if not self.untimed.precedes(e1, e2, subscription):
            return False
        if self.linear and not linear_precedes_as_published(e1, e2):
            return False
        return not self.physical or physical_precedes_as_published(e1, e2, self.delays)


def linear_precedes_as_published(e1: TopicTimestamp, e2: TopicTimestamp) -> bool:
    """Return whether e1.LT <= e2.LT (rule 2): events of equal time precede each other."""
    return e1.lt <= e2.lt


def physical_precedes_as_published(e1: TopicTimestamp, e2: TopicTimestamp, delays: Delays) -> bool:
    """Return whether e1 PT-precedes e2 by rule 3, its lost first condition included."""
    if e1.source == e2.source:
        return e1.seq < e2.seq
    least_ns = delays.bounds.least_delay_ns(e1.source, e2.source)
    most_ns = delays.bounds.most_delay_ns(e1.source, e2.source)
    error_ns = delays.error_ns(e1.source, e2.source)
    later_ns = e2.pt_ns - e1.pt_ns
    if not -later_ns < error_ns:
        return False
    if later_ns > most_ns + error_ns:
        return True
    return least_ns >= error_ns and least_ns - error_ns <= later_ns <= most_ns + error_ns


def merge_vector_as_published(vt: int, others: Iterable[int]) -> int:
    """Return VT, in packed lanes, after `vt_j = vt_j + 1` for every j of the others."""
    return vt + sum(unit(member) for member in others)
