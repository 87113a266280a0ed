"""`antecede compile`: fill the kernels' cache, so that nobody waits for it later.

Useful once after an installation, and in the image from which Spark's workers start. What is
compiled is what runs: each engine is given a few rows of every kind that it takes.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from antecede.audit import audit_events
from antecede.kernels.jit import cache_folder
from antecede.kernels.release import Batch, Plan, Shard
from antecede.kernels.release_names import Text
from antecede.meter.count import count_rules
from antecede.meter.rules import RULES
from antecede.meter.summary import summarize
from antecede.order.spec import OrderSpec
from antecede.order.table import order_table
from antecede.progress import Progress
from antecede.simulate.hierarchy_engine import run_hierarchy
from antecede.simulate.mesh_engine import run_mesh
from antecede.simulate.scenario import Clocks, Scenario
from antecede.simulate.stamped import stamped
from antecede.simulate.topology import Hierarchy, Mesh, PubSub, Topology
from antecede.trace.arrow import to_batch
from antecede.trace.schema import Event

_DECLARED = (
    Event(id="a", member="x"),
    Event(id="b", member="y", parents=("a",)),
    Event(id="c", member="y", parents=("a", "b")),
)
_CLOCKS = (
    Event(id="a", member="x", seq=1, clock_members=("x",), clock_counts=(1,)),
    Event(id="b", member="y", seq=1, clock_members=("x", "y"), clock_counts=(1, 1)),
)
_COPIES = (
    Event(kind="send", id="a", member="x"),
    Event(kind="receive", id="a", member="y"),
    Event(kind="send", id="b", member="y"),
    Event(kind="receive", id="b", member="x"),
)
_ROWS: dict[str, Any] = {
    "id": ["b", "a"],
    "causes": [["a"], []],
    "member": ["y", "x"],
    "seq": [1, 1],
    "clock": [[("x", 1), ("y", 1)], [("x", 1)]],
}
_SPECS = (
    OrderSpec(id="id", after=("causes",)),
    OrderSpec(clock="clock", member="member"),
    OrderSpec(sender="member", seq="seq"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare no options: there is one thing to do."""


def run(args: argparse.Namespace) -> int:
    """Compile everything and say where it went."""
    begin = time.monotonic()
    jobs = [partial(_audit, events) for events in (_DECLARED, _CLOCKS, _COPIES)]
    jobs += [partial(_order, spec) for spec in _SPECS]
    jobs += [partial(_release, counted) for counted in (False, True)]
    jobs += [partial(_mesh), partial(_hierarchy)]
    jobs += [partial(_pairs, topology) for topology in (Mesh(2), PubSub((2,), 1))]
    jobs += [partial(_meter, events) for events in (_DECLARED, _CLOCKS, _COPIES)]
    with Progress("compiling") as progress:
        for done, job in enumerate(jobs):
            progress(done / len(jobs))
            job()
    folder = cache_folder()
    where = f"cached in {folder}" if folder else "but no folder can be written: not kept"
    print(f"kernels compiled in {time.monotonic() - begin:.1f} s, {where}")
    return 0


def _audit(events: tuple[Event, ...]) -> None:
    audit_events(pa.Table.from_batches([to_batch(events)]))


def _order(spec: OrderSpec) -> None:
    rows = pa.table({name: pa.array(values) for name, values in _ROWS.items() if name != "clock"})
    clock = pa.array(_ROWS["clock"], pa.map_(pa.string(), pa.int64()))
    order_table(rows.append_column("clock", clock), spec)


def _release(counted: bool) -> None:
    """Let a stream's shard take an effect before its cause, and read its own state back."""
    plan = Plan(counted, timed=True, policy="release", patience=1)
    shard = Shard(plan)
    for number, causes in ((2, [b"1"]), (1, [])):
        name = b"m" if counted else str(number).encode()
        cause_names = [b"m"] * len(causes) if counted else causes
        shard.step(
            Batch(
                group=_text([b"g"]),
                name=_text([name]),
                number=np.array([number], np.int64),
                time=np.array([number], np.int64),
                digest=np.array([number], np.int64),
                status=np.zeros(1, np.uint8),
                first=np.array([0, len(causes)], np.int64),
                cause_name=_text(cause_names),
                cause_count=np.array([int(cause) for cause in causes], np.int64),
            )
        )
        shard = Shard(plan, shard.dump())


def _mesh() -> None:
    run_mesh(Scenario(Mesh(2), duration_s=0.1), seed=0)


def _hierarchy() -> None:
    run_hierarchy(Scenario(Hierarchy((1,), 1), "hierarchical", duration_s=0.1), seed=0)


def _pairs(topology: Topology) -> None:
    """Count the pairs of two members' messages, by each rule that their stamps have."""
    by_topic = isinstance(topology, PubSub)
    protocol = "htbc" if by_topic else "linear-physical"
    scenario = Scenario(topology, protocol, clocks=Clocks(0.001), duration_s=0.2)
    for stamps in stamped(scenario, seed=0).values():
        count_rules(stamps, [name for name, rule in RULES.items() if rule.topics is by_topic])


def _meter(events: tuple[Event, ...]) -> None:
    summarize(pa.Table.from_batches([to_batch(events)]))


def _text(names: list[bytes]) -> Text:
    ends = np.cumsum([0, *map(len, names)], dtype=np.int64)
    return Text(np.frombuffer(b"".join(names), np.uint8), ends)
