"""Microseconds per message of `receive`, and separately of `decode`.

    python -m bench.receive_path [PROTOCOL ...]

One row per protocol and group size: the size of a message, the share of reordered messages that
were held, and the median of `REPEATS` runs over the same messages, in order and with one in ten
reordered. `receive` takes a decoded message. Values are processor time.
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
from bench.traffic import Family, make_traffic, simulated, synthetic

MEMBERS = (100, 300)
MESSAGES = 3000
SHARES = (0.0, 0.1)
REPEATS = 9


class ReceiveEntry(NamedTuple):
    name: str
    family: Family


ENTRIES = [
    ReceiveEntry("unordered", partial(simulated.run_counting, Unordered)),
    ReceiveEntry("fifo", partial(simulated.run_counting, Fifo)),
    ReceiveEntry("bss", partial(simulated.run_counting, Bss)),
    ReceiveEntry(
        "bss by differences", partial(simulated.run_counting, partial(Bss, differences=True))
    ),
    ReceiveEntry("idr", partial(simulated.run_counting, Idr)),
    ReceiveEntry("ds", partial(simulated.run_counting, Ds)),
    ReceiveEntry("matrix", synthetic.make_matrix),
    ReceiveEntry("hierarchical internal", synthetic.make_downward),
    ReceiveEntry("sb", synthetic.make_replies),
    ReceiveEntry("linear", partial(simulated.run_clocks, Linear, "null")),
    ReceiveEntry("linear, bound", partial(simulated.run_clocks, Linear, "bound")),
    ReceiveEntry("physical", partial(simulated.run_clocks, Physical, "null")),
    ReceiveEntry("physical, bound", partial(simulated.run_clocks, Physical, "bound")),
    ReceiveEntry("linear-physical", partial(simulated.run_clocks, LinearPhysical, "null")),
    ReceiveEntry("ses", synthetic.make_ses),
    ReceiveEntry("sent", synthetic.make_rst),
    ReceiveEntry("tv", partial(simulated.run_topics, Tv)),
    ReceiveEntry("tv-lt", partial(simulated.run_topics, TvLt)),
    ReceiveEntry("tv-pt", partial(simulated.run_topics, TvPt)),
    ReceiveEntry("htbc", partial(simulated.run_topics, Htbc)),
    ReceiveEntry("tv-vt", partial(simulated.run_topics, TvVt)),
]


def main(names: list[str]) -> None:
    print(f"{'protocol':22}{'members':>8}{'bytes':>8}{'held':>7}   us a message:", end="")
    print(f"{'in order':>10}{'10% late':>10}{'decode':>9}")
    for entry in ENTRIES:
        if names and not entry.name.startswith(tuple(names)):
            continue
        for members in MEMBERS:
            runs = make_traffic(entry.family, members, MESSAGES, SHARES)
            size, held = _measure_wire_bytes(*runs[0]), _measure_held_share(*runs[1])
            receive = [measure_receive_us(protocol, arrivals) for protocol, arrivals in runs]
            print(f"{entry.name:22}{members:8}{size:8.0f}{held:7.0%}{'':16}", end="")
            print(
                f"{receive[0]:10.2f}{receive[1]:10.2f}{_measure_decode_us(*runs[0]):9.2f}",
                flush=True,
            )


def _measure_wire_bytes(protocol: Protocol, arrivals: list[Any]) -> float:
    return statistics.mean(len(protocol.encode(message)) for message in arrivals)


def _measure_held_share(protocol: Protocol, arrivals: list[Any]) -> float:
    """Return the share of held messages; the protocol is restored."""
    start = protocol.snapshot()
    held = sum(isinstance(e, Hold) for message in arrivals for e in protocol.receive(message))
    if protocol.list_held():
        raise RuntimeError(f"{type(protocol).__name__} did not deliver everything")
    protocol.restore(start)
    return held / len(arrivals)


def measure_receive_us(protocol: Protocol, arrivals: list[Any]) -> float:
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


def _measure_decode_us(protocol: Protocol, arrivals: list[Any]) -> float:
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
