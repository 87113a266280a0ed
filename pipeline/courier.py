"""Unreliable copy of the services' topics to the lake: `python -m pipeline.courier`.

Each record has its own delay, so records overtake each other. Some are copied twice, and one topic
has an outage. None is lost. Delays and repeats are drawn by seed, topic and record number.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import math
import random
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from antecede.core.propagation import read
from pipeline.service import require_stamp
from pipeline.services import TOPICS
from pipeline.transport import Record, open_transport

MEDIAN_S, SIGMA = 0.15, 1.0
"""Log-normal delays: 99 % are below about 1.5 s."""
REPEAT_FRACTION, REPEAT_S = 0.08, 2.0
"""Fraction of records copied twice, and mean delay of the copy (exponential)."""
OUTAGE_TOPIC = "orders"
"""Topic with the outage."""
LAKE = tuple(f"lake.{topic}" for topic in TOPICS)
DONE_FILE = "carried"
FLUSH_S = 0.2


class Outage(NamedTuple):
    """Start and end of the outage of OUTAGE_TOPIC, s from the start."""

    begin: float
    end: float


def draw_delays(seed: int, topic: str, number: int) -> list[float]:
    """Draw the delay of each copy of a record, s."""
    chance = random.Random(f"{seed}:{topic}:{number}")
    first = chance.lognormvariate(math.log(MEDIAN_S), SIGMA)
    if chance.random() >= REPEAT_FRACTION:
        return [first]
    return [first, first + chance.expovariate(1 / REPEAT_S)]


def apply_outage(due: float, topic: str, outage: Outage) -> float:
    """Return the arrival time of a record that is due at `due`, s from the start."""
    return outage.end if topic == OUTAGE_TOPIC and outage.begin <= due < outage.end else due


def carry(address: str, folder: Path, seed: int, outage: Outage) -> None:
    """Copy records until the services have ended and all are copied; log each copy."""
    transport = open_transport(address, "courier", TOPICS)
    heap: list[tuple[float, int, Record]] = []
    numbers: Counter[str] = Counter()
    ties = itertools.count()
    start = flushed = time.monotonic()
    with (folder / "courier.jsonl").open("w", encoding="utf-8") as log:
        while True:
            records = transport.poll(0.02)
            now = time.monotonic() - start
            for record in records:
                for delay in draw_delays(seed, record.topic, numbers[record.topic]):
                    due = apply_outage(now + delay, record.topic, outage)
                    heapq.heappush(heap, (due, next(ties), record))
                numbers[record.topic] += 1
            while heap and heap[0][0] <= now:
                record = heapq.heappop(heap)[2]
                transport.send(record._replace(topic=f"lake.{record.topic}"))
                log.write(json.dumps({"id": require_stamp(read(record.headers)).id}) + "\n")
            if time.monotonic() - flushed > FLUSH_S:
                transport.flush()
                flushed = time.monotonic()
            if not records and not heap and (folder / DONE_FILE).exists():
                break
    transport.close()


def main(arguments: list[str] | None = None) -> None:
    """Run the courier."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.courier")
    parser.add_argument("--address", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--outage", type=float, nargs=2, required=True)
    given = parser.parse_args(arguments)
    carry(given.address, given.folder, given.seed, Outage(*given.outage))


if __name__ == "__main__":
    main()
