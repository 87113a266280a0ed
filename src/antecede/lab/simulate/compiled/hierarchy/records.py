"""Records of the compiled hierarchy's arrays (`hierarchy.state`), and names of its sets."""

from __future__ import annotations

import numpy as np

from antecede.lab.simulate.compiled.records import Half

NOWHERE = np.uint64(2**32 - 1)  # in place of a group: an external peer
SAFE, NONE = np.uint64(0), np.uint64(1)

HAVE, KEPT, AWAITED, SHADOW = (np.uint64(k) for k in range(4))
"""Sets of a process: RV, what was delivered or sent, or what a super peer numbered; DV or CI; what
held messages wait for; what IDR's CI would be, where `Measures.causes` is asked for."""
AT_INTERNAL, AT_EXTERNAL, AT_SUPER, AT_IDR, AT_HELD, AT_TT = (np.uint64(k) for k in range(6))
"""Columns of `State.stored`."""


class Counters:
    """Scalars of a run."""

    arrivals: np.uint64  # copies that arrived
    deliveries: np.uint64
    counted: np.uint64  # deliveries of messages that count
    sent: np.uint64
    sampled: np.uint64
    logged: np.uint64
    carried: np.uint64  # transmissions that were logged
    notes: np.uint64  # acknowledgements
    used: np.uint64  # used rows of `needs`
    free: np.uint64  # first unused node, 0: none
    fresh: np.uint64  # first node that was never used
    ack_free: np.uint64
    ack_fresh: np.uint64
    early: np.uint64  # deliveries before a cause
    extra: np.uint64  # bits that Lemma 3 forbids
    missing: np.uint64  # bits that Lemma 3 wants
    full: np.uint64  # 1: `needs` has no room
    longest_wait_us: np.uint64
    waited_us: np.uint64  # sum of waits


class Process:
    """A process; what every delivery needs comes first, in one line of the cache."""

    home: np.uint64  # its group or NOWHERE
    low: np.uint64  # first block with a bit in DV, CI or IDR's CI
    high: np.uint64  # block after the last such block
    newest: np.uint64  # highest number in RV
    silent: np.uint64  # deliveries since it last sent or acknowledged
    held: np.uint64  # messages held back, own ones not
    prefix: np.uint64  # RV has all numbers up to this
    kind: np.uint64  # of its channels
    stand: np.uint64  # row of `base`
    newest_up: np.uint64  # arrival of the last copy on the FIFO channel to the super peer
    newest_down: np.uint64  # arrival of the last copy on the FIFO channel from it
    taken: np.uint64  # messages of an internal peer that were forwarded
    floor: np.uint64  # what its super peer knows
    told: np.uint64  # the floor that it told last
    spoken: np.uint64  # messages that it sent
    heard: np.uint64  # external peers of whom an external peer has something


class Message:
    """A message, but for `own`."""

    sender: Half  # address
    seq: Half  # the sender's number for it, from 1
    before: Half  # 1 + the sender's message before it, 0: none
    after: Half  # 1 + the sender's message after it, 0: none
    row: Half  # first row of `needs`
    bottom: Half  # block of that row
    rows: Half
    far: Half  # `before`, where that is outside of the rows
    floor: Half  # that it carries
    own: Half  # not of this message: messages of a group in the order of their numbers
    top_told: Half  # highest number in its I


class Group:
    """A super peer."""

    first: np.uint64  # address of the first internal peer
    own_first: np.uint64  # where its part of `Message.own` begins
    given: np.uint64  # last number given
    owned: np.uint64  # messages of its own numbered
    lowest: np.uint64  # least floor
    translated: np.uint64  # entries of TT
    lowest_bit: np.uint64  # scratch of spans
    highest_bit: np.uint64  # the same; 0 between uses
    touched: np.uint64  # the same, by place: a super peer that has a span


class Sums:
    """Bytes of the messages of a role that count."""

    count: np.int64
    total: np.int64
    squares: np.int64
    encoded: np.int64


class Known:
    """VTx of a process for a super peer."""

    complete: Half  # so many of its own messages, from the first on, are delivered
    top: Half  # highest number that is set


class Node:
    """A message that is held back."""

    after: Half  # next node or 0
    reason: Half  # the message that it waits for
    message: Half
    since: Half  # arrival in us, modulo 2^32


class Ack:
    """An acknowledgement under way."""

    peer: np.uint64  # of an unused one the next unused
    seq: np.uint64  # the peer's last message's number
    floor: np.uint64


class Stored:
    """Storage of the members of a role at a sample."""

    total: np.int64
    most: np.int64
