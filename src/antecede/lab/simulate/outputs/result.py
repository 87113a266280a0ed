"""Result of a run: figures by name, the same names from every engine.

A role in front of a name says whose figure it is (peer, internal, external, super; "idr" and "ds":
what these protocols would have sent along the same deliveries of a hierarchy). Means count messages
sent from the scenario's `warm_s` on.

    sent, arrivals, deliveries       messages, copies that arrived, deliveries to applications
    held_at_end, lost, duplicates    what never went, copies lost, copies doubled
    ROLE.control_bytes               mean control information of a message, the source's accounting
    ROLE.wire_bytes                  the same as the bytes on the wire
    ROLE.entropy_bytes               internal bit vectors: log2 of (window over set) / 8
    ROLE.storage_bytes               mean over time and members of what is kept for ordering
    ROLE.storage_bytes_max           largest sample
    ROLE.control_bytes_sd, ...       standard deviation over messages, where an engine has it
    wait_ms.mean, .p50, .p99, .max   from arrival to delivery
    held.mean, held.max              messages held back by a member, over the samples
    tt.mean, tt.max                  entries of the super peers' translation tables
    promise_violations               deliveries that break the order that the protocol itself
                                     promises; 0 where it promises none
    violations.by_delivery           deliveries before a cause, by causality, whatever is promised:
                                     before what the sender had been handed or had sent, ...
    violations.by_receipt            ... before what had arrived at the sender or was sent by it
    violations.checked               deliveries that were looked at for these three
    lemma3.missing, lemma3.extra     bits that Evropeytsev et al.'s Lemma 3 wants, and forbids
    snapshots.started, .completed    snapshots, and those of which all parts were known at the end
    snapshots.inconsistent           those whose states or channels cannot have been
    snapshots.markers, .marker_bytes copies of markers sent, and their bytes
    snapshots.stamp_bytes            bytes that copies of messages carry for the algorithm
    snapshots.duration_s, .in_channels
                                     means of the complete: seconds until the last part was known,
                                     messages recorded as under way
    false_causality.RULE.ordered, .false_pairs, .missed_pairs, .causal

A figure that does not apply is absent, never zero. A figure that an engine cannot count is absent
too, and `Result.caveats` says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from antecede.core.protocols import Relation
from antecede.lab.simulate.config.model import Scenario
from antecede.lab.simulate.outputs.global_states import RecordedState

VIOLATION_METRICS = (
    "promise_violations",
    "violations.by_delivery",
    "violations.by_receipt",
    "violations.checked",
)
"""Figures of deliveries before a cause, the same from every engine that can look for causes."""


class Measures(NamedTuple):
    """Selection of what a compiled engine counts; the readable one counts everything.

    Other figures are absent. Cost of each: `python -m bench.simulators`.
    """

    sizes: bool = True  # control bytes by the source's accounting; in a hierarchy also entropy
    encoded: bool = True  # control bytes on the wire
    violations: bool = (
        True  # deliveries before a cause; in a hierarchy also IDR's bytes and Lemma 3
    )
    ds: bool = True  # bytes of DS among external peers
    storage: bool = True  # samples of what members keep and hold back


EVERYTHING = Measures()
NOTHING = Measures(False, False, False, False, False)
NOT_SELECTED = "not asked for"


class Result(NamedTuple):
    """One run."""

    scenario: Scenario
    seed: int
    engine: str
    """"reference" or "compiled": figures are the same."""
    figures: Mapping[str, float]
    series: Mapping[str, Sequence[float]] = {}
    """Storage and messages held over time: name -> a value a sample; "time_s" has the times."""
    relation: Relation | None = None
    """Order that the protocol promises."""
    caveats: Mapping[str, str] = {}
    """Figures that apply and are absent, or were counted in part: name -> why."""
    snapshots: Sequence[RecordedState] = ()
    """Global states that were recorded meanwhile, each judged."""
