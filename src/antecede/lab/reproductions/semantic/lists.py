"""Ordering lists of S_b and its store of held messages (Bhavanasi and Iyer, VI.B to VI.D).

A node is a range of consecutive numbers of one sender. Each pair of delivered neighbours saves a
node, so the number of nodes follows from the deliveries alone (`compute_list_metrics`).
`compute_extreme_metrics` uses a member of the protocol and the arrivals of VI.D.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from antecede.core.clocks import NODE_BYTES, nodes
from antecede.core.protocols import ID_BYTES, SEQNO_BYTES, MessageId, SbMessage, SemanticOrder
from antecede.lab.reproductions.semantic.orders import ORDERS, Outcome
from antecede.lab.simulate import Ints, Stream, draw_array, make_key

POINTS = 60
ARRIVALS = ("in order", "newest first", "shuffled", "every second first", "root last")


# -- metrics of the deliveries of an outcome ---------------------------------------------------


def compute_list_metrics(outcome: Outcome) -> dict[str, float | list[float]]:
    """Return nodes, delivered messages, known senders and storage of the observers.

    Curves are means over observers. Nodes and rows are the largest at any time. Bytes are those of
    Bhavanasi and Iyer: 8 per node, 16 per row, 4 for the counter.
    """
    count = len(outcome.sent_us)
    if not count:
        return {}
    delivered = outcome.delivered_us["sb"]
    pairs = np.sort(_find_pair_times(outcome, delivered), axis=0)
    heard = np.sort(_find_first_times(outcome, delivered), axis=0)
    done = np.sort(delivered, axis=0)
    most = excess = rows = 0
    for place in range(delivered.shape[1]):
        moments = done[:, place]
        there = np.searchsorted(moments, moments, side="right")
        listed = there - np.searchsorted(pairs[:, place], moments, side="right")
        best = np.searchsorted(heard[:, place], moments, side="right")
        most, excess = max(most, int(listed.max())), max(excess, int((listed - best).max()))
        held = count_held(outcome.arrived_us[:, place], delivered[:, place])
        rows = max(rows, int(held.max()))
    at = np.linspace(0, int(outcome.sent_us[-1]), POINTS + 1)[1:].astype(np.int64)
    n = delivered.shape[1]
    received = [_count_until(done, t) / n for t in at]
    listed_mean = [(_count_until(done, t) - _count_until(pairs, t)) / n for t in at]
    held_mean = [
        (_count_until(np.sort(outcome.arrived_us, axis=0), t) - _count_until(done, t)) / n
        for t in at
    ]
    storage = [
        SEQNO_BYTES + NODE_BYTES * a + 2 * ID_BYTES * b
        for a, b in zip(listed_mean, held_mean, strict=True)
    ]
    return {
        "nodes.most": most,
        "nodes.excess": excess,
        "rows.most": rows,
        "storage_bytes": float(np.mean(storage)),
        "curve.received": received,
        "curve.nodes": listed_mean,
        "curve.best": [_count_until(heard, t) / n for t in at],
    }


def count_held(arrived: Ints, delivered: Ints) -> Ints:
    """Return the number of held messages after each arrival of one that waits."""
    waited = delivered > arrived
    came, went = np.sort(arrived[waited]), np.sort(delivered[waited])
    if not len(came):
        return np.zeros(1, dtype=np.int64)
    here, gone = (np.searchsorted(moments, came, side="right") for moments in (came, went))
    return np.asarray(here - gone, dtype=np.int64)


def compute_held_metrics(outcome: Outcome) -> dict[str, float]:
    """Return the largest number of messages that an observer holds, by order."""
    columns = range(len(outcome.observers)) if len(outcome.sent_us) else ()
    return {
        f"{order}.held_max": max(
            (
                int(count_held(outcome.arrived_us[:, c], outcome.delivered_us[order][:, c]).max())
                for c in columns
            ),
            default=0,
        )
        for order in ORDERS
    }


def _count_until(columns: Ints, time_us: int) -> int:
    return int((columns <= time_us).sum())


def _find_pair_times(outcome: Outcome, delivered: Ints) -> Ints:
    """Return delivery times of the later of two consecutive messages [pairs, observers]."""
    order = np.argsort(outcome.sender, kind="stable")
    same = np.diff(outcome.sender[order]) == 0
    one, next_one = delivered[order[:-1][same]], delivered[order[1:][same]]
    return np.asarray(np.maximum(one, next_one), dtype=np.int64)


def _find_first_times(outcome: Outcome, delivered: Ints) -> Ints:
    """Return delivery times of the first message of each sender [senders, observers]."""
    order = np.argsort(outcome.sender, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(outcome.sender[order]) != 0])
    return np.asarray(np.minimum.reduceat(delivered[order], starts, axis=0))


# -- extreme cases of the text -----------------------------------------------------------------


def compute_extreme_metrics(
    arrivals: str, senders: int, each: int, seed: int
) -> dict[str, float | list[int]]:
    """Deliver `each` messages of every sender to one member, in an order of ARRIVALS.

    Messages have no parents, except for "root last": each replies to the message before it, and the
    first message arrives last. Metrics: nodes, rows and bytes (largest and final), and curves.
    """
    member = SemanticOrder(0, range(senders + 1))
    listed, rows, bytes_ = [], [], []
    at_half = senders * ((each + 1) // 2)
    for message in _make_messages(arrivals, senders, each, seed):
        member.receive(message)
        listed.append(sum(map(nodes, member.delivered.values())))
        rows.append(len(member.store.rows))
        bytes_.append(member.storage_bytes())
    step = max(1, len(listed) // POINTS)
    return {
        "nodes.most": max(listed),
        "nodes.end": listed[-1],
        "nodes.half": listed[at_half - 1],
        "received.half": at_half,
        "received.others": senders * each - 1,
        "senders": senders,
        "rows.most": max(rows),
        "rows.end": rows[-1],
        "storage_bytes.most": max(bytes_),
        "curve.received": list(range(1, len(listed) + 1))[step - 1 :: step],
        "curve.nodes": listed[step - 1 :: step],
        "curve.rows": rows[step - 1 :: step],
    }


def _make_messages(arrivals: str, senders: int, each: int, seed: int) -> Iterator[SbMessage]:
    numbers: Sequence[int] = range(1, each + 1)
    if arrivals in ("newest first", "root last"):
        numbers = numbers[::-1]
    elif arrivals == "every second first":
        numbers = [*numbers[::2], *numbers[1::2]]
    everything = [(sender, number) for number in numbers for sender in range(1, senders + 1)]
    if arrivals == "shuffled":
        words = draw_array(make_key(seed, Stream.SAMPLE), np.arange(len(everything)))
        everything = [everything[at] for at in np.argsort(words, kind="stable")]
    elif arrivals == "root last":
        everything.sort(reverse=True)
    for sender, number in everything:
        parents: tuple[MessageId, ...] = ()
        if arrivals == "root last" and (sender, number) != (1, 1):
            before = (sender, number - 1) if number > 1 else (sender - 1, each)
            parents = (MessageId(*before),)
        yield SbMessage(sender, number, parents, None)
