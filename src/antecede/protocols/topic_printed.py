"""Rules 2 and 3 of 004 as printed, kept so that their harm can be measured.

Rule 3 lost its minus signs in the text; as restored (errata) it still orders no pair closer than
maxd_ij + 2 epsilon where mind_ij < 2 epsilon, and goes by the channel between the two sources
where a chain of events may be faster. There is no delay from a source to itself: events of one
source go by its counter, as in the repaired rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from antecede.protocols.topic_delays import Delays
    from antecede.protocols.topic_relations import Stamp


def linear_precedes_as_printed(e1: Stamp, e2: Stamp) -> bool:
    """Tell whether e1.LT <= e2.LT (rule 2): events of equal time precede each other."""
    return e1.lt <= e2.lt


def physical_precedes_as_printed(e1: Stamp, e2: Stamp, delays: Delays) -> bool:
    """Tell whether e1 PT-precedes e2 by rule 3, its lost first condition included."""
    if e1.source == e2.source:
        return e1.seq < e2.seq
    least_s = delays.bounds.least(e1.source, e2.source)
    most_s = delays.bounds.most(e1.source, e2.source)
    error_s = delays.error_s(e1.source, e2.source)
    later_s = e2.pt_s - e1.pt_s
    if not -later_s < error_s:
        return False
    if later_s > most_s + error_s:
        return True
    return least_s >= error_s and least_s - error_s <= later_s <= most_s + error_s
