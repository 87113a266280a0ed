"""Deliveries per second of the compiled engines, and of the same model in SimPy.

    python -m bench.simulators [--quick] [--c FOLDER]

The model is the mesh of Evropeytsev et al.'s scenario with the shortest delays. Every peer
broadcasts each N(80, 5) ms under IDR, and a copy takes N(25, 12.5) ms clipped to 0 to 50. The SimPy
model has the rules of IDR on dictionaries, and timeouts with callbacks, its fastest arrivals. At
900 peers it runs the first 20 ms only; later it is slower. The compiled hierarchy runs with all
measures, with none, and with each alone, in turns. Times are of this process, without compilation.

`--c` compiles the C programs of a folder, `fastidr.c` for the mesh and `fasthier.c` for the
hierarchy, and measures them in turns with the compiled engines.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import simpy

from antecede.formatting import table
from antecede.lab.simulate import Delay, Hierarchy, Mesh, simulate
from antecede.lab.simulate.compiled import run_hierarchy, run_mesh
from antecede.lab.simulate.config import Links, SimulationConfig
from antecede.lab.simulate.outputs import Measures
from antecede.lab.simulate.outputs.result import EVERYTHING, NOTHING

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


class EngineRate(NamedTuple):
    deliveries: float
    spent_s: float

    @property
    def millions(self) -> float:
        """Million deliveries per second."""
        return self.deliveries / self.spent_s / 1e6


def run_compiled(peers: int, duration_s: float) -> EngineRate:
    """Run the compiled engine; the best of some runs, without the first."""
    config = SimulationConfig(Mesh(peers), "idr", links=Links(DELAYS), duration_s=duration_s)
    run_mesh(config, 0)
    return min(
        (_measure_rate(lambda: _run_compiled(config)) for _ in range(REPEATS)), key=_get_seconds
    )


def _run_compiled(config: SimulationConfig) -> float:
    return run_mesh(config, 1).figures["deliveries"]


def run_hierarchical(peers: int, duration_s: float) -> dict[str, EngineRate]:
    """Run the compiled hierarchy of Evropeytsev et al. 2016, half of the peers internal.

    Returns the best round of each choice of measures.
    """
    topology = Hierarchy((peers // 2,), peers // 2)
    links = Links(DELAYS)
    config = SimulationConfig(topology, "hierarchical", links=links, duration_s=duration_s)
    run_hierarchy(config, 0)
    rounds = [
        {
            name: _measure_rate(partial(_run_hierarchical, config, asked))
            for name, asked in MEASURES.items()
        }
        for _ in range(REPEATS)
    ]
    return {name: min((each[name] for each in rounds), key=_get_seconds) for name in MEASURES}


def _run_hierarchical(config: SimulationConfig, measures: Measures) -> float:
    return run_hierarchy(config, 1, measures).figures["deliveries"]


def run_simpy(peers: int, duration_s: float) -> EngineRate:
    return _measure_rate(lambda: _Group(peers, duration_s).run())


def _measure_rate(work: Callable[[], float]) -> EngineRate:
    begin = time.process_time()
    deliveries = work()
    return EngineRate(deliveries, time.process_time() - begin)


def _get_seconds(rate: EngineRate) -> float:
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
        if self.delivered[message.sender] != message.number - 1:
            return False
        return all(self.delivered[one] >= number for one, number in message.pairs.items())

    def deliver(self, message: _Message) -> None:
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
            self.env.process(self.send_periodically(me, duration_s))

    def run(self) -> float:
        self.env.run()
        assert not any(peer.held for peer in self.peers)
        return self.deliveries

    def send_periodically(self, me: int, until_s: float) -> Generator[Any, Any, None]:
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
                        self.draw_normal(DELAYS.low_s, DELAYS.high_s), (message, other)
                    )
                    copy.callbacks.append(self.receive_copy)
            yield self.env.timeout(self.draw_normal(0.07, 0.09))

    def receive_copy(self, copy: Any) -> None:
        message, to = copy.value
        self.deliveries += self.peers[to].receive(message)

    def draw_normal(self, low: float, high: float) -> float:
        """Draw a clipped normal: middle of the interval, a quarter of its width."""
        return min(max(self.rng.gauss((low + high) / 2, (high - low) / 4), low), high)


FLAT_C, HIERARCHY_C = "fastidr", "fasthier"


def compile_c(folder: Path, program: str, to: Path) -> Path:
    source, compiler = folder / f"{program}.c", shutil.which("cc") or shutil.which("gcc")
    if not source.exists():
        raise SystemExit(f"--c: {source} not found; give the folder of the C programs")
    if compiler is None:
        raise SystemExit("--c: no C compiler found; install cc or gcc, or omit --c")
    binary = to / program
    words = [compiler, "-O3", "-march=native", "-w", "-o", str(binary), str(source), "-lm"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"--c: {' '.join(words)} failed:\n{done.stderr[-2000:]}")
    return binary


def run_c(binary: Path, peers: int, duration_s: float) -> EngineRate:
    """Run a C program with its checker. Raises RuntimeError for a causal violation."""
    words = [str(binary), f"N={peers}", f"T={duration_s}", "warm=0", "relay=0"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    if result["viol"] or result["fifo"]:
        raise RuntimeError(
            f"{binary.name}: {result['viol']} violations, {result['fifo']} out of FIFO"
        )
    return EngineRate(result["del"], result["cpu"])


def compare_with_c(folder: Path, quick: bool) -> list[list[str]]:
    """Return rows of the compiled engines and of C, in turns: the best of each."""
    rows = []
    with tempfile.TemporaryDirectory() as where:
        programs = {name: compile_c(folder, name, Path(where)) for name in (FLAT_C, HIERARCHY_C)}
        for peers, seconds in COMPILED_S.items():
            if quick and peers == max(COMPILED_S):
                continue
            for name, binary in programs.items():
                config = make_config(name, peers, seconds)
                simulate(config, 0)
                turns = [
                    (
                        run_c(binary, peers, seconds),
                        _measure_rate(partial(_count_deliveries, config)),
                    )
                    for _ in range(REPEATS)
                ]
                theirs, ours = (
                    max(each, key=_format_millions) for each in zip(*turns, strict=True)
                )
                rows.append([f"{name}.c", f"{peers}", f"{theirs.millions:.2f}", "1"])
                ratio = ours.millions / theirs.millions
                rows.append(
                    [
                        f"simulate, {config.protocol}",
                        f"{peers}",
                        f"{ours.millions:.2f}",
                        f"{ratio:.2f}",
                    ]
                )
    return rows


def make_config(program: str, peers: int, duration_s: float) -> SimulationConfig:
    links = Links(DELAYS)
    if program == FLAT_C:
        return SimulationConfig(Mesh(peers), "idr", links=links, duration_s=duration_s)
    topology = Hierarchy((peers // 2,), peers // 2)
    return SimulationConfig(topology, "hierarchical", links=links, duration_s=duration_s)


def _count_deliveries(config: SimulationConfig) -> float:
    return simulate(config, 1).figures["deliveries"]


def _format_millions(rate: EngineRate) -> float:
    return rate.millions


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.simulators")
    parser.add_argument("--quick", action="store_true", help="omit the largest group")
    parser.add_argument("--c", type=Path, metavar="FOLDER", help="compile and measure C programs")
    given = parser.parse_args(arguments)
    rows = []
    for peers, seconds in COMPILED_S.items():
        if given.quick and peers == max(COMPILED_S):
            continue
        plain = run_simpy(peers, SIMPY_S[peers])
        rows.append(["SimPy, IDR", f"{peers}", f"{plain.millions:.4f}", "1"])
        rates = {"mesh, IDR": run_compiled(peers, seconds), **run_hierarchical(peers, seconds)}
        for name, rate in rates.items():
            ratio = rate.millions / plain.millions
            rows.append([name, f"{peers}", f"{rate.millions:.2f}", f"{ratio:,.0f}"])
    print(table(["engine", "peers", "M deliveries/s", "times SimPy"], rows))
    if given.c is not None:
        head = ["engine", "peers", "M deliveries/s", "times C"]
        print("\n" + table(head, compare_with_c(given.c, given.quick)))


if __name__ == "__main__":
    main()
