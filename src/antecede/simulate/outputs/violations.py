"""What a run did wrong: deliveries before a cause, and bits that Evropeytsev et al.'s Lemma 3
forbids.

Theory of operation
-------------------
The causal past of a message is a bit mask of messages, as in `oracle.history` (tests hold the
two together): what its sender knew when it sent it, with the pasts of that. A delivery is early
when the member lacks a message of this past that is for it. Nothing that a protocol carries is
looked at. Up to `FULL` messages every message is a bit. Above, `SAMPLED` messages are, chosen by
the seed: every delivery is still looked at, but only these are missed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from antecede.clocks.bits import positions
from antecede.protocols.base import Relation
from antecede.simulate.outputs.recording import ARRIVED, DELIVERED, RELEASED, SENT, Recording
from antecede.simulate.outputs.result import JUDGED
from antecede.simulate.random_streams import Stream, draws, key

FULL = 20_000
SAMPLED = 512


class Witness(NamedTuple):
    """`message` was delivered at `member` at a time, and `missing` of its past was not there."""

    time_us: int
    member: int
    message: int
    missing: int


class Verdict(NamedTuple):
    """What was found."""

    early: int
    """Deliveries before a cause."""
    checked: int
    """Deliveries that were looked at; those marked as released are not."""
    witness: Witness | None
    """The first."""
    full: bool
    """Whether every message was looked for as a cause."""


class Judged(NamedTuple):
    """Deliveries before a cause of a run, as figures."""

    figures: dict[str, float]
    """By the names of `result.JUDGED`."""
    caveats: dict[str, str]
    """What must be said of them, by the same names; see `result.Result`."""


class Pasts(NamedTuple):
    """By message, masks over all messages (bit m: message m)."""

    past: list[int]
    immediate: list[int]
    """What of the past is in the past of nothing else of it."""


def violations(
    run: Recording,
    relation: Relation | None = None,
    most: int = FULL,
    each: list[bool] | None = None,
) -> Verdict:
    """Return the deliveries that came too early under a relation (None: the promised one).

    At most `most` messages are all looked for as causes, of more a sample. `each` is given a
    word for every delivery that is looked at, in their order: whether it was too early.
    """
    chosen = _chosen(run, most)
    past = _Past(run, relation or run.relation, chosen)
    addressed, shared = _masks(run, chosen, relation or run.relation)
    done = [0] * run.scenario.topology.size
    early = checked = 0
    witness = None
    for time_us, kind, member, message in run.happenings():
        past.follow(kind, member, message)
        if kind in (DELIVERED, RELEASED):
            missing = past.of[message] & addressed[member] & ~done[member]
            missing &= shared(member, message)
            if kind == DELIVERED:
                checked += 1
                early += missing > 0
                if each is not None:
                    each.append(missing > 0)
                if missing and witness is None:
                    first = chosen[(missing & -missing).bit_length() - 1]
                    witness = Witness(time_us, member, message, first)
            done[member] |= past.bit[message]
    return Verdict(early, checked, witness, len(chosen) == len(run.sender))


def judged(run: Recording, most: int = FULL) -> Judged:
    """Return what broke the promise, and what came before a cause by delivery and by receipt.

    Causality counts whatever the protocol promises, also where it promises nothing.
    """
    relations = (run.relation, Relation.BY_DELIVERY, Relation.BY_RECEIPT)
    found = {relation: violations(run, relation, most) for relation in dict.fromkeys(relations)}
    counts = [found[relation].early for relation in relations]
    whole = found[run.relation]
    names = dict.fromkeys(JUDGED[:3]) if not whole.full else {}
    said = f"{min(SAMPLED, len(run.sender)):,} of {len(run.sender):,} messages, drawn, were looked "
    said += "for as causes: there may be more"
    return Judged(
        dict(zip(JUDGED, (*counts, whole.checked), strict=True)), dict.fromkeys(names, said)
    )


def pasts(run: Recording, relation: Relation | None = None) -> Pasts:
    """Return the causal past and the immediate dependencies of every message."""
    past = _Past(run, relation or run.relation, range(len(run.sender)))
    for _, kind, member, message in run.happenings():
        past.follow(kind, member, message)
    return Pasts(past.of, past.immediate)


def disagreements(run: Recording) -> int:
    """Return the deliveries that come before a message which another member delivers first.

    The members' deliveries are compared with those of the member that has most: a delivery
    counts when that member delivers it before something that is delivered earlier here.
    """
    orders: list[list[int]] = [[] for _ in range(run.scenario.topology.size)]
    for _, member, message in run.deliveries():
        orders[member].append(message)
    longest = max(orders, key=lambda order: len(order))
    place = {message: at for at, message in enumerate(longest)}
    found = 0
    for order in orders:
        newest = -1
        for message in order:
            at = place.get(message, newest)
            found += at < newest
            newest = max(newest, at)
    return found


def lemma_3(run: Recording) -> tuple[int, int]:
    """Return how many bits of DV are missing and how many are too many (Evropeytsev et al. 2016,
    Lemma 3).

    Of the vectors that internal peers make: a bit stands exactly for an immediate dependency,
    less the sender's previous message, which has none (it is `Last`).
    """
    immediate, before = pasts(run).immediate, _previous(run)
    at_number = {(one.super_peer, one.number): one.message for one in run.numbered}
    missing = extra = 0
    for group, _, message, (base, bits), own in run.numbered:
        if not own:
            continue
        named = 0
        for number in positions(base, bits):
            named |= 1 << at_number[group, number]
        wanted = immediate[message] & ~before[message]
        missing += (wanted & ~named).bit_count()
        extra += (named & ~wanted).bit_count()
    return missing, extra


def _previous(run: Recording) -> list[int]:
    """Return the bit of the message that each message's sender sent before it; 0: none."""
    newest: dict[int, int] = {}
    found = [0] * len(run.sender)
    for _, kind, member, message in run.happenings():
        if kind == SENT:
            found[message] = newest.get(member, 0)
            newest[member] = 1 << message
    return found


def _chosen(run: Recording, most: int) -> list[int]:
    """Return the messages that are looked for, ascending."""
    count = len(run.sender)
    if count <= most:
        return list(range(count))
    words = draws(key(run.seed, Stream.SAMPLE), np.arange(count))
    chosen: list[int] = sorted(np.argsort(words, kind="stable")[:SAMPLED].tolist())
    return chosen


class _Past:
    """Follows a run and says what of the chosen messages is in the past of each message."""

    def __init__(self, run: Recording, relation: Relation, chosen: list[int] | range) -> None:
        self.run, self.relation = run, relation
        self.bit = [0] * len(run.sender)
        for at, message in enumerate(chosen):
            self.bit[message] = 1 << at
        self.of = [0] * len(run.sender)
        self.immediate = [0] * len(run.sender)
        size = run.scenario.topology.size
        self.known, self.frontier = [0] * size, [0] * size
        """By member: what it knows of, with the pasts; what of that is before nothing else."""
        self.learns = {
            Relation.NONE: (),
            Relation.FIFO: (SENT,),
            Relation.BY_DELIVERY: (SENT, DELIVERED, RELEASED),
            Relation.BY_RECEIPT: (SENT, ARRIVED, DELIVERED, RELEASED),
            Relation.BY_TOPIC: (SENT, ARRIVED, DELIVERED, RELEASED),
            Relation.BY_REPLY: (),
            Relation.TOTAL: (SENT, DELIVERED, RELEASED),
        }[relation]

    def follow(self, kind: int, member: int, message: int) -> None:
        """Take in what happened."""
        if kind == SENT:
            if self.relation is Relation.BY_REPLY:
                self._answer(message)
            else:
                self.of[message] = self.known[member]
                self.immediate[message] = self.frontier[member]
        bit = self.bit[message]
        if kind in self.learns and not (bit and self.known[member] & bit):
            self.known[member] |= self.of[message] | bit
            self.frontier[member] = self.frontier[member] & ~self.of[message] | bit

    def _answer(self, message: int) -> None:
        parents = self.run.parents[message]
        for parent in parents:
            self.of[message] |= self.of[parent] | self.bit[parent]
        above = 0
        for parent in parents:
            above |= self.of[parent]
        for parent in parents:
            self.immediate[message] |= self.bit[parent] & ~above


class _Shared:
    """Masks of messages with a topic in common that a member subscribes to (Nakayama 2017)."""

    def __init__(self, run: Recording, chosen: list[int]) -> None:
        self.run = run
        self.about: dict[str, int] = {}
        for at, message in enumerate(chosen):
            for topic in run.topics[message]:
                self.about[topic] = self.about.get(topic, 0) | 1 << at

    def __call__(self, member: int, message: int) -> int:
        mask = 0
        for topic in self.run.topics[message]:
            if topic in self.run.subscriptions[member]:
                mask |= self.about.get(topic, 0)
        return mask


def _masks(
    run: Recording, chosen: list[int], relation: Relation
) -> tuple[list[int], Callable[[int, int], int]]:
    """Return by member what is for it, and what says which causes count for a message."""
    everybody = (1 << len(chosen)) - 1
    size = run.scenario.topology.size
    addressed, own, common = [0] * size, [0] * size, 0
    for at, message in enumerate(chosen):
        given = run.addressed[message]
        if run.sent_us[message] is None:
            continue
        if given is None:
            common |= 1 << at
            own[run.sender[message]] |= 1 << at
        for member in given or ():
            addressed[member] |= 1 << at
    masks = [addressed[member] | (common & ~own[member]) for member in range(size)]
    if relation is Relation.BY_TOPIC:
        return masks, _Shared(run, chosen)
    return masks, lambda member, message: everybody
