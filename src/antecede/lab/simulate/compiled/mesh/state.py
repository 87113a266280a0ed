"""What the compiled mesh keeps: sets of messages as bits, held messages, counters.

Messages are bits of one index for all senders. Message m has the slot m modulo the window, in a
ring of blocks of 8 words, so nothing is moved when time goes on; a word of the ring is emptied
when its next 64 messages begin. How wide the window must be, `mesh.engine` says.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from antecede.lab.simulate.compiled.queue import Queue, new_queue, queue_bytes
from antecede.lab.simulate.compiled.records import Half, Rows, layout, one

Words = npt.NDArray[np.uint64]
Small = npt.NDArray[np.uint32]
Ints = npt.NDArray[np.int64]

BLOCK_BITS = 512
FOREVER = 2**63
"""The time after all times that ends `time_us` and `sample_us`."""

NUMBER = np.uint64(0)
"""What messages carry: their number alone (and only the order of a sender is kept), ..."""
IMMEDIATE = np.uint64(1)
"""... what is fresh at the sender (IDR), ..."""
VECTOR = np.uint64(2)
"""... the newest of every member (BSS, DS), ..."""
DIFFERENCES = np.uint64(3)
"""... or what of that changed since the sender's message before."""


class Counters:
    """Scalars of a run."""

    arrivals: np.uint64
    """Copies that arrived."""
    deliveries: np.uint64
    counted: np.uint64
    """Deliveries of messages from `warm` on."""
    held: np.uint64
    """Messages held back now, by anybody."""
    sent: np.uint64
    sampled: np.uint64
    logged: np.uint64
    free: np.uint64
    """First unused node, 0: none."""
    fresh: np.uint64
    """First node that was never used."""
    early: np.uint64
    """Deliveries before a cause, by delivery; see `mesh.violations`."""
    early_by_receipt: np.uint64
    recent: np.uint64
    """Words of 64 messages, from the first on, that are older than the longest delay."""
    unjudged: np.uint64
    """Members that lacked a message of such a word, summed over the words."""
    overtaking: np.uint64
    """Deliveries that are not of their sender's next message."""


class Node:
    """A message that is held back."""

    after: Half
    """Next node or 0."""
    slot: Half
    since: Half
    """Arrival in us, modulo 2^32."""


class Sample:
    """What members keep at one time."""

    pairs: np.uint64
    """In all CI, ..."""
    most_pairs: np.uint64
    """... and in the largest."""
    held: np.uint64
    """Messages held by all, ..."""
    most_held: np.uint64
    """... and by one at most."""


class State(NamedTuple):
    """Everything about a run; P members, W slots, B = W / 512 blocks, M messages."""

    queue: Queue
    at: Counters
    time_us: Words
    """[M + 1] when messages are sent, and FOREVER."""
    sender: Words
    """[M] member."""
    sample_us: Words
    """[samples + 1] and FOREVER."""
    key: np.uint64
    """Of the stream of delays."""
    kind: Words
    """[P] kinds of members, by which channels have their delays."""
    table: Words
    """[kinds, kinds] row of `quantiles`."""
    quantiles: Ints
    """[tables, cells + 1] microseconds."""
    place: Words
    """[P] where a member stands."""
    base: Words
    """[places, places] microseconds added to a delay."""
    newest: Words
    """[P, P] arrival of what was put on a FIFO channel last; [1, 1] without FIFO."""
    carries: np.uint64
    """NUMBER, IMMEDIATE, VECTOR or DIFFERENCES."""
    warm: np.uint64
    """First message that is counted."""
    have: Words
    """[P, B, 8] what a member has delivered or sent."""
    fresh: Words
    """[P, B, 8] of that, what nothing else it has depends on: CI of Evropeytsev et al. 2016, and
    its own last.
    """
    needs: Words
    """[W, B, 8] what must be delivered before the message of a slot."""
    top: Words
    """[W] block of the newest of these."""
    bottom: Words
    """[W] block of the oldest."""
    number: Words
    """[W] message of a slot."""
    before: Words
    """[P] 1 + the last message that a member sent; 0: none."""
    awaited: Words
    """[P, W / 64] messages that held messages wait for."""
    head: Small
    """[P, R] first node of those that wait for a slot modulo R; only where `awaited`.

    R: a power of two, not under the number of messages that can be missing somewhere at once."""
    nodes: Rows[Node]
    held: Words
    """[P] messages held back."""
    ready: Words
    """[W] slots that one arrival lets go."""
    seq: Ints
    """[M] the sender's number for a message, from 1."""
    counts: Ints
    """[P, P] a member and the number of the last message that it has of each; with vectors."""
    changed: npt.NDArray[np.uint8]
    """[P, P] 1: something of the other was delivered since the last send; with differences."""
    causes: Ints
    """[P] what the message that is being sent carries: a number of each member, 0: none."""
    wait_us: Small
    """[longest delay + 1] how many counted deliveries waited so long after they were held."""
    pairs: Small
    """[M] members that a message names."""
    encoded: Small
    """[M] bytes of its control information on the wire; [0]: not counted."""
    sample: Rows[Sample]
    longest: np.uint64
    """Longest delay of any channel in us."""
    reach: Words
    """[W] blocks of a message's past, from the block of its slot back."""
    past: Words
    """[W, B, 2, 8] the past of a slot's message, by delivery and by receipt; W = 0: not judged."""
    knows: Words
    """[P, B, 2, 8] what a member knows of, in the same two ways; P = 0: not judged."""
    done: Small
    """[P, P] newest of each sender that a member was handed, or sent; [1, 1]: not counted, as
    messages carry causes; [0, 0]: not judged."""
    log: Ints
    """[deliveries, 3] member, message, time; [0, 3]: not kept."""
    log_at: Ints
    """[M] deliveries before each message was sent; [0]: not kept."""


class Size(NamedTuple):
    """How large the arrays must be."""

    members: int
    messages: int
    samples: int
    window: int
    """A power of two from 512 on."""
    longest_us: int
    """Longest delay of any channel."""
    most: int
    """Greatest number of copies under way or held back."""
    judged: bool = True
    """Whether deliveries before a cause are counted."""
    encoded: bool = True
    """Whether bytes on the wire are."""

    @property
    def judged_bytes(self) -> int:
        """Memory that counting them takes."""
        return (self.window + self.members) * self.window // 4 + 4 * self.members**2


def state_bytes(size: Size, carries: np.uint64, fifo: bool, log: bool) -> int:
    """Return the memory of a run at most; what is never needed of it is never touched."""
    members, window = size.members, size.window
    sets = members * (2 * window // 8 + window // 64 * 8 + 4 * _recent(size))
    slots = window * (window // 8 + 4 * 8)
    messages = size.messages * (3 * 8 + 2 * 4) + size.longest_us * 4 + 16 * size.most
    kept = 8 * fifo + 8 * bool(carries >= VECTOR) + bool(carries == DIFFERENCES)
    logged = size.messages * (24 * members + 8) * log
    rest = members * members * kept + logged + size.judged_bytes * size.judged
    return sets + slots + messages + rest + queue_bytes(size.longest_us, size.most)


def new_arrays(size: Size, carries: np.uint64, fifo: bool, log: bool) -> dict[str, object]:
    """Return all arrays of a state that begin empty."""
    members, window, messages = size.members, size.window, size.messages
    blocks = window // BLOCK_BITS
    logged = messages * (members - 1) if log else 0
    among = members, members
    judged = int(size.judged)
    numbered = members if carries == NUMBER else 1

    def words(*shape: int) -> Words:
        return np.zeros(shape, np.uint64)

    at = one(Counters)
    at.fresh = 1
    return {
        "queue": new_queue(size.longest_us, size.most),
        "at": at,
        "newest": words(*among) if fifo else words(1, 1),
        "have": words(members, blocks, 8),
        "fresh": words(members, blocks, 8),
        "needs": words(window, blocks, 8),
        "top": words(window),
        "bottom": words(window),
        "number": words(window),
        "before": words(members),
        "awaited": words(members, window // 64),
        "head": np.zeros((members, _recent(size)), np.uint32),
        "nodes": np.empty(size.most + 2, layout(Node, 16)),
        "held": words(members),
        "ready": words(window),
        "counts": np.zeros(among if carries >= VECTOR else (1, 1), np.int64),
        "changed": np.zeros(among if carries == DIFFERENCES else (1, 1), np.uint8),
        "causes": np.zeros(members, np.int64),
        "wait_us": np.zeros(size.longest_us + 1, np.uint32),
        "pairs": np.zeros(messages, np.uint32),
        "encoded": np.zeros(messages if size.encoded else 0, np.uint32),
        "sample": np.zeros(size.samples, layout(Sample)),
        "longest": np.uint64(size.longest_us),
        "reach": words(window),
        "past": words(judged * window, blocks, 2, 8),
        "knows": words(judged * members, blocks, 2, 8),
        "done": np.zeros((judged * numbered, judged * numbered), np.uint32),
        "log": np.zeros((logged, 3), np.int64),
        "log_at": np.zeros(messages if log else 0, np.int64),
    }


def _recent(size: Size) -> int:
    """Return R: messages under way, as a power of two."""
    under_way = size.most // max(1, size.members - 1)
    return min(size.window, 1 << under_way.bit_length())
