"""How long a message takes when the members do not hurry: n = 4, 100 bytes, TLS, with a store.

With a store `send` returns once the message is on the sender's disk (SQLite, WAL, every transaction
through to the disk), and it goes out to the others after that. Two times are told: from the call of
`send` to its return, and to the delivery at another member.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from statistics import median

import numpy as np

from bench.live_figures import Figure
from bench.live_group import Group

MEMBERS = 4
WANTED_MS = {50: 2.0, 99: 10.0}


def paced(
    rates: Sequence[float] = (100, 250, 1000), seconds: float = 4.0, turns: int = 3
) -> Iterator[Figure]:
    """Measure at so many messages a second a member, over both loops, in turns."""
    for rate in rates:
        kinds = [(store, uvloop) for store in (True, False) for uvloop in (False, True)]
        runs: dict[tuple[bool, bool], list[tuple[list[float], list[float]]]] = {}
        for _ in range(turns):
            for kind in kinds:
                runs.setdefault(kind, []).append(run(*kind, rate, seconds))
        for (store, uvloop), found in runs.items():
            loop = "uvloop" if uvloop else "asyncio"
            what = f"{'durable' if store else 'in memory'}, {rate:g}/s a member, {loop}"
            for at, part in enumerate(WANTED_MS):
                if store:
                    yield _figure(f"{what}: send, p{part}", [one[1][at] for one in found])
                wanted = WANTED_MS[part] if store else None
                yield _figure(f"{what}: delivery, p{part}", [one[0][at] for one in found], wanted)


def _figure(what: str, values: list[float], at_most: float | None = None) -> Figure:
    spread = min(values), max(values)
    return Figure("paced", what, median(values), "ms", at_most=at_most, spread=spread)


def run(store: bool, uvloop: bool, rate: float, seconds: float) -> tuple[list[float], list[float]]:
    """Return p50 and p99 in ms of deliveries, and of `send`."""
    with Group(MEMBERS, store=store, uvloop=uvloop) as group:
        group.gather()
        time.sleep(0.5)
        group.tell(f"go {rate} {seconds}")
        time.sleep(seconds + 1)
        seen = list(group.end().values())
    taken = np.concatenate([one.got[:, 3] - one.got[:, 2] for one in seen]) / 1e6
    safe = np.concatenate([one.sent[:, 2] - one.sent[:, 1] for one in seen]) / 1e6
    parts = list(WANTED_MS)
    return np.percentile(taken, parts).tolist(), np.percentile(safe, parts).tolist()


def main(rates: Sequence[str]) -> None:
    for figure in paced([float(one) for one in rates] or (100, 250, 1000)):
        print(figure.line(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
