"""Causal violations of a run, and bits that violate Lemma 3 (Evropeytsev et al. 2016).

The causal past of a message is a bit mask of messages (`lab.check.causal_past`, which tests compare
with `core.oracle.history`). A delivery is a violation if the member lacks a message of this past
that is for it. Control information is not used. Up to `FULL` messages every message is a bit. Above
that `SAMPLE_SIZE` random messages are: every delivery is checked, but only against these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from antecede.core.clocks import positions
from antecede.core.protocols import Relation
from antecede.lab.check import CausalPasts
from antecede.lab.simulate.outputs.recording import DELIVERED, RELEASED, SENT, Recording
from antecede.lab.simulate.outputs.result import VIOLATION_METRICS
from antecede.lab.simulate.random_streams import Stream, draw_array, make_key

FULL = 20_000
SAMPLE_SIZE = 512


class ViolationWitness(NamedTuple):
    """Delivery of `message` before `missing` of its causal past."""

    time_us: int
    member: int
    message: int
    missing: int


class DeliveryViolations(NamedTuple):
    """Causal violations of a run."""

    violations: int  # Deliveries before a cause
    checked: int  # Checked deliveries, without incomplete ones
    witness: ViolationWitness | None  # The first violation
    is_complete: bool  # True if every message was considered as a cause


def find_violations(
    run: Recording,
    relation: Relation | None = None,
    max_messages: int = FULL,
    outcomes: list[bool] | None = None,
) -> DeliveryViolations:
    """Return the violations of a relation (None: the promised one).

    Above `max_messages` messages, causes are sampled. `outcomes` gets a boolean per checked
    delivery.
    """
    chosen = _choose_messages(run, max_messages)
    past = _make_pasts(run, relation or run.relation, chosen)
    needed = make_cause_filter(run, relation or run.relation, chosen)
    done = [0] * run.config.topology.size
    early = checked = 0
    witness = None
    for time_us, kind, member, message in run.events():
        past.follow(kind, member, message, run.parents[message])
        if kind in (DELIVERED, RELEASED):
            missing = past.past[message] & needed(member, message) & ~done[member]
            if kind == DELIVERED:
                checked += 1
                early += missing > 0
                if outcomes is not None:
                    outcomes.append(missing > 0)
                if missing and witness is None:
                    first = chosen[(missing & -missing).bit_length() - 1]
                    witness = ViolationWitness(time_us, member, message, first)
            done[member] |= past.bit[message]
    return DeliveryViolations(early, checked, witness, len(chosen) == len(run.sender))


def check_recording(
    run: Recording, max_messages: int = FULL
) -> tuple[dict[str, float], dict[str, str]]:
    """Return the metrics VIOLATION_METRICS, whatever the protocol promises, and caveats by name."""
    relations = (run.relation, Relation.BY_DELIVERY, Relation.BY_RECEIPT)
    found = {
        relation: find_violations(run, relation, max_messages)
        for relation in dict.fromkeys(relations)
    }
    counts: list[float] = [found[relation].violations for relation in relations]
    promised = found[run.relation]
    figures = dict(zip(VIOLATION_METRICS, (*counts, promised.checked), strict=True))
    caveat = (
        f"only {min(SAMPLE_SIZE, len(run.sender)):,} of {len(run.sender):,} messages, a sample, "
    )
    caveat += "were checked as causes: there may be more"
    return figures, {} if promised.is_complete else dict.fromkeys(VIOLATION_METRICS[:3], caveat)


def compute_pasts(run: Recording, relation: Relation | None = None) -> CausalPasts:
    """Return the causal past and the immediate dependencies of every message, as masks of all."""
    past = _make_pasts(run, relation or run.relation, range(len(run.sender)))
    for _, kind, member, message in run.events():
        past.follow(kind, member, message, run.parents[message])
    return past


def _make_pasts(run: Recording, relation: Relation, chosen: Sequence[int]) -> CausalPasts:
    bit = [0] * len(run.sender)
    for at, message in enumerate(chosen):
        bit[message] = 1 << at
    return CausalPasts(relation, run.config.topology.size, bit)


def count_disagreements(run: Recording) -> int:
    """Return the number of deliveries out of the order of the member with most deliveries."""
    orders: list[list[int]] = [[] for _ in range(run.config.topology.size)]
    for _, member, message in run.deliveries():
        orders[member].append(message)
    longest = max(orders, key=lambda order: len(order))
    position = {message: at for at, message in enumerate(longest)}
    found = 0
    for order in orders:
        newest = -1
        for message in order:
            at = position.get(message, newest)
            found += at < newest
            newest = max(newest, at)
    return found


def check_lemma_3(run: Recording) -> tuple[int, int]:
    """Return the numbers of missing and superfluous bits of DV (Evropeytsev et al. 2016, Lemma 3).

    A bit in an internal peer's vector is an immediate dependency, the sender's `Last` excepted.
    """
    immediate, before = compute_pasts(run).immediate, _find_previous(run)
    at_number = {(sent.super_peer, sent.number): sent.message for sent in run.numbered_messages}
    missing = extra = 0
    for group, _, message, (base, bits), own in run.numbered_messages:
        if not own:
            continue
        named = 0
        for number in positions(base, bits):
            named |= 1 << at_number[group, number]
        wanted = immediate[message] & ~before[message]
        missing += (wanted & ~named).bit_count()
        extra += (named & ~wanted).bit_count()
    return missing, extra


def _find_previous(run: Recording) -> list[int]:
    newest: dict[int, int] = {}
    found = [0] * len(run.sender)
    for _, kind, member, message in run.events():
        if kind == SENT:
            found[message] = newest.get(member, 0)
            newest[member] = 1 << message
    return found


def _choose_messages(run: Recording, max_messages: int) -> list[int]:
    count = len(run.sender)
    if count <= max_messages:
        return list(range(count))
    words = draw_array(make_key(run.seed, Stream.SAMPLE), np.arange(count))
    chosen: list[int] = sorted(np.argsort(words, kind="stable")[:SAMPLE_SIZE].tolist())
    return chosen


def make_cause_filter(
    run: Recording, relation: Relation, chosen: Sequence[int]
) -> Callable[[int, int], int]:
    """Return (member, message) -> the causes that the member must have before the message.

    They are a mask of the chosen messages that are for the member. By topic (Nakayama 2017), only
    those with a topic in common with the message that the member subscribes to.
    """
    size = run.config.topology.size
    addressed, own, common = [0] * size, [0] * size, 0
    about: dict[str, int] = {}
    for at, message in enumerate(chosen):
        given = run.addressees[message]
        for topic in run.topics[message]:
            about[topic] = about.get(topic, 0) | 1 << at
        if run.sent_us[message] is None:
            continue
        if given is None:
            common |= 1 << at
            own[run.sender[message]] |= 1 << at
        for member in given or ():
            addressed[member] |= 1 << at
    masks = [addressed[member] | (common & ~own[member]) for member in range(size)]
    if relation is not Relation.BY_TOPIC:
        return lambda member, message: masks[member]

    def in_common(member: int, message: int) -> int:
        shared = 0
        for topic in run.subscriptions[member].intersection(run.topics[message]):
            shared |= about.get(topic, 0)
        return masks[member] & shared

    return in_common
