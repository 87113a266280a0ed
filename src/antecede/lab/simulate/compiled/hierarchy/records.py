"""Records of the compiled hierarchy's arrays (`hierarchy.state`), and names of its sets."""

from __future__ import annotations

import numpy as np

from antecede.lab.simulate.compiled.records import HalfWord

NOWHERE = np.uint64(2**32 - 1)  # In place of a group: an external peer
SAFE, NONE = np.uint64(0), np.uint64(1)

HAVE, DEPENDENCIES, AWAITED, IDR_DEPENDENCIES = (np.uint64(k) for k in range(4))
"""Sets of a process: RV (delivered, sent, or numbered by a super peer); DV or CI; messages that
held ones wait for; CI under IDR, if `Measures.violations` is selected."""
AT_INTERNAL, AT_EXTERNAL, AT_SUPER, AT_IDR, AT_HELD, AT_TT = (np.uint64(k) for k in range(6))
"""Columns of `State.storage`."""


class HierarchyCounters:
    """Counters of a run."""

    arrivals: np.uint64  # Arrived copies
    deliveries: np.uint64
    counted: np.uint64  # Deliveries of messages that count
    sent: np.uint64
    sampled: np.uint64
    logged: np.uint64
    transmissions: np.uint64  # Logged transmissions
    acknowledgements: np.uint64  # Acknowledgements
    used: np.uint64  # Used rows of `needs`
    free: np.uint64  # First unused node, 0: none
    fresh: np.uint64  # First node that was never used
    ack_free: np.uint64
    ack_fresh: np.uint64
    violations: np.uint64  # Causal violations
    extra: np.uint64  # Bits that Lemma 3 forbids
    missing: np.uint64  # Bits that Lemma 3 requires
    is_full: np.uint64  # 1: `needs` is full
    longest_wait_us: np.uint64
    waited_us: np.uint64  # Sum of waits


class Process:
    """A process. Fields of every delivery come first, in one cache line."""

    group: np.uint64  # Its group or NOWHERE
    low: np.uint64  # First block with a bit in DV, CI or IDR's CI
    high: np.uint64  # Block after the last such block
    newest: np.uint64  # Highest number in RV
    deliveries_since_send: np.uint64  # Deliveries since its last send or acknowledgement
    held: np.uint64  # Held messages, without own ones
    complete_prefix: np.uint64  # RV has all numbers up to this
    kind: np.uint64  # Kind of its channels
    location: np.uint64  # Row of `base`
    newest_up: np.uint64  # Last arrival on the FIFO channel to the super peer
    newest_down: np.uint64  # Last arrival on the FIFO channel from it
    forwarded: np.uint64  # Forwarded messages of an internal peer
    lower_bound: np.uint64  # Lower bound that its super peer knows
    announced_bound: np.uint64  # Last announced lower bound
    sent: np.uint64  # Sent messages
    known_senders: np.uint64  # External peers of which an external peer has a message


class HierarchyMessage:
    """A message, except for `own`."""

    sender: HalfWord  # Address
    seq: HalfWord  # The sender's number, from 1
    before: HalfWord  # 1 + the sender's previous message, 0: none
    after: HalfWord  # 1 + the sender's next message, 0: none
    row: HalfWord  # First row of `needs`
    bottom: HalfWord  # Block of that row
    rows: HalfWord
    far_before: HalfWord  # `before`, if it is outside of the rows
    lower_bound: HalfWord  # Lower bound in the message
    own: HalfWord  # Not of this message: messages of a group in the order of their numbers
    top_announced: HalfWord  # Highest number in its I


class SuperPeerRecord:
    """A super peer."""

    first: np.uint64  # Address of the first internal peer
    own_first: np.uint64  # Start of its part of `HierarchyMessage.own`
    last_number: np.uint64  # Last assigned number
    own_count: np.uint64  # Numbered messages of its own group
    least_bound: np.uint64  # Smallest lower bound of its peers
    translated: np.uint64  # Entries of TT
    lowest_bit: np.uint64  # Scratch of spans
    highest_bit: np.uint64  # The same. 0 between uses.
    touched: np.uint64  # The same, by index: a super peer that has a span


class ByteSums:
    """Sums of bytes of a role's messages that count."""

    count: np.int64
    total: np.int64
    squares: np.int64
    wire: np.int64


class ReceivedNumbers:
    """VTx of a process for a super peer."""

    own_complete: HalfWord  # Number of its own messages, from the first on, that are delivered
    top: HalfWord  # Highest number that is set


class HierarchyNode:
    """A held message."""

    after: HalfWord  # Next node or 0
    reason: HalfWord  # The message that it waits for
    message: HalfWord
    since: HalfWord  # Arrival in us, modulo 2^32


class Ack:
    """An acknowledgement in flight."""

    peer: np.uint64  # Of an unused one the next unused
    seq: np.uint64  # Number of the peer's last message
    lower_bound: np.uint64


class StorageSums:
    """Storage of the members of a role at a sample."""

    total: np.int64
    maximum: np.int64
