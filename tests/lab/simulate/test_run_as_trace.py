"""A run written as a trace: `audit` counts what the simulator counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from antecede.core.protocols.base import Relation
from antecede.lab.simulate.config.model import Clocks, Links, SimulationConfig
from antecede.lab.simulate.delays import Delay
from antecede.lab.simulate.outputs.recording import Recording
from antecede.lab.simulate.outputs.trace import NS, events, write_trace
from antecede.lab.simulate.outputs.violations import check_recording, compute_pasts, find_violations
from antecede.lab.simulate.reference_engine import run_readable
from antecede.lab.simulate.topology import Mesh
from antecede.tables.audit import audit
from antecede.tables.false_causality.violations import find_in_events
from antecede.tables.trace.arrow import to_batch
from tests.lab.simulate.small_configs import config_of

NAMES = ("unordered", "fifo", "idr", "hierarchical", "sb", "ses", "linear", "htbc")


def late(run: Recording) -> set[tuple[int, int]]:
    """Return (member, message) of deliveries after something that the message is a cause of."""
    past = compute_pasts(run, Relation.BY_DELIVERY).past
    known: dict[int, int] = {}
    found = set()
    for _, member, message in run.deliveries():
        if known.get(member, 0) >> message & 1:
            found.add((member, message))
        known[member] = known.get(member, 0) | past[message]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_audit_agrees(name: str, tmp_path: Path) -> None:
    config = config_of(name, links=Links(Delay(0.0, 0.5, "uniform")), duration_s=3.0)
    workload = replace(config.workload, reply_fraction=0.5)
    result, run = run_readable(replace(config, workload=workload), 2, record=True)
    path = tmp_path / "run.parquet"
    relation = Relation.BY_REPLY if name == "sb" else run.relation
    rows = write_trace(run, path)
    report = audit([path])
    figures = result.figures
    assert report.details["rows"] == rows
    assert report.details["quarantined"] == 0
    assert report.messages == figures["sent"]
    assert report.details["receipts"] == figures["deliveries"] + figures["held_at_end"]
    assert report.details["deliveries"] == figures["deliveries"]
    if relation in (Relation.NONE, Relation.FIFO):
        relation = Relation.BY_DELIVERY
    past = compute_pasts(run, relation).past
    assert report.ordered_pairs == sum(mask.bit_count() for mask in past)
    assert report.redundant_edges == 0


@pytest.mark.parametrize("name", ["unordered", "fifo", "idr", "hierarchical"])
def test_audit_finds_what_was_delivered_late(name: str, tmp_path: Path) -> None:
    links = Links(Delay(0.0, 0.5, "uniform"))
    result, run = run_readable(config_of(name, links=links), 2, record=True)
    write_trace(run, tmp_path / "run.parquet")
    found = audit([tmp_path / "run.parquet"]).details["channels"]["deliveries"]
    assert found["copies"] == result.figures["deliveries"]
    assert found["overtaken_causally"] == len(late(run))
    early = find_violations(run, Relation.BY_DELIVERY).violations
    assert (early > 0) is (found["model"] != "causal") is (name in ("unordered", "fifo"))


def test_times_are_true_time_and_the_senders_clock() -> None:
    config = config_of("idr", clocks=Clocks(accuracy_s=0.05))
    _, run = run_readable(config, 2, record=True)
    rows = list(events(run))
    assert [row.file_order for row in rows] == list(range(len(rows)))
    arrivals = [row.arrival for row in rows]
    assert arrivals == sorted(arrivals, key=lambda time: time or 0)
    off = {
        (row.member, (row.send_time or 0) - (row.arrival or 0))
        for row in rows
        if row.kind == "send"
    }
    assert len(off) == 4  # one offset a member, as nothing drifts
    assert all(0 <= offset <= 2 * 50_000 * NS for _, offset in off)


@pytest.mark.parametrize("protocol", ["unordered", "fifo", "bss"])
def test_the_meter_counts_what_the_judge_counts_where_copies_were_lost(protocol: str) -> None:
    links = Links(Delay(0.0, 0.2), loss=0.1)
    _, run = run_readable(SimulationConfig(Mesh(5), protocol, links=links, duration_s=2.0), 3, True)
    table = pa.Table.from_batches([to_batch(list(events(run)))])
    figures, _ = check_recording(run)
    for relation in ("delivery", "receipt"):
        (found,) = find_in_events(table, relation, to_everybody=True)
        assert len(found.table) == figures[f"violations.by_{relation}"]
        assert found.checked == figures["violations.checked"]
        (seen,) = find_in_events(table, relation)
        assert len(seen.table) <= len(found.table)
        assert seen.partial > 0
