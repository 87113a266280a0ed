"""Seconds per rule to count the pairs of four observers with 100,000 received messages each.

    python -m bench.false_causality [--messages N] [--spark]

Six peers in two subgroups publish to all as in Nakayama 2017 (LAN and WAN, clocks off by up to 4
units, one to three of ten topics per message). Four more peers are the observers; two of them
subscribe to four topics, two to all. The time of counting all pairs one by one is measured on a
tenth of the messages and multiplied by 100; a self-join would need as much.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from antecede.core.clocks import Bounds
from antecede.core.protocols.topics import Subscriptions
from antecede.formatting import table
from antecede.tables.false_causality import (
    RULES,
    ObserverMessages,
    Stamps,
    runs_of,
    select_observed,
)
from antecede.tables.false_causality.count import count_pairs, make_message_columns, make_plan
from antecede.tables.false_causality.measure import measure
from antecede.tables.false_causality.violations import find_in_events
from antecede.tables.trace import RECEIVE, SEND
from tests.reference.meter_pairs import count_all_pairs

MESSAGES = 100_000
SENDERS, OBSERVERS, TOPICS, MOST_TOPICS = 6, 4, 10, 3
UNIT_US = 1_000
GAP_US = 1_500
"""Mean time between messages: 150,000 units for 100,000 messages, as in Nakayama 2017."""
_NAMES = tuple(f"p{number}" for number in range(SENDERS + OBSERVERS))
_WAN = {
    (a, b): (0.001, 0.160)
    for a in _NAMES
    for b in _NAMES
    if _NAMES.index(a) % 2 != _NAMES.index(b) % 2
}
BOUNDS = Bounds(accuracy_s=0.004, least_s=0.001, most_s=0.016, channels=_WAN)
SUBSCRIBED = Subscriptions(
    {name: [f"t{topic}" for topic in range(4)] for name in _NAMES[SENDERS : SENDERS + 2]}
)


def make_trace(messages: int, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    when = np.sort(rng.integers(0, messages * GAP_US, messages))
    sender = rng.integers(0, SENDERS, messages)
    shown = when + rng.integers(-4 * UNIT_US, 4 * UNIT_US + 1, SENDERS)[sender]
    topics = [
        [f"t{one}" for one in rng.choice(TOPICS, rng.integers(1, MOST_TOPICS + 1), replace=False)]
        for _ in range(messages)
    ]
    number, member = np.divmod(np.arange(messages * len(_NAMES)), len(_NAMES))
    far = member % 2 != sender[number] % 2
    delay = rng.integers(UNIT_US, np.where(far, 160, 16) * UNIT_US + 1)
    mine = member == sender[number]
    at = when[number] + np.where(mine, 0, delay)
    order = np.lexsort((~mine, at))
    number, member, mine = number[order], member[order], mine[order]
    empty: list[str] = []
    sent_ns = shown * 1_000
    return pa.table(
        {
            "kind": pa.array(np.where(mine, SEND, RECEIVE)),
            "id": pa.array(np.char.add("m", number.astype(str))),
            "member": pa.array(np.array(_NAMES)[member]),
            "topics": pa.array(
                [topics[m] if own else empty for m, own in zip(number, mine, strict=True)],
                pa.list_(pa.string()),
            ),
            "send_time": pa.array(sent_ns[number], mask=~mine),
            "file_order": pa.array(np.arange(len(number))),
        }
    )


def estimate_all_pairs_s(stamps: Stamps, rule: str, messages: int) -> float:
    """Return the seconds for all pairs one by one, extrapolated from a part."""
    part = max(messages // 10, 1)
    columns = ("sender", "seq", "lt", "pt_us", "vector", "arrival", "topics", "counts")
    some = stamps._replace(
        **{name: getattr(stamps, name)[:part] for name in columns},
        lt_printed=None if stamps.lt_printed is None else stamps.lt_printed[:part],
    )
    begin = time.perf_counter()
    count_all_pairs(
        make_message_columns(some), make_plan(some, RULES[rule]), by_topic=RULES[rule].topics
    )
    return (time.perf_counter() - begin) * (messages / part) ** 2


def count_locally(events: pa.Table, messages: int) -> None:
    begin = time.perf_counter()
    seen = list(_count_observers(events))
    print(
        f"clocks of {len(events):,} rows and timestamps of four observers: {_format_elapsed(begin)}"
    )
    lines = []
    for name in RULES:
        begin = time.perf_counter()
        found = [count_pairs(one.timestamps, name) for one in seen]
        took = time.perf_counter() - begin
        naive = 4 * estimate_all_pairs_s(seen[-1].timestamps, name, messages)
        each = sum(one.false_pairs for one in found) / sum(one.events for one in found)
        missed = sum(one.missed_pairs for one in found) / sum(one.events for one in found)
        lines.append((name, f"{took:.2f}", f"{naive:.0f}", f"{each:.2f}", f"{missed:.2f}"))
    print(table(("rule", "s", "all pairs, s", "false pairs each", "missed pairs each"), lines))
    begin = time.perf_counter()
    (early,) = find_in_events(events)
    print(
        f"causal violations: {len(early.table):,} of {early.checked:,} copies, "
        f"{_format_elapsed(begin)} (reading the rows and scanning them by sender)"
    )


def make_threads(kind: str, messages: int, seed: int = 1) -> pa.Table:
    """Return messages with declared causes, one per second.

    "chain": each replies to the previous one. "replies": each replies to one of the last 50.
    "merges": a chain in which one in ten has a second cause. "graph": one to three of the last 50.
    """
    rng = np.random.default_rng(seed)
    causes: list[list[str]] = [[]]
    for k in range(1, messages):
        recent = [k - 1]
        if kind == "replies":
            recent = [int(rng.integers(max(0, k - 50), k))]
        elif kind == "merges" and k % 10 == 0:
            recent = [k - 1, k - 7]
        elif kind == "graph":
            recent = rng.integers(max(0, k - 50), k, rng.integers(1, 4)).tolist()
        causes.append([f"m{one}" for one in sorted(set(recent))])
    return pa.table(
        {
            "id": [f"m{k}" for k in range(messages)],
            "causes": pa.array(causes, pa.list_(pa.string())),
            "send_time": pa.array(np.arange(messages) * 1_000_000_000),
        }
    )


def count_declared(messages: int) -> None:
    rules = ["linear", "arrival", "timestamp"]
    lines = []
    for kind in ("chain", "replies", "merges", "graph"):
        measure(make_threads(kind, 50), rules)  # compile
        for count in (messages // 4, messages // 2, messages):
            events = make_threads(kind, count)
            begin = time.perf_counter()
            found = measure(events, rules).to_pylist()
            took = time.perf_counter() - begin
            pairs = f"{found[0]['causal']:,}"
            lines.append((kind, f"{count:,}", pairs, f"{took:.2f}", f"{1e6 * took / count:.1f}"))
    print("declared causes, three rules")
    print(table(("causes", "messages", "causal pairs", "s", "us a message"), lines))


def _count_observers(events: pa.Table) -> Sequence[ObserverMessages]:
    (run,) = runs_of(events)
    return list(select_observed(run, _NAMES[SENDERS:], BOUNDS, SUBSCRIBED))


def count_on_spark(events: pa.Table, rules: Sequence[str]) -> None:
    from antecede.spark import local_session
    from antecede.spark.audits.false_causality import find_violations, measure_false_causality

    spark = local_session(2, partitions=4, memory="2g")
    with tempfile.TemporaryDirectory(prefix="antecede-") as folder:
        pq.write_table(events, f"{folder}/trace.parquet", compression="zstd")
        df = spark.read.parquet(folder)
        options: dict[str, Any] = {"bounds": BOUNDS, "subscriptions": SUBSCRIBED}
        lines = []
        for name in ["arrival", *rules]:  # the first one starts the workers, and counts for nothing
            begin = time.perf_counter()
            found = measure_false_causality(
                df, rules=[name], observers=_NAMES[SENDERS:], **options
            ).collect()
            took = time.perf_counter() - begin
            lines.append((name, f"{took:.1f}", f"{sum(row.ordered for row in found):,}"))
        print(table(("rule", "s", "pairs ordered"), lines[1:]))
        begin = time.perf_counter()
        measure_false_causality(df, observers=_NAMES[SENDERS:], **options).collect()
        print(f"all {len(RULES)} rules at once: {_format_elapsed(begin)}")
        begin = time.perf_counter()
        early = find_violations(df).count()
        print(f"causal violations: {early:,}, {_format_elapsed(begin)}")
    spark.stop()


def _format_elapsed(begin: float) -> str:
    return f"{time.perf_counter() - begin:.1f} s"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--spark", action="store_true", help="also on a local Spark with two cores")
    args = parser.parse_args(arguments)
    small = make_trace(200)
    for one in _count_observers(small):  # compile
        for name in RULES:
            count_pairs(one.timestamps, name)
            estimate_all_pairs_s(one.timestamps, name, 200)
    list(find_in_events(small))
    events = make_trace(args.messages)
    count_locally(events, args.messages)
    count_declared(2 * args.messages)
    if args.spark:
        count_on_spark(events, tuple(RULES))


if __name__ == "__main__":
    main()
