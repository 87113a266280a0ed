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
from antecede.tables.kernels import inlined_lent as inlined

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
    """Scalars of a run."""

    arrivals: np.uint64  # copies that arrived
    deliveries: np.uint64
    counted: np.uint64  # deliveries of messages from `warm` on
    held: np.uint64  # messages held back now, by anybody
    sent: np.uint64
    sampled: np.uint64
    logged: np.uint64
    free: np.uint64  # first unused node, 0: none
    fresh: np.uint64  # first node that was never used
    violations: np.uint64  # deliveries before a cause, by delivery; see `mesh.violations`
    receipt_violations: np.uint64
    recent: np.uint64
    """Words of 64 messages, from the first on, that are older than the longest delay."""
    unchecked: np.uint64  # members that lacked a message of such a word, summed over the words
    fifo_violations: np.uint64  # deliveries that are not of their sender's next message


class MeshNode:
    """A message that is held back."""

    after: HalfWord  # next node or 0
    slot: HalfWord
    since: HalfWord  # arrival in us, modulo 2^32


class StorageSample:
    """Storage of the members at one time."""

    pairs: np.uint64  # pairs in the CI of all members
    most_pairs: np.uint64  # pairs in the largest CI
    held: np.uint64  # messages held by all members
    most_held: np.uint64  # messages held by a member, at most


class MeshState(NamedTuple):
    """Everything about a run; P members, W slots, B = W / 512 blocks, M messages."""

    queue: Queue
    counters: MeshCounters
    time_us: Words  # [M + 1] when messages are sent, and `inputs.FOREVER`
    sender: Words  # [M] member
    sample_us: Words  # [samples + 1] and FOREVER
    delay_key: np.uint64  # of the stream of delays
    kind: Words  # [P] kinds of members, by which channels have their delays
    table: Words  # [kinds, kinds] row of `quantiles`
    quantiles: Ints  # [tables, cells + 1] microseconds
    location: Words  # [P] where a member stands
    base: Words  # [places, places] microseconds added to a delay
    last_arrival_us: (
        Words  # [P, P] arrival of what was put on a FIFO channel last; [1, 1] without FIFO
    )
    control_kind: np.uint64  # NUMBER, IMMEDIATE, VECTOR or DIFFERENCES
    warm: np.uint64  # first message that is counted
    have: Words  # [P, B, 8] what a member has delivered or sent
    fresh: Words
    """[P, B, 8] of that, what nothing else it has depends on: CI of Evropeytsev et al. 2016, and
    its own last.
    """
    needs: Words  # [W, B, 8] what must be delivered before the message of a slot
    top: Words  # [W] block of the newest of these
    bottom: Words  # [W] block of the oldest
    number: Words  # [W] message of a slot
    last_sent: Words  # [P] 1 + the last message that a member sent; 0: none
    awaited: Words  # [P, W / 64] messages that held messages wait for
    first_waiting: Small
    """[P, R] first node of those that wait for a slot modulo R; only where `awaited`.

    R: a power of two, not under the number of messages that can be missing somewhere at once."""
    nodes: Rows[MeshNode]
    held: Words  # [P] messages held back
    ready: Words  # [W] slots that one arrival lets go
    seq: Ints  # [M] the sender's number for a message, from 1
    counts: Ints
    """[P, P] a member and the number of the last message that it has of each; with vectors."""
    changed: npt.NDArray[np.uint8]
    """[P, P] 1: something of the other was delivered since the last send; with differences."""
    causes: Ints
    """[P] what the message that is being sent carries: a number of each member, 0: none."""
    wait_us: Small
    """[longest delay + 1] how many counted deliveries waited so long after they were held."""
    pairs: Small  # [M] members that a message names
    wire_bytes: Small  # [M] bytes of its control information on the wire; [0]: not counted
    samples: Rows[StorageSample]
    longest_us: np.uint64  # longest delay of any channel in us
    past_blocks: Words  # [W] blocks of a message's past, from the block of its slot back
    past: Words
    """[W, B, 2, 8] the past of a slot's message, by delivery and by receipt; W = 0: not judged."""
    known: Words  # [P, B, 2, 8] what a member knows of, in the same two ways; P = 0: not judged
    newest_delivered: Small
    """[P, P] newest of each sender that a member was handed, or sent; [1, 1]: not counted, as
    messages carry causes; [0, 0]: not judged."""
    log: Ints  # [deliveries, 3] member, message, time; [0, 3]: not kept
    log_at: Ints  # [M] deliveries before each message was sent; [0]: not kept


class MeshArraySizes(NamedTuple):
    """Sizes of the arrays."""

    members: int
    messages: int
    samples: int
    window: int  # a power of two, at least 512
    longest_us: int  # longest delay of any channel
    max_copies: int  # greatest number of copies under way or held back
    checks_violations: bool = True  # deliveries before a cause are counted
    counts_wire: bool = True  # bytes on the wire are counted


@inlined
def make_bit(slot: np.uint64) -> np.uint64:
    """Return a word with the slot's bit."""
    return np.uint64(_1 << (slot & _63))


@inlined
def find_previous_block(s: MeshState, block: np.uint64) -> np.uint64:
    """Return the block of older messages in the ring."""
    return np.uint64((block - _1) & np.uint64(s.have.shape[1] - 1))


def list_shapes(size: MeshArraySizes, control_kind: np.uint64, fifo: bool, log: bool) -> Shapes:
    """Return shape and type of every array that begins empty."""
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
    """Return the memory of a run at most; what is never needed of it is never touched."""
    schedule = 3 * 8 * size.messages
    arrays = compute_array_bytes(list_shapes(size, control_kind, fifo, log=False))
    return arrays + schedule + compute_queue_bytes(size.longest_us, size.max_copies)


def _count_waiting_lists(size: MeshArraySizes) -> int:
    """Return R: messages under way, as a power of two."""
    under_way = size.max_copies // max(1, size.members - 1)
    return min(size.window, 1 << under_way.bit_length())
