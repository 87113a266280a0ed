"""State of the compiled hierarchy: sets of messages as bits, numbers at super peers, counters.

A message's index is its place in the schedule. All sets (RV, DV, VTx, CI of Evropeytsev et al.
2016, and those of IDR) are bits at these indices, in blocks of 8 words, block by block for all
processes: words that are used together lie together. A super peer's numbering is a pair of arrays
(`number`, `order`).

A process is an address, as in `lab.simulate.topology`: super peers, internal peers by group,
external peers. A "place" is an index in the external group: super peers, external peers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from antecede.lab.simulate.compiled.hierarchy.records import (
    Ack,
    ByteSums,
    Group,
    HierarchyCounters,
    HierarchyMessage,
    HierarchyNode,
    Process,
    ReceivedNumbers,
    StorageSums,
)
from antecede.lab.simulate.compiled.queue import Queue, compute_queue_bytes
from antecede.lab.simulate.compiled.records import (
    CACHE_LINE_BYTES,
    Rows,
    Shapes,
    compute_array_bytes,
    make_record_type,
)
from antecede.lab.simulate.outputs.result import Measures

Words = npt.NDArray[np.uint64]
Small = npt.NDArray[np.uint32]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

BLOCK = 512  # messages of a block


class HierarchyState(NamedTuple):
    """Everything about a run: N addresses, G super peers, E processes of the external group (G of
    them super peers), M messages, B blocks.
    """

    queue: Queue
    selection: Measures
    counters: HierarchyCounters
    internal: ByteSums
    external: ByteSums
    idr: ByteSums
    ds: ByteSums
    entropy: Floats  # [1] sum over bit vectors sent into groups
    storage: Rows[StorageSums]  # [samples, 6] columns of `hierarchy.records`
    wait_us: Words
    """[bins] how many counted deliveries waited so long; the last: that long or longer."""
    time_us: Words  # [M + 1] when messages are sent, and `inputs.FOREVER`
    sample_us: Words  # [samples + 1] and FOREVER
    warm: np.uint64  # first message that counts
    pruning: np.uint64
    ack_after: np.uint64
    delay_key: np.uint64  # of the stream of delays
    control_key: np.uint64  # of the stream of notes' delays
    table: Words  # [kinds, kinds] row of `quantiles`
    quantiles: Ints  # [tables, cells + 1] microseconds
    base: Words  # [places, places] microseconds added to a delay
    fifo: np.uint64
    newest_out: Words
    """[E, E] arrival of what was put last on a FIFO channel of the external group; else [1, 1]."""
    process: Rows[Process]  # [N]
    message: Rows[HierarchyMessage]  # [M]
    group: Rows[Group]  # [G + 1]
    sets: Words  # [B, N, 4, 8] sets of each process; [B, N, 3, 8] without IDR beside
    arrived: Words
    """[B, E, 8] what arrived in the external group; of its own group, at a super peer, what is
    held."""
    needs: Words
    """[rows, 2, 8] blocks of what a message needs: by the protocol, and by IDR; else
    [rows, 1, 8]."""
    number: Small  # [G, M + 1] number of a message at a super peer
    order: Small  # [G, M + 1] message of a number
    vtx: Rows[ReceivedNumbers]  # [E, G]
    head: Small  # [N, hash] first node of those that wait
    nodes: Rows[HierarchyNode]
    acks: Rows[Ack]
    listed: Words  # [M + 2] a set as a list
    ready: Words  # [M + 2] nodes to look at again
    released: Words  # [M + 2] messages of the external group that one arrival lets go
    log: Ints  # [deliveries, 3] member, message, time; [0, 3]: not kept
    transmissions: Ints
    """[transmissions, 5] source, message, first target, bytes, encoded bytes; [0, 5]: not kept."""
    windows: Words  # [G + 1, words] bit vectors while they are measured: by super peer, and I
    named_numbers: (
        Ints  # [3, N] numbers by address while CI is measured; members and numbers of its pairs
    )


class HierarchyArraySizes(NamedTuple):
    """Sizes of the arrays."""

    addresses: int
    groups: int
    external_size: int  # processes of the external group
    messages: int
    samples: int
    rows: int
    max_copies: int  # copies under way or held back at once, at most
    longest_us: int
    fifo: bool
    log: bool
    runs_idr: bool  # IDR runs beside the protocol

    @property
    def blocks(self) -> int:
        """Blocks of all messages."""
        return self.messages // BLOCK + 1

    @property
    def hash(self) -> int:
        """Lists of waiting messages of a process, a power of two."""
        return 64 if self.addresses <= 4096 else 16

    @property
    def max_deliveries(self) -> int:
        """Deliveries at most."""
        return self.messages * (self.addresses - self.groups) if self.log else 0


WAIT_BINS = 1 << 20
ROLES = "internal", "external", "idr", "ds"  # fields of a state that are sums over messages


def list_shapes(size: HierarchyArraySizes) -> Shapes:
    """Return shape and type of every array that begins empty."""
    n, g, e, m = size.addresses, size.groups, size.external_size, size.messages
    word, small, signed = np.uint64, np.uint32, np.int64
    return {
        "entropy": ((1,), np.float64),
        "storage": ((size.samples, 6), make_record_type(StorageSums)),
        "wait_us": ((WAIT_BINS + 1,), word),
        "newest_out": ((e, e) if size.fifo else (1, 1), word),
        "process": ((n,), make_record_type(Process)),
        "message": ((m,), make_record_type(HierarchyMessage, CACHE_LINE_BYTES)),
        "group": ((g + 1,), make_record_type(Group)),
        "sets": ((size.blocks, n, 4 if size.runs_idr else 3, 8), word),
        "arrived": ((size.blocks, e, 8), word),
        "needs": ((size.rows + 1, 2 if size.runs_idr else 1, 8), word),
        "number": ((g, m + 1), small),
        "order": ((g, m + 1), small),
        "vtx": ((e, g), make_record_type(ReceivedNumbers)),
        "head": ((n, size.hash), small),
        "nodes": ((size.max_copies + 2,), make_record_type(HierarchyNode)),
        "acks": ((size.max_copies + 2,), make_record_type(Ack)),
        "listed": ((m + 2,), word),
        "ready": ((m + 2,), word),
        "released": ((m + 2,), word),
        "log": ((size.max_deliveries, 3), signed),
        "transmissions": (((g + 3) * m if size.log else 0, 5), signed),
        "windows": ((g + 1, m // 64 + 2), word),
        "named_numbers": ((3, n), signed),
    }


def compute_state_bytes(size: HierarchyArraySizes) -> int:
    """Return the memory of a run at most; what is never needed of it is never touched."""
    queue = compute_queue_bytes(size.longest_us, size.max_copies)
    return compute_array_bytes(list_shapes(size)) + 8 * size.messages + queue
