"""A chaos run: members in processes and namespaces, and what is done to them.

Kills (SIGKILL), stops (SIGSTOP), cut ways (of halves, of one member, of a pair, in one direction),
and at the end a kill of all at once. Then the faults end, nobody sends any more, and the logs are
judged once all is handed over, or the time for it has passed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import antecede
from antecede.live import keys
from tests.live.chaos.judge import Verdict, judge
from tests.live.networks import Network

NAMES = ("alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi")
PORT = 7000
START_S, REST_S, END_S = 60.0, 120.0, 20.0
"""Times at most until all see all, until all is handed over, and until all have ended."""


@dataclass(frozen=True)
class Plan:
    """Size of a run. Its faults follow from the seed, its interleaving does not."""

    seconds: float
    kills: int
    members: int = len(NAMES)
    rate: float = 6.0
    """Messages a second and member."""
    order: str = "causal"
    partition: str = "merge"
    seed: int = 1


class Chaos:
    """One run in a folder."""

    def __init__(self, plan: Plan, folder: Path, network: Network) -> None:
        self.plan, self.folder, self.network = plan, folder, network
        self.names = list(network.hosts)
        self.random = random.Random(plan.seed)
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self.stopped: set[int] = set()
        self.died: list[str] = []
        self._end = 0.0

    async def run(self) -> Verdict:
        keys.make_authority(self.folder)
        for name in self.names:
            keys.make_member(self.folder, name)
        try:
            for place in range(len(self.names)):
                self.start(place)
                await asyncio.sleep(0.3)
            await self._until(lambda: all(self._logged(k, "D") for k in range(len(self.names))))
            self._end = time.monotonic() + self.plan.seconds
            async with asyncio.TaskGroup() as faults:
                for fault in (self.kill_some(), self.stop_some(), self.cut_some()):
                    faults.create_task(fault)
            await self.kill_all()
            (self.folder / "stop").touch()
            await asyncio.sleep(5)
            await self._until(lambda: not judge(self.folder).faults, REST_S)
            await self.end_all()
        finally:
            for process in self.processes.values():
                process.kill()
                process.wait()
        verdict = judge(self.folder)
        verdict.died += self.died
        return verdict

    # -- processes ---------------------------------------------------------------------------------

    def start(self, place: int) -> None:
        """Start a member, anew or on its store."""
        plan, name = self.plan, self.names[place]
        config = {
            "members": len(self.names),
            "rate": plan.rate,
            "order": plan.order,
            "partition": plan.partition,
        }
        addresses = [f"{host.address}:{PORT}" for host in self.network.hosts.values()]
        join = [] if place == 0 else addresses[:1] if place == 1 else addresses[:2]
        words = [sys.executable, "-m", "tests.live.chaos.member", str(self.folder), name]
        paths = [str(Path(antecede.__file__).parents[1]), str(Path(__file__).parents[3])]
        with open(self.folder / f"{name}.err", "ab") as errors:
            self.processes[place] = self.network[name].popen(
                [*words, addresses[place], json.dumps(config), *join],
                stderr=errors,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            )

    def kill(self, place: int) -> None:
        """Kill a member; note where it had ended by itself."""
        process = self.processes[place]
        if process.poll() is not None:
            self.died.append(f"{self.names[place]} ended by itself: {process.returncode}")
        process.kill()
        process.wait()

    async def end_all(self) -> None:
        """Let all end as a program does."""
        for process in self.processes.values():
            process.terminate()
        running = self.processes.values()
        await self._until(lambda: all(one.poll() is not None for one in running), END_S)
        for place, process in self.processes.items():
            if process.poll() != 0:
                self.died.append(f"{self.names[place]} did not end well: {process.poll()}")

    def _logged(self, place: int, event: str) -> bool:
        path = self.folder / f"{self.names[place]}.log"
        return path.exists() and f'"e": "{event}"' in path.read_text()

    async def _until(self, true: object, seconds: float = START_S) -> None:
        assert callable(true)
        end = time.monotonic() + seconds
        while not true() and time.monotonic() < end:
            await asyncio.sleep(0.5)

    # -- faults ------------------------------------------------------------------------------------

    def _left_s(self) -> float:
        return max(0.0, self._end - time.monotonic())

    async def kill_some(self) -> None:
        draw, mean = self.random, self.plan.seconds / max(1, self.plan.kills)
        for _ in range(self.plan.kills):
            await asyncio.sleep(draw.uniform(0.2, max(0.3, 1.7 * mean)))
            place = draw.randrange(len(self.names))
            if place in self.stopped:
                continue
            self.kill(place)
            await asyncio.sleep(draw.choice([0, 0.1, 1, 4]))
            self.start(place)

    async def stop_some(self) -> None:
        draw = self.random
        while self._left_s() > 5:
            await asyncio.sleep(draw.uniform(2, 15))
            place = draw.randrange(len(self.names))
            self.stopped.add(place)
            stopped = self.processes[place]
            with contextlib.suppress(ProcessLookupError):
                stopped.send_signal(signal.SIGSTOP)
            await asyncio.sleep(min(draw.choice([2, 5, 8, 20, 60]), self._left_s()))
            with contextlib.suppress(ProcessLookupError):
                stopped.send_signal(signal.SIGCONT)
            self.stopped.discard(place)

    async def cut_some(self) -> None:
        draw = self.random
        while self._left_s() > 5:
            await asyncio.sleep(draw.uniform(2, 12))
            self.cut_ways()
            await asyncio.sleep(min(draw.uniform(2, 18), self._left_s()))
            self.network.heal()

    def cut_ways(self) -> None:
        draw = self.random
        kind = draw.choice(["half", "one", "one way", "pair"])
        some = draw.sample(self.names, len(self.names) // 2 if kind == "half" else 1)
        others = [name for name in self.names if name not in some]
        if kind == "pair":
            others = draw.sample(others, 1)
        elif kind == "one way":
            others = draw.sample(others, len(others) // 2)
        self.network.cut(some, others, one_way=kind in ("one", "one way"))

    async def kill_all(self) -> None:
        """Kill all at once, and start all again."""
        for place in self.processes:
            self.kill(place)
        for place in self.processes:
            self.start(place)
        await asyncio.sleep(5)


async def run_chaos(plan: Plan, folder: Path) -> Verdict:
    """Run and judge, in namespaces."""
    with Network(NAMES[: plan.members], seed=plan.seed) as network:
        return await Chaos(plan, folder, network).run()
