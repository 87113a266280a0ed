"""State of the compiled hierarchy: sets of messages as bits, numbers at super peers, counters.

A message's index is its index in the schedule. All sets (RV, DV, VTx, CI of Evropeytsev et al.
2016, and those of IDR) are bits at these indexes, in blocks of 8 words, block by block for all
processes. So words that are used together are adjacent. A super peer's numbering is a pair of
arrays (`number`, `order`).

A process is an address, as in `lab.simulate.topology`: super peers, internal peers by group,
external peers. The external group has indexes of its own: super peers, external peers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from antecede.lab.simulate.compiled.hierarchy.records import (
    Ack,
    ByteSums,
    HierarchyCounters,
    HierarchyMessage,
    HierarchyNode,
    Process,
    ReceivedNumbers,
    StorageSums,
    SuperPeerRecord,
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

BLOCK = 512  # Messages per block


class HierarchyState(NamedTuple):
    """State: N addresses, G super peers, E of the external group, M messages, B blocks."""

    queue: Queue
    selection: Measures
    counters: HierarchyCounters
    internal: ByteSums
    external: ByteSums
    idr: ByteSums
    ds: ByteSums
    entropy: Floats  # [1] Sum over bit vectors sent into groups
    storage: Rows[StorageSums]  # [samples, 6] Columns of `hierarchy.records`
    wait_us: Words  # [bins] Counted deliveries by wait in us. The last bin: that long or longer.
    time_us: Words  # [M + 1] Send times, and `inputs.FOREVER`
    sample_us: Words  # [samples + 1] And FOREVER
    warm: np.uint64  # First message that counts
    pruning: np.uint64
    ack_after: np.uint64
    delay_key: np.uint64  # Key of the stream of delays
    control_key: np.uint64  # Key of the stream of delays of control messages
    table: Words  # [kinds, kinds] Row of `quantiles`
    quantiles: Ints  # [tables, cells + 1] Microseconds
    base: Words  # [locations, locations] Microseconds added to a delay
    fifo: np.uint64
    newest_out: Words  # [E, E] Last arrival on a FIFO channel of the external group; else [1, 1]
    process: Rows[Process]  # [N]
    message: Rows[HierarchyMessage]  # [M]
    group: Rows[SuperPeerRecord]  # [G + 1]
    sets: Words  # [B, N, 4, 8] Sets of each process; [B, N, 3, 8] without IDR
    arrived: Words
    """[B, E, 8] Arrivals in the external group; for a super peer's own group, held messages."""
    needs: Words
    """[rows, 2, 8] Blocks of needs of a message, by the protocol and by IDR; else [rows, 1, 8]."""
    number: Small  # [G, M + 1] Number of a message at a super peer
    order: Small  # [G, M + 1] Message of a number
    vtx: Rows[ReceivedNumbers]  # [E, G]
    head: Small  # [N, hash] First node of those that wait
    nodes: Rows[HierarchyNode]
    acks: Rows[Ack]
    listed: Words  # [M + 2] A set as a list
    ready: Words  # [M + 2] Nodes to check again
    released: Words  # [M + 2] Messages of the external group that one arrival releases
    log: Ints  # [deliveries, 3] Member, message, time; [0, 3]: not stored
    transmissions: Ints
    """[transmissions, 5] Source, message, target, bytes, bytes on the wire; [0, 5]: not stored."""
    windows: Words  # [G + 1, words] Bit vectors while they are measured: by super peer, and I
    named_numbers: Ints
    """[3, N] Numbers by address while CI is measured; members and numbers of its pairs."""


class HierarchyArraySizes(NamedTuple):
    """Sizes of the arrays."""

    addresses: int
    groups: int
    external_size: int  # Processes of the external group
    messages: int
    samples: int
    rows: int
    max_copies: int  # Largest number of copies in flight or held
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
        """Largest number of logged deliveries."""
        return self.messages * (self.addresses - self.groups) if self.log else 0


WAIT_BINS = 1 << 20
ROLES = "internal", "external", "idr", "ds"  # Fields of a state that are sums over messages


def list_shapes(size: HierarchyArraySizes) -> Shapes:
    """Return shape and type of every array that starts empty."""
    n, g, e, m = size.addresses, size.groups, size.external_size, size.messages
    word, small, signed = np.uint64, np.uint32, np.int64
    return {
        "entropy": ((1,), np.float64),
        "storage": ((size.samples, 6), make_record_type(StorageSums)),
        "wait_us": ((WAIT_BINS + 1,), word),
        "newest_out": ((e, e) if size.fifo else (1, 1), word),
        "process": ((n,), make_record_type(Process)),
        "message": ((m,), make_record_type(HierarchyMessage, CACHE_LINE_BYTES)),
        "group": ((g + 1,), make_record_type(SuperPeerRecord)),
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
    """Return the memory of a run, an upper limit. Unneeded parts are never touched."""
    queue = compute_queue_bytes(size.longest_us, size.max_copies)
    return compute_array_bytes(list_shapes(size)) + 8 * size.messages + queue
