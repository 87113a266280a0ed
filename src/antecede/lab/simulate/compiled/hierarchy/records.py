"""Records of the compiled hierarchy's arrays (`hierarchy.state`), and names of its sets."""

from __future__ import annotations

import numpy as np

from antecede.lab.simulate.compiled.records import HalfWord

NOWHERE = np.uint64(2**32 - 1)  # in place of a group: an external peer
SAFE, NONE = np.uint64(0), np.uint64(1)

HAVE, DEPENDENCIES, AWAITED, IDR_DEPENDENCIES = (np.uint64(k) for k in range(4))
"""Sets of a process: RV, what was delivered or sent, or what a super peer numbered; DV or CI; what
held messages wait for; what IDR's CI would be, where `Measures.violations` is asked for."""
AT_INTERNAL, AT_EXTERNAL, AT_SUPER, AT_IDR, AT_HELD, AT_TT = (np.uint64(k) for k in range(6))
"""Columns of `State.storage`."""


class HierarchyCounters:
    """Scalars of a run."""

    arrivals: np.uint64  # copies that arrived
    deliveries: np.uint64
    counted: np.uint64  # deliveries of messages that count
    sent: np.uint64
    sampled: np.uint64
    logged: np.uint64
    transmissions: np.uint64  # transmissions that were logged
    acknowledgements: np.uint64  # acknowledgements
    used: np.uint64  # used rows of `needs`
    free: np.uint64  # first unused node, 0: none
    fresh: np.uint64  # first node that was never used
    ack_free: np.uint64
    ack_fresh: np.uint64
    violations: np.uint64  # deliveries before a cause
    extra: np.uint64  # bits that Lemma 3 forbids
    missing: np.uint64  # bits that Lemma 3 wants
    is_full: np.uint64  # 1: `needs` has no room
    longest_wait_us: np.uint64
    waited_us: np.uint64  # sum of waits


class Process:
    """A process; what every delivery needs comes first, in one line of the cache."""

    group: np.uint64  # its group or NOWHERE
    low: np.uint64  # first block with a bit in DV, CI or IDR's CI
    high: np.uint64  # block after the last such block
    newest: np.uint64  # highest number in RV
    deliveries_since_send: np.uint64  # deliveries since it last sent or acknowledged
    held: np.uint64  # messages held back, own ones not
    complete_prefix: np.uint64  # RV has all numbers up to this
    kind: np.uint64  # of its channels
    location: np.uint64  # row of `base`
    newest_up: np.uint64  # arrival of the last copy on the FIFO channel to the super peer
    newest_down: np.uint64  # arrival of the last copy on the FIFO channel from it
    forwarded: np.uint64  # messages of an internal peer that were forwarded
    lower_bound: np.uint64  # what its super peer knows
    announced_bound: np.uint64  # the floor that it told last
    sent: np.uint64  # messages that it sent
    known_senders: np.uint64  # external peers of whom an external peer has something


class HierarchyMessage:
    """A message, but for `own`."""

    sender: HalfWord  # address
    seq: HalfWord  # the sender's number for it, from 1
    before: HalfWord  # 1 + the sender's message before it, 0: none
    after: HalfWord  # 1 + the sender's message after it, 0: none
    row: HalfWord  # first row of `needs`
    bottom: HalfWord  # block of that row
    rows: HalfWord
    far_before: HalfWord  # `before`, where that is outside of the rows
    lower_bound: HalfWord  # that it carries
    own: HalfWord  # not of this message: messages of a group in the order of their numbers
    top_announced: HalfWord  # highest number in its I


class Group:
    """A super peer."""

    first: np.uint64  # address of the first internal peer
    own_first: np.uint64  # where its part of `Message.own` begins
    last_number: np.uint64  # last number given
    own_count: np.uint64  # messages of its own numbered
    least_bound: np.uint64  # least floor
    translated: np.uint64  # entries of TT
    lowest_bit: np.uint64  # scratch of spans
    highest_bit: np.uint64  # the same; 0 between uses
    touched: np.uint64  # the same, by place: a super peer that has a span


class ByteSums:
    """Bytes of the messages of a role that count."""

    count: np.int64
    total: np.int64
    squares: np.int64
    wire: np.int64


class ReceivedNumbers:
    """VTx of a process for a super peer."""

    own_complete: HalfWord  # so many of its own messages, from the first on, are delivered
    top: HalfWord  # highest number that is set


class HierarchyNode:
    """A message that is held back."""

    after: HalfWord  # next node or 0
    reason: HalfWord  # the message that it waits for
    message: HalfWord
    since: HalfWord  # arrival in us, modulo 2^32


class Ack:
    """An acknowledgement under way."""

    peer: np.uint64  # of an unused one the next unused
    seq: np.uint64  # the peer's last message's number
    lower_bound: np.uint64


class StorageSums:
    """Storage of the members of a role at a sample."""

    total: np.int64
    maximum: np.int64
