"""Microseconds per message that `Group` adds to its protocol: `receive` and `send`.

    python -m bench.groups [PROTOCOL ...]

One row per protocol and group size. The bare protocol decodes control information and receives the
message, or sends one and encodes it; `Group` adds frames, names, incarnations, hashes and counters.
Both process the same messages in turns. The value is the least processor time of `REPEATS` rounds.
`send` is the difference between rounds with and without a send after each arrival. A third of the
arrivals warm up.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from antecede import Group
from antecede.core.group.frames.format import Frame, Incarnation, pack
from antecede.core.group.incarnations import Roster
from antecede.core.group.options import options_code, room_code
from antecede.core.protocols import Deliver, Idr, Protocol, Transmit
from antecede.core.protocols.clock_based.linear_physical import LinearPhysical
from antecede.core.protocols.vector.bss import Bss
from bench import large_groups
from bench.traffic import Family, simulated, synthetic

MEMBERS = (10, 100, 300)
MESSAGES = 3000
REPEATS = 5
PAYLOAD = b"twenty bytes of text"


class WireArrival(NamedTuple):
    now: int
    control: bytes
    wire: bytes


class Traffic(NamedTuple):
    order: str
    protocol: Protocol
    names: dict[int, str]
    warm: Sequence[WireArrival]
    measured: Sequence[WireArrival]


Messages = tuple[Protocol, list[tuple[int, Any]]]


def make_counted_traffic(family: Family, members: int) -> Messages:
    stream = family(members, MESSAGES)
    return stream.make(), list(enumerate(stream.messages))


def make_clocked_traffic(members: int) -> Messages:
    came, _ = large_groups.make_arrivals(members, large_groups.make_message)
    return LinearPhysical(0, range(members), bounds=large_groups.BOUNDS), came


ENTRIES: dict[str, Callable[[int], Messages]] = {
    "bss": partial(make_counted_traffic, partial(simulated.run_counting, Bss)),
    "idr": partial(make_counted_traffic, partial(simulated.run_counting, Idr)),
    "sb": partial(make_counted_traffic, synthetic.make_replies),
    "linear-physical": make_clocked_traffic,
}


def make_traffic(order: str, members: int) -> Traffic:
    protocol, messages = ENTRIES[order](members)
    names = {number: f"member{number:04}" for number in range(members)}
    view = Roster(names).view
    room, options = room_code(""), options_code(order, {})
    arrivals = []
    for now, message in messages:
        control = protocol.encode(message)
        by = Incarnation(0, 1_000_003 * (message.sender + 1) & 0xFFFFFFFF)
        frame = Frame(order, room, options, view, by, {}, (), control, PAYLOAD)
        arrivals.append(WireArrival(now, control, pack(frame)))
    third = len(arrivals) // 3
    return Traffic(order, protocol, names, arrivals[:third], arrivals[third:])


def time_protocol(traffic: Traffic, sends: bool) -> tuple[float, int]:
    protocol, delivered, before = traffic.protocol, 0, 0.0
    for part in (traffic.warm, traffic.measured):
        before = time.process_time()
        for now, control, _ in part:
            effects = protocol.receive(protocol.decode(control, PAYLOAD), now=now)
            for effect in effects:
                if type(effect) is Deliver:
                    delivered += 1
            if sends:
                for effect in protocol.send(PAYLOAD, now=now):
                    if type(effect) is Transmit:
                        protocol.encode(effect.message)
    return time.process_time() - before, delivered


def time_group(traffic: Traffic, sends: bool) -> tuple[float, int]:
    group = Group.from_protocol(traffic.protocol, traffic.names, order=traffic.order, incarnation=1)
    delivered, before = 0, 0.0
    for part in (traffic.warm, traffic.measured):
        before = time.process_time()
        for now, _, wire in part:
            delivered += len(group.receive(wire, now_ns=now))
            if sends:
                group.send(PAYLOAD, now_ns=now)
    return time.process_time() - before, delivered


class Costs(NamedTuple):
    bare_receive: float
    receive: float
    bare_send: float
    send: float


def measure(traffic: Traffic, repeats: int = REPEATS) -> Costs:
    """Return the least times. Raises RuntimeError if the two deliver different messages."""
    start = traffic.protocol.snapshot()
    kinds = [(run, sends) for sends in (False, True) for run in (time_protocol, time_group)]
    best = dict.fromkeys(kinds, float("inf"))
    gc.collect()
    gc.freeze()
    for _ in range(repeats):
        counts = set()
        for run, sends in kinds:
            traffic.protocol.restore(start)
            spent, delivered = run(traffic, sends)
            best[run, sends] = min(best[run, sends], spent / len(traffic.measured) * 1e6)
            counts.add((sends, delivered))
        if len(counts) > 2:
            raise RuntimeError(
                f"{traffic.order}: the group delivers other messages than its protocol"
            )
    gc.unfreeze()
    traffic.protocol.restore(start)
    return Costs(
        best[time_protocol, False],
        best[time_group, False],
        best[time_protocol, True] - best[time_protocol, False],
        best[time_group, True] - best[time_group, False],
    )


def main(names: list[str]) -> None:
    print(f"{'':18}{'members':>8}{'receive: bare':>15}{'Group':>8}{'adds':>7}{'ratio':>7}", end="")
    print(f"{'send: bare':>13}{'Group':>8}{'adds':>7}{'ratio':>7}")
    for order in names or ENTRIES:
        for members in MEMBERS:
            cost = measure(make_traffic(order, members))
            print(f"{order:18}{members:8}", end="")
            for least, whole, width in (
                (cost.bare_receive, cost.receive, 15),
                (cost.bare_send, cost.send, 13),
            ):
                print(f"{least:{width}.2f}{whole:8.2f}{whole - least:7.2f}", end="")
                print(f"{whole / least:7.2f}", end="")
            print(flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
