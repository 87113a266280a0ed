"""Microseconds that `receive` takes for one message, and `decode` apart from it.

    python -m bench.receive_path [PROTOCOL ...]

One row a protocol and size of group: what a message carries, how many of the reordered were
held, and the median of `REPEATS` runs over the same messages, in order and with one in ten
reordered. `receive` takes a decoded message; `decode` makes one of bytes. Processor time is
counted, not the wall clock, so that other work on the machine disturbs less.
"""

from __future__ import annotations

import statistics
import sys
import time
from functools import partial
from typing import Any, NamedTuple

from antecede.core.protocols import Hold, Idr, Protocol
from antecede.core.protocols.basic.fifo import Fifo
from antecede.core.protocols.basic.unordered import Unordered
from antecede.core.protocols.clock_based.linear import Linear
from antecede.core.protocols.clock_based.linear_physical import LinearPhysical
from antecede.core.protocols.clock_based.physical import Physical
from antecede.core.protocols.topics.protocols import Htbc, Tv, TvLt, TvPt, TvVt
from antecede.core.protocols.vector.bss import Bss
from antecede.core.protocols.vector.ds import Ds
from bench.traffic import Family, made, running, traffic

MEMBERS = (100, 300)
MESSAGES = 3000
SHARES = (0.0, 0.1)
REPEATS = 9


class Entry(NamedTuple):
    """One protocol: a name, and what arrives."""

    name: str
    family: Family


ENTRIES = [
    Entry("unordered", partial(running.counting, Unordered)),
    Entry("fifo", partial(running.counting, Fifo)),
    Entry("bss", partial(running.counting, Bss)),
    Entry("bss by differences", partial(running.counting, partial(Bss, differences=True))),
    Entry("idr", partial(running.counting, Idr)),
    Entry("ds", partial(running.counting, Ds)),
    Entry("matrix", made.matrix),
    Entry("hierarchical internal", made.downward),
    Entry("sb", made.replies),
    Entry("linear", partial(running.clocks, Linear, "null")),
    Entry("linear, bound", partial(running.clocks, Linear, "bound")),
    Entry("physical", partial(running.clocks, Physical, "null")),
    Entry("physical, bound", partial(running.clocks, Physical, "bound")),
    Entry("linear-physical", partial(running.clocks, LinearPhysical, "null")),
    Entry("ses", made.ses),
    Entry("sent", made.sent),
    Entry("tv", partial(running.topics, Tv)),
    Entry("tv-lt", partial(running.topics, TvLt)),
    Entry("tv-pt", partial(running.topics, TvPt)),
    Entry("htbc", partial(running.topics, Htbc)),
    Entry("tv-vt", partial(running.topics, TvVt)),
]


def main(names: list[str]) -> None:
    """Print the table, for all entries or those whose names begin with one of `names`."""
    print(f"{'protocol':22}{'members':>8}{'bytes':>8}{'held':>7}   us a message:", end="")
    print(f"{'in order':>10}{'10% late':>10}{'decode':>9}")
    for entry in ENTRIES:
        if names and not entry.name.startswith(tuple(names)):
            continue
        for members in MEMBERS:
            runs = traffic(entry.family, members, MESSAGES, SHARES)
            size, held = _wire_bytes(*runs[0]), _held(*runs[1])
            receive = [receive_us(protocol, arrivals) for protocol, arrivals in runs]
            print(f"{entry.name:22}{members:8}{size:8.0f}{held:7.0%}{'':16}", end="")
            print(f"{receive[0]:10.2f}{receive[1]:10.2f}{_decode_us(*runs[0]):9.2f}", flush=True)


def _wire_bytes(protocol: Protocol, arrivals: list[Any]) -> float:
    return statistics.mean(len(protocol.encode(message)) for message in arrivals)


def _held(protocol: Protocol, arrivals: list[Any]) -> float:
    """Return the share of messages that were held back, and leave the protocol as it was."""
    start = protocol.snapshot()
    held = sum(isinstance(e, Hold) for message in arrivals for e in protocol.receive(message))
    if protocol.blocked_on():
        raise RuntimeError(f"{type(protocol).__name__} did not deliver everything")
    protocol.restore(start)
    return held / len(arrivals)


def receive_us(protocol: Protocol, arrivals: list[Any]) -> float:
    """Return the median of some runs over the same messages."""
    start = protocol.snapshot()
    spent = []
    for _ in range(REPEATS):
        protocol.restore(start)
        receive = protocol.receive
        before = time.process_time()
        for message in arrivals:
            receive(message)
        spent.append(time.process_time() - before)
    return statistics.median(spent) / len(arrivals) * 1e6


def _decode_us(protocol: Protocol, arrivals: list[Any]) -> float:
    controls = [protocol.encode(message) for message in arrivals]
    spent = []
    for _ in range(3):
        before = time.process_time()
        for control in controls:
            protocol.decode(control, None)
        spent.append(time.process_time() - before)
    return statistics.median(spent) / len(controls) * 1e6


if __name__ == "__main__":
    main(sys.argv[1:])
