"""Result of a run: metrics by name, the same names from every engine.

Names may start with a role: peer, internal, external, super. "idr" and "ds" are what these
protocols would have sent along the same deliveries of a hierarchy. Means count messages sent from
`warm_s` on.

    sent, arrivals, deliveries       messages, arrived copies, deliveries to applications
    held_at_end, lost, duplicates    never delivered, copies lost, copies duplicated
    ROLE.control_bytes               mean control information per message, the source's accounting
    ROLE.wire_bytes                  mean control information per message on the wire
    ROLE.entropy_bytes               internal bit vectors: log2 of (window over set) / 8
    ROLE.storage_bytes               mean over time and members of storage for ordering
    ROLE.storage_bytes_max           largest sample
    ROLE.control_bytes_sd, ...       standard deviation over messages, if an engine has it
    wait_ms.mean, .p50, .p99, .max   from arrival to delivery
    held.mean, held.max              messages held by a member, over the samples
    tt.mean, tt.max                  entries of the super peers' translation tables
    promise_violations               deliveries that violate the order that the protocol promises;
                                     0 if it promises none
    violations.by_delivery           deliveries before a cause, whatever the protocol promises:
                                     before messages delivered to or sent by the sender
    violations.by_receipt            the same: before messages that arrived at or were sent by the
                                     sender
    violations.checked               deliveries checked for these three
    lemma3.missing, lemma3.extra     bits that violate Evropeytsev et al.'s Lemma 3
    snapshots.started, .completed    snapshots, and those with all parts known at the end
    snapshots.inconsistent           those with contradictory states or channels
    snapshots.markers, .marker_bytes copies of markers sent, and their bytes
    snapshots.stamp_bytes            bytes of the algorithm on copies of messages
    snapshots.duration_s             mean of completed: seconds until the last part was known
    snapshots.in_channels            mean of completed: messages recorded as in flight
    false_causality.RULE.ordered, .false_pairs, .missed_pairs, .causal

A metric that does not apply is absent, never zero. A metric that an engine cannot count is absent
too, and `Result.caveats` has the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from antecede.core.protocols import Relation
from antecede.lab.simulate.config.model import SimulationConfig
from antecede.lab.simulate.outputs.global_states import RecordedState

VIOLATION_METRICS = (
    "promise_violations",
    "violations.by_delivery",
    "violations.by_receipt",
    "violations.checked",
)
"""Metrics of causal violations, the same from every engine that can count them."""


class Measures(NamedTuple):
    """Selection of the metrics of a compiled engine. Cost: `python -m bench.simulators`."""

    sizes: bool = True  # Control bytes by the source's accounting; in a hierarchy also entropy
    encoded: bool = True  # Control bytes on the wire
    violations: bool = (
        True  # deliveries before a cause; in a hierarchy also IDR's bytes and Lemma 3
    )
    """Causal violations; in a hierarchy also IDR's bytes and Lemma 3."""
    ds: bool = True  # Bytes of DS among external peers
    storage: bool = True  # Samples of storage and held messages


EVERYTHING = Measures()
NOTHING = Measures(False, False, False, False, False)
NOT_SELECTED = "not selected"


class Result(NamedTuple):
    """Result of a run."""

    config: SimulationConfig
    seed: int
    engine: str  # "reference" or "compiled". Metrics do not depend on it.
    figures: Mapping[str, float]
    series: Mapping[str, Sequence[float]] = {}
    """Storage and held messages over time: name -> a value per sample. "time_s" has the times."""
    relation: Relation | None = None  # Order that the protocol promises
    caveats: Mapping[str, str] = {}  # Metrics that apply but are absent or partial: name -> reason
    snapshots: Sequence[RecordedState] = ()  # Recorded global states, checked
