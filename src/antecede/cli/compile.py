"""`antecede compile`: fill the cache of kernels in advance.

For use after an installation, and in the image of Spark's workers. Each engine runs on a few rows
of every kind. Other kernels are compiled at first use.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from antecede.errors import InputError
from antecede.lab.simulate import Hierarchy, Mesh, PubSub, Topology
from antecede.lab.simulate.compiled import run_hierarchy, run_mesh
from antecede.lab.simulate.config import Clocks, SimulationConfig
from antecede.lab.simulate.outputs import compute_timestamps
from antecede.progress import Progress
from antecede.tables import causality
from antecede.tables.audit import PairChoice, audit_events
from antecede.tables.false_causality import RULES, count_rules, summarize
from antecede.tables.kernels import LEAST_RANKS, cache_folder, measure_compile_time
from antecede.tables.order import OrderSpec, order_table
from antecede.tables.order.stream import warm_up
from antecede.tables.trace import Event, to_batch

_DECLARED = (
    Event(id="a", member="x"),
    Event(id="b", member="y", causes=("a",)),
    Event(id="c", member="y", causes=("a", "b")),
    Event(id="d", member="x", causes=("a",)),
    Event(id="e", member="x", causes=("b", "d")),  # needs a count or sketch of its past
)
_REPLIES = (Event(id="a", member="x"), Event(id="b", member="y", causes=("a",)))
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
    """Declare the options of `antecede compile`."""
    parser.add_argument(
        "parts",
        metavar="PART",
        nargs="*",
        help=f"{', '.join(PARTS)}, or demo for the kernels of antecede demo (default: all)",
    )


def run(args: argparse.Namespace) -> int:
    """Compile the given parts and print the folder of the cache. Raise InputError."""
    jobs = _jobs(args.parts)
    with measure_compile_time() as spent, Progress("compiling") as progress:
        for done, job in enumerate(jobs):
            progress(done / len(jobs))
            job()
    folder = cache_folder()
    where = f"cached in {folder}" if folder else "but not cached: no folder is writable"
    if spent.compiling_s:
        print(f"kernels compiled in {spent.compiling_s:.1f} s, {where}")
    else:
        print(f"nothing to compile: all kernels are compiled, {where}")
    return 0


def _jobs(parts: Sequence[str]) -> list[Job]:
    unknown = [part for part in parts if part not in PARTS and part != "demo"]
    if unknown:
        raise InputError(
            f"unknown part {', '.join(unknown)}; choose from {', '.join(PARTS)} and demo"
        )
    wanted = [part for part in parts if part != "demo"] if parts else list(PARTS)
    jobs = [job for part in wanted for job in PARTS[part]]
    return [*jobs, *_DEMO] if "demo" in parts else jobs


def _table(events: tuple[Event, ...]) -> pa.Table:
    return pa.Table.from_batches([to_batch(events)])


def _audit(events: tuple[Event, ...]) -> None:
    table = _table(events)
    audit_events(table)
    audit_events(table, choice=PairChoice("estimate", 0, LEAST_RANKS))


def _rows() -> Any:
    rows = pa.table({name: pa.array(values) for name, values in _ROWS.items() if name != "clock"})
    clock = pa.array(_ROWS["clock"], pa.map_(pa.string(), pa.int64()))
    return rows.append_column("clock", clock)


def _order(spec: OrderSpec) -> None:
    order_table(_rows(), spec)


def _causality(ways: Mapping[str, Any]) -> None:
    """Label and compare, traverse, cut and roll back, on the rows of `_order`."""
    rows = _rows().append_column("saved", pa.array([True, True]))
    stamps: Any = causality.add_causal_labels(rows, **ways)["causal_label"]
    causality.concurrent(stamps, stamps)
    causality.past_size(stamps)
    if "after" in ways:
        causality.past(rows, ["b"], **ways)
        causality.future(rows, ["a"], **ways)
    where = {"process": "member", "at": "seq"}
    causality.check_cut(rows, {"y": 1}, **where, **ways)
    causality.recovery_line(rows, "saved", **where, **ways)


def _pairs(topology: Topology) -> None:
    """Count the pairs of two members' messages, by each rule that their stamps have."""
    by_topic = isinstance(topology, PubSub)
    protocol = "htbc" if by_topic else "linear-physical"
    scenario = SimulationConfig(topology, protocol, clocks=Clocks(0.001), duration_s=0.2)
    for stamps in compute_timestamps(scenario, seed=0).values():
        count_rules(stamps, [name for name, rule in RULES.items() if rule.topics is by_topic])


Job = Callable[[], object]
_MESH = partial(run_mesh, SimulationConfig(Mesh(2), duration_s=0.1), seed=0)
_HIERARCHY = partial(
    run_hierarchy, SimulationConfig(Hierarchy((1,), 1), "hierarchical", duration_s=0.1), seed=0
)
PARTS: Mapping[str, tuple[Job, ...]] = {
    "order": tuple(partial(_order, spec) for spec in _SPECS),
    "stream": (partial(warm_up, False), partial(warm_up, True)),
    "audit": tuple(partial(_audit, events) for events in (_DECLARED, _CLOCKS, _COPIES)),
    "false-causality": (
        *(partial(_pairs, topology) for topology in (Mesh(2), PubSub((2,), 1))),
        *(partial(summarize, _table(events)) for events in (_DECLARED, _REPLIES, _CLOCKS, _COPIES)),
    ),
    "causality": (
        partial(_causality, {"id": "id", "after": "causes"}),
        partial(_causality, {"clock": "clock", "member": "member"}),
    ),
    "mesh": (_MESH,),
    "hierarchy": (_HIERARCHY,),
}
_DEMO: tuple[Job, ...] = (partial(_order, _SPECS[0]), _HIERARCHY)
