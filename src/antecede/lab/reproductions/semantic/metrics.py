"""Metrics of the study of Bhavanasi and Iyer: waits, held messages, bytes, pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from antecede.core.protocols import MessageId, SbMessage, control_bytes
from antecede.lab.reproductions.framework.study import Metrics
from antecede.lab.reproductions.semantic.lists import compute_held_metrics, compute_list_metrics
from antecede.lab.reproductions.semantic.orders import Outcome
from antecede.lab.simulate import US, Ints, Network
from antecede.lab.simulate.outputs import wait_figures

INTEGER_BYTES, PAIR_BYTES = 4, 8
"""Accounting of the sources: an entry of a vector, a dependency of IDR."""


def compute_metrics(outcome: Outcome, network: Network, warm_us: int = 0) -> Metrics:
    """Return the metrics of an outcome. ORDER is sb, causal, total or sequencer.

    - ORDER.wait_ms.mean, .p50, .p99, .max: waits of copies
    - ORDER.waited: share of copies that waited
    - ORDER.longer: share of copies that waited longer than under S_b
    - ORDER.held: messages held by a member, mean over time
    - ORDER.held_max: largest number of messages held by a member
    - ORDER.bytes: bytes of a message (bss and idr for causal order)
    - pairs: pairs ordered by total order; pairs.causal, pairs.replies
    """
    sent, members = len(outcome.sent_us), network.size
    if not sent or members < 2:
        return {"sent": sent, "members": members}
    measured_s = max(1, int(outcome.sent_us[-1]) - warm_us) / US
    back = np.searchsorted(
        outcome.sent_us, outcome.sent_us - round(network.links.delay.mean_s * US)
    )
    # Mean number of messages sent within a mean delay before a message.
    under_way = float((np.arange(sent) - back)[outcome.sent_us >= warm_us].mean())
    answered = [
        (parent, reply) for reply, parents in enumerate(outcome.parents) for parent in parents
    ]
    own = sum(bool(outcome.sender[parent] == outcome.sender[reply]) for parent, reply in answered)
    figures: dict[str, float | Sequence[float]] = {
        "sent": sent,
        "members": members,
        "reply_fraction": sum(map(bool, outcome.parents)) / sent,
        "reply_fraction.own": own / max(1, len(answered)),
        "under_way": under_way,
        **compute_held_metrics(outcome),
        **compute_list_metrics(outcome),
        **_count_pairs(outcome),
        **_compute_sizes(outcome, members),
        **_compute_sequencer_metrics(outcome, network, warm_us),
    }
    for order, waits in outcome.waits.items():
        figures |= _compute_wait_metrics(order, waits, outcome.copies)
        figures[f"{order}.held"] = int(waits.sum()) / US / members / measured_s
        if order in outcome.longer:
            figures[f"{order}.longer"] = outcome.longer[order] / max(1, outcome.copies)
    return figures


def _compute_wait_metrics(order: str, waits: Ints, copies: int) -> dict[str, float]:
    if not copies:
        return {}
    all_us = np.concatenate([np.zeros(copies - len(waits), np.int64), waits])
    named = {f"{order}.{name}": value for name, value in wait_figures(all_us).items()}
    return {**named, f"{order}.waited": len(waits) / copies}


def _count_pairs(outcome: Outcome) -> dict[str, float]:
    above: list[int] = []
    for parents in outcome.parents:
        mine = 0
        for parent in parents:
            mine |= above[parent] | 1 << parent
        above.append(mine)
    count = len(above)
    return {
        "pairs": count * (count - 1) // 2,
        "pairs.causal": int(outcome.past.sum()),
        "pairs.replies": sum(bits.bit_count() for bits in above),
    }


def _compute_sizes(outcome: Outcome, members: int) -> dict[str, float]:
    root = MessageId(0, 1)
    sizes = [control_bytes(SbMessage(0, 1, (root,) * len(one), None)) for one in outcome.parents]
    return {
        "sb.bytes": float(np.mean(sizes)),
        "bss.bytes": INTEGER_BYTES * members,
        "idr.bytes": PAIR_BYTES * float(outcome.immediate.mean()),
    }


def _compute_sequencer_metrics(
    outcome: Outcome, network: Network, warm_us: int
) -> dict[str, float]:
    """Return the waits if the first observer numbers messages in the order of arrival."""
    at = outcome.observers
    first_arrived = outcome.arrived_us[:, 0]
    order = np.argsort(first_arrived, kind="stable")
    source, *others = at.tolist()
    notes = (
        network.send_control(k, now, source, others)
        for k, now in enumerate(first_arrived[order].tolist())
    )
    announced = np.array([[one.arrival_us for one in copies] for copies in notes], dtype=np.int64)
    announced = np.column_stack((first_arrived[order], announced))
    arrived = outcome.arrived_us[order]
    wait = np.maximum.accumulate(np.maximum(arrived, announced), axis=0) - arrived
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    inverted = sum(
        place[parent] > place[reply]
        for reply, parents in enumerate(outcome.parents)
        for parent in parents
    )
    counted = (outcome.sender[order][:, None] != at) & (outcome.sent_us[order] >= warm_us)[:, None]
    mine = wait[counted]
    replies = sum(map(len, outcome.parents))
    return {
        **_compute_wait_metrics("sequencer", np.sort(mine[mine > 0]), len(mine)),
        "sequencer.inverted": int(inverted) / max(1, replies),
    }
