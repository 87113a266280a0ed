"""Topic-based order, in the notation of Nakayama 2017, section 2 (ordering rules 1 to 4).

An event message e carries its publication e.P (a set of topics), the topic vector e.TV, the linear
time e.LT and the physical time e.PT. Clocks err by at most epsilon. At a peer with subscription
p.S, e_1 of p_i comes before e_2 of p_j by

    tv    e_1.TV < e_2.TV in every topic of e_1.P & e_2.P & p.S, which is not empty   (rule 1)
    lt    e_1.LT < e_2.LT                                                             (rule 2)
    pt    e_2.PT - e_1.PT >= mind_ij - 2 epsilon                                      (rule 3)
    tbc   all three                                                                   (rule 4)

The source writes `<=` in rule 2, and demands mind_ij >= 2 epsilon in rule 3 (b), which misses
causal pairs (docs/errata.md, E48 and E49).
"""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple


class Event(NamedTuple):
    """The fields of an event message; TV has a count of each topic."""

    src: int
    P: frozenset[str]
    TV: dict[str, int]
    LT: int
    PT: int


def tv(e_1: Event, e_2: Event, S: Set[str]) -> bool:
    """Return whether e_1 comes before e_2 by topic vectors."""
    common = e_1.P & e_2.P & S
    return bool(common) and all(e_1.TV[t] < e_2.TV[t] for t in common)


def lt(e_1: Event, e_2: Event) -> bool:
    """Return whether e_1 comes before e_2 by linear time."""
    return e_1.LT < e_2.LT


def pt(e_1: Event, e_2: Event, mind: int, epsilon: int) -> bool:
    """Return whether e_1 comes before e_2 by physical time."""
    return e_2.PT - e_1.PT >= mind - 2 * epsilon


def tbc(e_1: Event, e_2: Event, S: Set[str], mind: int, epsilon: int) -> bool:
    """Return whether e_1 comes before e_2 by HTBC."""
    return tv(e_1, e_2, S) and lt(e_1, e_2) and pt(e_1, e_2, mind, epsilon)
