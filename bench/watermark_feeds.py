"""Arrivals for `bench.watermark_curve`: mailing-list archives, and the simulator."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from antecede.core.clocks import NS
from antecede.lab.simulate import Delay, Mesh, run_readable
from antecede.lab.simulate.config import Clocks, Links, Partition, SimulationConfig, Workload
from antecede.lab.simulate.outputs.trace import events
from antecede.tables.trace import RECEIVE, SEND
from bench.watermark_model import FeedRow

LORE = Path(__file__).resolve().parents[2] / "shared" / "data" / "lore"
HOUR_S, DAY_S = 3_600.0, 86_400.0
MEMBERS, SENDING_S, EVERY_S = 8, 45 * DAY_S, 1_200.0
SEED = 9
START_MS = 1_800_000_000_000
LOSS = 0.002
OUTAGES_S = ((4, 1 / 3), (8, 2.0), (12, 8.0), (17, 24.0), (22, 96.0))
"""Day on which a third of the senders is cut off, and duration in hours."""


class NamedRow(NamedTuple):
    """Row before its causes are numbered: name, names of its causes, times in ms."""

    name: str
    causes: tuple[str, ...]
    arrived: int
    stamp: int


def number_rows(rows: Iterable[NamedRow]) -> list[FeedRow]:
    """Number the rows by arrival; of rows with one name only the first counts."""
    first: dict[str, NamedRow] = {}
    for row in sorted(rows, key=lambda row: (row.arrived, row.name)):
        first.setdefault(row.name, row)
    number = {name: k for k, name in enumerate(first)}
    made = []
    for name, row in first.items():
        causes = [cause for cause in dict.fromkeys(row.causes) if cause != name]
        known = tuple(number[cause] for cause in causes if cause in number)
        made.append(FeedRow(row.arrived, row.stamp, known, len(causes) - len(known)))
    return made


def read_lore(folder: Path = LORE) -> list[FeedRow]:
    """Return the mails of all lists; the cause of a reply is the mail that it answers.

    A mail is identified by its list and its id. Raises FileNotFoundError.
    """
    files = sorted(folder.glob("*.jsonl.gz"))
    if not files:
        raise FileNotFoundError(f"{folder} has no *.jsonl.gz: see the docstring of read_lore")
    return number_rows(row for path in files for row in _read_mails(path))


def _read_mails(path: Path) -> Iterator[NamedRow]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            mail: dict[str, Any] = json.loads(line)
            parent = mail["parent"]
            yield NamedRow(
                f"{mail['topic']} {mail['id']}",
                () if parent is None else (f"{mail['topic']} {parent}",),
                mail["arrived"] * 1_000,
                mail["date"] * 1_000,
            )


def simulate_heavy_tail(days: float = SENDING_S / DAY_S) -> list[FeedRow]:
    """Return the messages received by one of eight members with heavy-tailed delays.

    Delays are lognormal: median 329 s, one in 44 above 6 hours, maximum about 8 days. Clocks are up
    to 5 s off. Five copies in a thousand are duplicates, and none is lost.
    """
    links = Links(Delay(5.0, 6 * HOUR_S, "lognormal"), duplicate=0.005)
    return simulate_feed(links, days * DAY_S)


def simulate_outages(days: float = SENDING_S / DAY_S) -> list[FeedRow]:
    """Return the messages received by one of eight members while senders are cut off for a time.

    Delays are 1 to 60 s; messages sent in the `OUTAGES_S` arrive when these end. Two copies in a
    thousand are lost, five are duplicates.
    """
    cut = tuple(
        Partition(day * DAY_S, day * DAY_S + hours * HOUR_S, (1, 2, 3))
        for day, hours in OUTAGES_S
        if day < days
    )
    links = Links(Delay(1.0, 60.0, "lognormal"), loss=LOSS, duplicate=0.005, partitions=cut)
    return simulate_feed(links, days * DAY_S)


def simulate_feed(links: Links, sending_s: float) -> list[FeedRow]:
    """Run the simulator and return the receipts of the member that never sends.

    Causes are the immediate predecessors in causal order by delivery.
    """
    config = SimulationConfig(
        topology=Mesh(MEMBERS),
        protocol="unordered",
        links=links,
        workload=Workload(kind="poisson", rate_hz=1 / EVERY_S, silent=1),
        clocks=Clocks(accuracy_s=5.0),
        duration_s=sending_s,
        sample_s=HOUR_S,
    )
    _, recording = run_readable(config, SEED, record=True)
    trace = list(events(recording))
    sent = {event.id: event for event in trace if event.kind == SEND}
    senders = {event.member for event in sent.values()}
    observer = next(event.member for event in trace if event.member not in senders)
    return number_rows(
        NamedRow(
            event.id,
            sent[event.id].causes,
            START_MS + _to_ms(event.arrival),
            START_MS + _to_ms(sent[event.id].send_time),
        )
        for event in trace
        if event.kind == RECEIVE and event.member == observer
    )


def _to_ms(time_ns: int | None) -> int:
    return (time_ns or 0) * 1_000 // NS


FEEDS: dict[str, Callable[[], list[FeedRow]]] = {
    "lore": read_lore,
    "heavy-tail": simulate_heavy_tail,
    "outages": simulate_outages,
}
