"""Live peers: every figure that was wanted of them, in one run, with whether it is met.

    python -m bench.live [--quick] [--json | --markdown] [PART ...]

Parts: rate, paced, partition, kill, stop, slow, flat, hierarchy. Shares and ratios are of turns
that alternate with raw asyncio TCP on the same machine; medians of them, the least and greatest
beside. Times in milliseconds mean something on a machine that does nothing else. `--quick`: smaller
and fewer, to see that all works.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec

from bench import live_faults, live_flat, live_mesh, live_paced
from bench.live_figures import Figure, Skipped, markdown

Told = Iterator[Figure | Skipped]


def rate(quick: bool) -> Told:
    if quick:
        return live_mesh.figures((16,), 1.0, 1)
    return live_mesh.figures()


def paced(quick: bool) -> Told:
    return live_paced.paced((100,), 2.0, 1) if quick else live_paced.paced()


def partition(quick: bool) -> Told:
    return live_faults.partition(turns=1 if quick else 3)


def kill(quick: bool) -> Told:
    yield from live_faults.kill(turns=1 if quick else 5)
    if not quick:
        yield from live_faults.kill(turns=5, store=True)


def stop(quick: bool) -> Told:
    return live_faults.stop(turns=1 if quick else 3)


def slow(quick: bool) -> Told:
    return live_faults.slow()


def flat(quick: bool) -> Told:
    return live_flat.flat(8, 2.0, 3.0) if quick else live_flat.flat(100)


def hierarchy(quick: bool) -> Told:
    """Run the part of `bench/live_hierarchy.py`, where it is there: `figures(quick)`."""
    if find_spec("bench.live_hierarchy") is None:
        yield Skipped("hierarchy", "there is no bench/live_hierarchy.py here")
        return
    yield from import_module("bench.live_hierarchy").figures(quick)


PARTS: dict[str, Callable[[bool], Told]] = {
    "rate": rate,
    "paced": paced,
    "partition": partition,
    "kill": kill,
    "stop": stop,
    "slow": slow,
    "flat": flat,
    "hierarchy": hierarchy,
}


def machine() -> str:
    """Return on what this ran, and what else ran there."""
    load = os.getloadavg()[0]
    return f"{os.cpu_count()} cores, Python {platform.python_version()}, load before {load:.1f}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.live")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="smaller and fewer")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="one JSON object at the end")
    shape.add_argument("--markdown", action="store_true", help="a table for a page at the end")
    given = parser.parse_args(arguments)
    if unknown := set(given.parts) - PARTS.keys():
        parser.error(f"no part {min(unknown)!r}: there are {', '.join(PARTS)}")
    where, found = machine(), list[Figure | Skipped]()
    for name in given.parts or PARTS:
        for one in PARTS[name](given.quick):
            found.append(one)
            if not (given.json or given.markdown):
                print(one.line(), flush=True)
    if given.json:
        print(json.dumps({"machine": where, "figures": [one.plain() for one in found]}, indent=1))
    elif given.markdown:
        print(f"{where}\n\n{markdown(found)}", end="")
    else:
        wanted = [one for one in found if isinstance(one, Figure) and one.met is not None]
        print(f"{sum(bool(one.met) for one in wanted)} of {len(wanted)} met; {where}")


if __name__ == "__main__":
    main()
