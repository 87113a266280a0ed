"""How many members one flat group has: each a process on this machine, everybody connected to all.

    python -m bench.live_flat [MEMBERS ...]

Told are the time until all are connected to all, the memory of a process (pages that several
share count in parts), the cores that all use while nobody speaks and while they do, and how long a
message takes. Everything goes over n(n - 1)/2 TLS connections, so what two cores carry ends by
processor time, not by memory.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence

import numpy as np

from bench.live_figures import Figure, Skipped
from bench.live_group import Group, lost

MOST_MB = 60
"""So much a process must have at hand before this begins."""


def flat(
    members: int = 100, rate: float = 0.2, seconds: float = 10.0, timeout_s: float = 180.0
) -> Iterator[Figure | Skipped]:
    """Let so many join at once, be silent for a while, and talk at a pace."""
    row = f"flat group of {members}"
    if (free := available_mb()) < MOST_MB * members:
        yield Skipped(row, f"{free:.0f} MB of memory are free, {MOST_MB * members} needed")
        return
    with Group(members) as group:
        try:
            took = group.gather(timeout_s)
        except TimeoutError as error:
            yield Figure(
                row,
                "members connected to all",
                float(sum(one.meets == members - 1 for one in group.members)),
                at_least=members,
            )
            yield Skipped(row, str(error).splitlines()[0])
            return
        yield Figure(row, "members connected to all", float(members), at_least=members)
        yield Figure(row, "until all are connected to all", took, "s")
        yield Figure(row, "until all are, in processor time of all", cpu(group), "s")
        time.sleep(3)
        yield Figure(
            row,
            "memory of a process",
            float(np.mean([one.memory() for one in group.members])),
            "MB",
        )
        before = cpu(group)
        time.sleep(5)
        yield Figure(row, "cores of all while nobody speaks", (cpu(group) - before) / 5)
        before = cpu(group)
        group.tell(f"go {rate} {seconds}")
        time.sleep(seconds + 1)
        yield Figure(
            row,
            f"cores of all at {rate:g} messages/s a member",
            (cpu(group) - before) / (seconds + 1),
        )
        time.sleep(3)
        seen = group.end(timeout_s=120)
    took_ms = np.concatenate([(one.got[:, 3] - one.got[:, 2]) / 1e6 for one in seen.values()])
    for part in (50, 99):
        yield Figure(row, f"a message takes, p{part}", float(np.percentile(took_ms, part)), "ms")
    lacking, twice = lost(seen, range(members), range(members))
    yield Figure(row, "messages that somebody lacks", lacking, at_most=0)
    yield Figure(row, "messages that came twice", twice, at_most=0)


def cpu(group: Group) -> float:
    return sum(one.cpu() for one in group.members)


def available_mb() -> float:
    """Return the memory that is free on this machine."""
    with open("/proc/meminfo") as lines:
        kilobytes = next(int(one.split()[1]) for one in lines if one.startswith("MemAvailable"))
    return kilobytes / 1024


def main(counts: Sequence[str]) -> None:
    for count in counts or ("100",):
        for figure in flat(int(count)):
            print(figure.line(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
