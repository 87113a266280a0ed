"""Relations of HTBC between two events at a subscriber, as repaired.

Source: Nakayama 2017, section 2 (ordering rules 1 to 4) and section 3 (the sets TV_i to VT_i);
errata. As printed: `topics.published_relations`.

A relation takes a pair of events and the subscription p.S of the member that orders them:

- TV: less in every topic of e1.P & e2.P & p.S; unrelated when these are none (rule 1).
- LT: e1.LT < e2.LT (rule 2).
- PT: e2.PT - e1.PT is possible for an effect (rule 3).
- VT: e1.VT <= e2.VT, so e1 is in the causal past of e2, by receipt (the reference).

A protocol orders the pairs that all its parts order. TV & VT is exact: causal and related in
topics. Repaired, TV, LT and PT hold for every such pair. So TV, TV_LT, TV_PT and HTBC (TBC) order
all of them and some more, which is false causality. Events of one source are ordered by its
counter.

TV is cyclic over topics that overlap. Let e1 be about {a, b}, e2 about {b, c} and e3 about {c, a}.
Each pair has one topic in common and is compared in it alone. VT and LT are strict orders. A
relation without them uses `Stamp.weight` (see `TopicRelation.rank`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from antecede.core.clocks import LANE_BITS, dominates, guards
from antecede.core.protocols.topics.delays import Delays
from antecede.errors import LocalError

ALL = "all"
SOME = "some"
PUBLISHED = "no-greater"
READINGS = (ALL, SOME, PUBLISHED)
"""TV precedes if less in all common topics; no greater in any, less in some; no greater."""


class TopicTimestamp(NamedTuple):
    """Input of the relations for an event. Fields that a protocol does not carry are 0."""

    source: int
    seq: int
    counts: Mapping[str, int]
    """e.TV in the topics of e.P, so its keys are e.P; no relation reads other entries."""
    weight: int = 0
    """Sum of the whole topic vector."""
    lt: int = 0
    pt_ns: int = 0
    vt: int = 0
    """Vector time in packed lanes (`core.clocks.lanes`), with the source's own entry."""


class TopicRelation:
    """Relation of TV and other times, for a group with these bounds. Raises LocalError."""

    def __init__(
        self,
        delays: Delays,
        *,
        linear: bool = False,
        physical: bool = False,
        vector: bool = False,
        reading: str = ALL,
    ) -> None:
        if reading not in READINGS:
            raise LocalError(f"unknown reading {reading!r}; choose from {', '.join(READINGS)}")
        self.delays = delays
        self.linear, self.physical, self.vector = linear, physical, vector
        self.reading = reading

    def precedes(
        self, e1: TopicTimestamp, e2: TopicTimestamp, subscription: Collection[str]
    ) -> bool:
        if not topics_precede(e1, e2, subscription, reading=self.reading):
            return False
        if self.vector and not vector_precedes(e1, e2):
            return False
        if self.linear and not linear_precedes(e1, e2):
            return False
        return not self.physical or physical_precedes(e1, e2, self.delays)

    def rank(self, event: TopicTimestamp) -> tuple[int, int, int]:
        """Return a key that is less for e1 whenever e1 is in the causal past of e2."""
        return (event.lt if self.linear else event.weight), event.source, event.seq


def topics_precede(
    e1: TopicTimestamp, e2: TopicTimestamp, subscription: Collection[str], *, reading: str = ALL
) -> bool:
    """Return whether e1.TV precedes e2.TV on e1.P & e2.P & p.S (Nakayama 2017, rule 1)."""
    one, other = e1.counts, e2.counts
    common = [topic for topic in one if topic in other and topic in subscription]
    if reading == ALL:
        return bool(common) and all(one[topic] < other[topic] for topic in common)
    if reading == PUBLISHED:
        return bool(common) and all(one[topic] <= other[topic] for topic in common)
    return all(one[topic] <= other[topic] for topic in common) and any(
        one[topic] < other[topic] for topic in common
    )


def linear_precedes(e1: TopicTimestamp, e2: TopicTimestamp) -> bool:
    """Return whether e1.LT < e2.LT (Nakayama 2017, rule 2, repaired)."""
    return e1.lt < e2.lt


def physical_precedes(e1: TopicTimestamp, e2: TopicTimestamp, delays: Delays) -> bool:
    """Return whether e2 can be an effect of e1 by physical time (rule 3, repaired)."""
    if e1.source == e2.source:
        return e1.seq < e2.seq
    nearest_ns = delays.least_ns(e1.source, e2.source) - delays.error_ns(e1.source, e2.source)
    return e2.pt_ns - e1.pt_ns >= nearest_ns


def vector_precedes(e1: TopicTimestamp, e2: TopicTimestamp) -> bool:
    """Return whether e1.VT <= e2.VT: e1 is in e2's causal past (section 3; Mattern)."""
    width = max(e1.vt.bit_length(), e2.vt.bit_length())
    return dominates(e2.vt, e1.vt, guards(-(-width // LANE_BITS)))
