"""State of the compiled mesh: sets of messages as bits, held messages, counters.

Messages are bits of one index for all senders. Message m has the slot m modulo the window, in a
ring of blocks of 8 words. A word of the ring is emptied when its next 64 messages begin.
`mesh.engine` computes the width of the window.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from antecede.lab.simulate.compiled.queue import Queue, compute_queue_bytes
from antecede.lab.simulate.compiled.records import (
    HalfWord,
    Rows,
    Shapes,
    compute_array_bytes,
    make_record_type,
)
from antecede.tables.kernels import inline_lent as inlined

Words = npt.NDArray[np.uint64]
Small = npt.NDArray[np.uint32]
Ints = npt.NDArray[np.int64]

_1, _63 = np.uint64(1), np.uint64(63)
BLOCK_BITS = 512

# Control information of a message:
NUMBER = np.uint64(0)  # its number alone; keeps only the order of a sender
IMMEDIATE = np.uint64(1)  # immediate dependencies (IDR)
VECTOR = np.uint64(2)  # newest number of each member (BSS, DS)
DIFFERENCES = np.uint64(3)  # entries of VECTOR that changed since the sender's last message


class MeshCounters:
    """Counters of a run."""

    arrivals: np.uint64  # Arrived copies
    deliveries: np.uint64
    counted: np.uint64  # Deliveries of messages from `warm` on
    held: np.uint64  # Messages held by any member now
    sent: np.uint64
    sampled: np.uint64
    logged: np.uint64
    free: np.uint64  # First unused node, 0: none
    fresh: np.uint64  # First node that was never used
    violations: np.uint64  # Violations by delivery; see `mesh.violations`
    receipt_violations: np.uint64
    recent: np.uint64
    """Words of 64 messages, from the first on, that are older than the longest delay."""
    unchecked: np.uint64  # Members without a message of such a word, summed over the words
    fifo_violations: np.uint64  # Deliveries that are not of their sender's next message


class MeshNode:
    """A held message."""

    after: HalfWord  # Next node or 0
    slot: HalfWord
    since: HalfWord  # Arrival in us, modulo 2^32


class StorageSample:
    """Storage of the members at one time."""

    pairs: np.uint64  # Pairs in the CI of all members
    most_pairs: np.uint64  # Pairs in the largest CI
    held: np.uint64  # Messages held by all members
    most_held: np.uint64  # Messages held by one member, maximum


class MeshState(NamedTuple):
    """State of a run: P members, W slots, B = W / 512 blocks, M messages."""

    queue: Queue
    counters: MeshCounters
    time_us: Words  # [M + 1] Send times, and `inputs.FOREVER`
    sender: Words  # [M] Member
    sample_us: Words  # [samples + 1] And FOREVER
    delay_key: np.uint64  # Key of the stream of delays
    kind: Words  # [P] Kinds of members, which determine the delays of channels
    table: Words  # [kinds, kinds] Row of `quantiles`
    quantiles: Ints  # [tables, cells + 1] Microseconds
    location: Words  # [P] Location of a member
    base: Words  # [locations, locations] Microseconds added to a delay
    last_arrival_us: Words  # [P, P] Last arrival on a FIFO channel; [1, 1] without FIFO
    control_kind: np.uint64  # NUMBER, IMMEDIATE, VECTOR or DIFFERENCES
    warm: np.uint64  # First message that is counted
    have: Words  # [P, B, 8] Messages that a member has delivered or sent
    fresh: Words
    """[P, B, 8] Those of `have` that no other of them needs: CI by IDR, and the own last one."""
    needs: Words  # [W, B, 8] Messages to be delivered before the message of a slot
    top: Words  # [W] Block of the newest of these
    bottom: Words  # [W] Block of the oldest of these
    number: Words  # [W] Message of a slot
    last_sent: Words  # [P] 1 + the last message that a member sent; 0: none
    awaited: Words  # [P, W / 64] Messages that held messages wait for
    first_waiting: Small
    """[P, R] First node of those that wait for a slot modulo R; only where `awaited`. R: a power of
    two, at least the number of messages that can be missing anywhere at once."""
    nodes: Rows[MeshNode]
    held: Words  # [P] Held messages
    ready: Words  # [W] Slots that one arrival releases
    seq: Ints  # [M] The sender's number of a message, from 1
    counts: Ints  # [P, P] Last number that a member has of each; with vectors
    changed: npt.NDArray[np.uint8]
    """[P, P] 1: a message of the other was delivered since the last send; with differences."""
    causes: Ints  # [P] Control information of the message being sent: a number per member, 0: none
    wait_us: Small  # [longest delay + 1] Counted deliveries by wait in us
    pairs: Small  # [M] Members in the control information of a message
    wire_bytes: Small  # [M] Bytes of control information on the wire; [0]: not counted
    samples: Rows[StorageSample]
    longest_us: np.uint64  # Longest delay of any channel
    past_blocks: Words  # [W] Blocks of a message's past, from the block of its slot back
    past: Words
    """[W, B, 2, 8] Past of a slot's message, by delivery and by receipt; W = 0: not checked."""
    known: Words
    """[P, B, 2, 8] Messages that a member knows, in the same two ways; P = 0: not checked."""
    newest_delivered: Small
    """[P, P] Newest message of each sender that a member delivered or sent; [1, 1]: not counted, as
    messages have causes; [0, 0]: not checked."""
    log: Ints  # [deliveries, 3] Member, message, time; [0, 3]: not stored
    log_at: Ints  # [M] Deliveries before each message was sent; [0]: not stored


class MeshArraySizes(NamedTuple):
    """Sizes of the arrays."""

    members: int
    messages: int
    samples: int
    window: int  # A power of two, at least 512
    longest_us: int  # Longest delay of any channel
    max_copies: int  # Largest number of copies in flight or held
    checks_violations: bool = True  # Violations are counted
    counts_wire: bool = True  # Bytes on the wire are counted


@inlined
def make_bit(slot: np.uint64) -> np.uint64:
    """Return a word with the slot's bit."""
    return np.uint64(_1 << (slot & _63))


@inlined
def find_previous_block(s: MeshState, block: np.uint64) -> np.uint64:
    """Return the block of older messages in the ring."""
    return np.uint64((block - _1) & np.uint64(s.have.shape[1] - 1))


def list_shapes(size: MeshArraySizes, control_kind: np.uint64, fifo: bool, log: bool) -> Shapes:
    """Return shape and type of every array that starts empty."""
    p, w, m = size.members, size.window, size.messages
    b = w // BLOCK_BITS
    word, small, signed = np.uint64, np.uint32, np.int64
    judged = int(size.checks_violations)
    numbered = judged * (p if control_kind == NUMBER else 1)
    vectors, differences = bool(control_kind >= VECTOR), bool(control_kind == DIFFERENCES)
    return {
        "last_arrival_us": ((p, p) if fifo else (1, 1), word),
        "have": ((p, b, 8), word),
        "fresh": ((p, b, 8), word),
        "needs": ((w, b, 8), word),
        "top": ((w,), word),
        "bottom": ((w,), word),
        "number": ((w,), word),
        "last_sent": ((p,), word),
        "awaited": ((p, w // 64), word),
        "first_waiting": ((p, _count_waiting_lists(size)), small),
        "nodes": ((size.max_copies + 2,), make_record_type(MeshNode, 16)),
        "held": ((p,), word),
        "ready": ((w,), word),
        "counts": ((p, p) if vectors else (1, 1), signed),
        "changed": ((p, p) if differences else (1, 1), np.uint8),
        "causes": ((p,), signed),
        "wait_us": ((size.longest_us + 1,), small),
        "pairs": ((m,), small),
        "wire_bytes": ((m if size.counts_wire else 0,), small),
        "samples": ((size.samples,), make_record_type(StorageSample)),
        "past_blocks": ((w,), word),
        "past": ((judged * w, b, 2, 8), word),
        "known": ((judged * p, b, 2, 8), word),
        "newest_delivered": ((numbered, numbered), small),
        "log": ((m * (p - 1) if log else 0, 3), signed),
        "log_at": ((m if log else 0,), signed),
    }


def compute_state_bytes(size: MeshArraySizes, control_kind: np.uint64, fifo: bool) -> int:
    """Return the memory of a run, an upper limit. Unneeded parts are never touched."""
    schedule = 3 * 8 * size.messages
    arrays = compute_array_bytes(list_shapes(size, control_kind, fifo, log=False))
    return arrays + schedule + compute_queue_bytes(size.longest_us, size.max_copies)


def _count_waiting_lists(size: MeshArraySizes) -> int:
    under_way = size.max_copies // max(1, size.members - 1)
    return min(size.window, 1 << under_way.bit_length())
