"""Deliveries a second of the compiled engines, beside the same model in SimPy, in one run.

The compiled hierarchy runs with all measures, with none, and with each alone, in
turns, so that the columns can be compared.

    python -m bench.simulators [quick]

The model is the mesh of Evropeytsev et al.'s scenario with the shortest delays: every peer
broadcasts each N(80, 5) ms under IDR, a copy takes N(25, 12.5) ms clipped to 0 to 50. SimPy gets
the rules of IDR written down plainly on dictionaries, and its fastest form of an arrival, a
timeout with a callback. At 900 peers it gets the first 20 ms only, while little depends on
anything: later it is slower. Time is of this process alone; what is compiled is compiled before.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, NamedTuple

import simpy

from antecede.formatting import table
from antecede.simulate.compiled.hierarchy.engine import run_hierarchy
from antecede.simulate.compiled.mesh.engine import run_mesh
from antecede.simulate.delays import Delay
from antecede.simulate.outputs.measures import EVERYTHING, NOTHING, Measures
from antecede.simulate.scenario.model import Links, Scenario
from antecede.simulate.topology import Hierarchy, Mesh

DELAYS = Delay(0.0, 0.05)
REPEATS = 3
COMPILED_S = {100: 20.0, 300: 3.0, 900: 1.0}
"""Simulated seconds by number of peers."""
MEASURES = {
    "hierarchical": EVERYTHING,
    "hierarchical, no measures": NOTHING,
    **{f"hierarchical, {one} alone": NOTHING._replace(**{one: True}) for one in Measures._fields},
}
SIMPY_S = {100: 0.5, 300: 0.1, 900: 0.02}


class Rate(NamedTuple):
    """What one engine did."""

    deliveries: float
    spent_s: float

    @property
    def millions(self) -> float:
        """Million deliveries a second."""
        return self.deliveries / self.spent_s / 1e6


def compiled(peers: int, duration_s: float) -> Rate:
    """Run the compiled engine; the best of some runs, the first not counted."""
    scenario = Scenario(Mesh(peers), "idr", links=Links(DELAYS), duration_s=duration_s)
    run_mesh(scenario, 0)
    return min((_timed(lambda: _compiled(scenario)) for _ in range(REPEATS)), key=_seconds)


def _compiled(scenario: Scenario) -> float:
    return run_mesh(scenario, 1).figures["deliveries"]


def hierarchical(peers: int, duration_s: float) -> dict[str, Rate]:
    """Run the compiled hierarchy of Evropeytsev et al. 2016, half inside, half outside.

    By measures: the best of some rounds, in each of which every choice of measures has its turn.
    """
    topology = Hierarchy((peers // 2,), peers // 2)
    links = Links(DELAYS)
    scenario = Scenario(topology, "hierarchical", links=links, duration_s=duration_s)
    run_hierarchy(scenario, 0)
    rounds = [
        {name: _timed(partial(_hierarchical, scenario, asked)) for name, asked in MEASURES.items()}
        for _ in range(REPEATS)
    ]
    return {name: min((each[name] for each in rounds), key=_seconds) for name in MEASURES}


def _hierarchical(scenario: Scenario, measures: Measures) -> float:
    return run_hierarchy(scenario, 1, measures).figures["deliveries"]


def in_simpy(peers: int, duration_s: float) -> Rate:
    """Run the model in SimPy, once."""
    return _timed(lambda: _Group(peers, duration_s).run())


def _timed(work: Callable[[], float]) -> Rate:
    begin = time.process_time()
    deliveries = work()
    return Rate(deliveries, time.process_time() - begin)


def _seconds(rate: Rate) -> float:
    return rate.spent_s


class _Message(NamedTuple):
    sender: int
    number: int
    pairs: dict[int, int]


class _Peer:
    def __init__(self, peers: int) -> None:
        self.delivered = [0] * peers
        self.immediate: dict[int, int] = {}
        self.held: list[_Message] = []

    def receive(self, message: _Message) -> int:
        """Deliver what can be delivered now; return how many."""
        if not self.is_ready(message):
            self.held.append(message)
            return 0
        self.deliver(message)
        count = 1
        while (ready := next(filter(self.is_ready, self.held), None)) is not None:
            self.held.remove(ready)
            self.deliver(ready)
            count += 1
        return count

    def is_ready(self, message: _Message) -> bool:
        """Tell whether all that a message names is delivered."""
        if self.delivered[message.sender] != message.number - 1:
            return False
        return all(self.delivered[one] >= number for one, number in message.pairs.items())

    def deliver(self, message: _Message) -> None:
        """Count a message; it implies what it names."""
        self.delivered[message.sender] = message.number
        for one, number in message.pairs.items():
            if self.immediate.get(one, number + 1) <= number:
                del self.immediate[one]
        self.immediate[message.sender] = message.number


class _Group:
    def __init__(self, peers: int, duration_s: float) -> None:
        self.rng = random.Random(1)
        self.env = simpy.Environment()
        self.peers = [_Peer(peers) for _ in range(peers)]
        self.deliveries = 0
        for me in range(peers):
            self.env.process(self.speak(me, duration_s))

    def run(self) -> float:
        """Let everything happen."""
        self.env.run()
        assert not any(peer.held for peer in self.peers)
        return self.deliveries

    def speak(self, me: int, until_s: float) -> Generator[Any, Any, None]:
        """Broadcast every N(80, 5) ms."""
        yield self.env.timeout(self.rng.uniform(0, 0.08))
        number = 0
        while self.env.now < until_s:
            number += 1
            message = _Message(me, number, self.peers[me].immediate)
            self.peers[me].immediate = {}
            self.peers[me].delivered[me] = number
            for other in range(len(self.peers)):
                if other != me:
                    copy = self.env.timeout(
                        self.normal(DELAYS.low_s, DELAYS.high_s), (message, other)
                    )
                    copy.callbacks.append(self.arrive)
            yield self.env.timeout(self.normal(0.07, 0.09))

    def arrive(self, copy: Any) -> None:
        """Give a copy to its receiver."""
        message, to = copy.value
        self.deliveries += self.peers[to].receive(message)

    def normal(self, low: float, high: float) -> float:
        """Draw a clipped normal: middle of the interval, a quarter of its width."""
        return min(max(self.rng.gauss((low + high) / 2, (high - low) / 4), low), high)


def main(arguments: list[str] | None = None) -> None:
    """Print the table; `quick` leaves the largest group out."""
    quick = "quick" in (sys.argv[1:] if arguments is None else arguments)
    rows = []
    for peers, seconds in COMPILED_S.items():
        if quick and peers == max(COMPILED_S):
            continue
        plain = in_simpy(peers, SIMPY_S[peers])
        rows.append(["SimPy, IDR", f"{peers}", f"{plain.millions:.4f}", "1"])
        rates = {"mesh, IDR": compiled(peers, seconds), **hierarchical(peers, seconds)}
        for name, rate in rates.items():
            ratio = rate.millions / plain.millions
            rows.append([name, f"{peers}", f"{rate.millions:.2f}", f"{ratio:,.0f}"])
    print(table(["engine", "peers", "M deliveries/s", "times SimPy"], rows))


if __name__ == "__main__":
    main()
