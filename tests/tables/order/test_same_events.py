"""Equal counts of events and causes by `audit`, `meter` and `order`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antecede.cli import main
from antecede.errors import InputError
from antecede.tables.audit import audit_events
from antecede.tables.false_causality.summary import summarize
from antecede.tables.order.trace_order import order_trace, prepare
from antecede.tables.trace.arrow import QUARANTINE_SCHEMA, Trace, to_batch
from antecede.tables.trace.evidence import NONE, source_in
from antecede.tables.trace.schema import DELIVER, EVENT, RECEIVE, Event

IDS = ("a", "b", "c", "d", "")
CAUSES = (*IDS, " ", "gone")

ROW = st.tuples(
    st.sampled_from(("r", "s")),
    st.sampled_from((EVENT, EVENT, RECEIVE, DELIVER)),
    st.sampled_from(IDS),
    st.lists(st.sampled_from(CAUSES), max_size=4).map(tuple),
)


def count_expected(given: list[Event]) -> tuple[int, int, int, int, int]:
    """Return events, missing references, self-references, repeats and blanks; naively."""
    first: dict[Any, Event] = {}
    for second_hand in (False, True):
        for row in given:
            if row.id and (row.kind != EVENT) == second_hand:
                first.setdefault((row.run, row.id), row)
    blank = repeated = selfish = 0
    causes: dict[Any, set[Any]] = {}
    for key, row in first.items():
        named = [name for name in row.causes if name.strip()]
        blank += len(row.causes) - len(named)
        selfish += int(row.id in named)
        others = [name for name in named if name != row.id]
        repeated += len(others) - len({*others})
        causes[key] = {(row.run, name) for name in others}
    reach = {key: set(found) for key, found in causes.items()}
    for _ in first:
        for key, found in reach.items():
            reach[key] = found.union(*(reach.get(one, set()) for one in found))
    kept = {key for key in first if key not in reach[key]}
    nowhere = sum(len(causes[key] - kept) for key in kept)
    return len(kept), nowhere, selfish, repeated, blank


@pytest.mark.slow
@settings(max_examples=50)
@given(st.lists(ROW, min_size=1, max_size=8))
def test_all_three_count_the_same_sets(given: list[tuple[str, str, str, tuple[str, ...]]]) -> None:
    rows = [
        Event(run=run, kind=kind, id=name, member="P", causes=causes, file_order=k)
        for k, (run, kind, name, causes) in enumerate(given)
    ]
    table = pa.Table.from_batches([to_batch(rows)])
    wanted = count_expected(rows)

    audit = audit_events(table)
    details = audit.details
    assert wanted == (
        audit.messages,
        audit.missing_causes,
        audit.self_causes,
        details["repeated_causes"],
        details["blank_causes"],
    )
    if source_in(table) == NONE:
        with pytest.raises(InputError, match="no data on causality"):
            summarize(table)
        return
    meter = summarize(table)
    counted = {row["run"]: row["events"] for row in meter.counts.to_pylist()}
    assert wanted == (sum(counted.values()), len(meter.absent), *meter.causes[:3])

    prepared = prepare(Trace(table, QUARANTINE_SCHEMA.empty_table(), "table"))
    ordered = order_trace(prepared).events
    missing = sum(len(names or ()) for names in ordered[prepared.spec.missing_causes].to_pylist())
    assert wanted == (ordered.num_rows, missing, *prepared.causes[:3])


def test_a_table_as_read_is_counted_alike_and_each_summary_says_what_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.jsonl"
    causes = {
        "a": [],
        "b": ["b", "a"],
        "c": ["a", "a"],
        "d": ["gone", "gone", "b"],
        "e": ["e"],
        "f": ["", "  ", None, "a"],
        "": ["a"],
        "p": ["q"],
        "q": ["p"],
        "r": ["q"],
    }
    rows = [{"id": name, "after": after} for name, after in causes.items()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = {}
    for words in (["audit"], ["false-causality"], ["order", "-o", str(tmp_path / "out.jsonl")]):
        assert main([words[0], str(path), *words[1:]]) == 0
        said[words[0]] = " ".join(capsys.readouterr().out.split())  # however wide the terminal
    assert "table, 7 events" in said["audit"]
    assert "1 observer, 7 messages" in said["false-causality"]
    assert "ordered 7 events" in said["order"]
    assert "2 references to 2 ids not in the trace" in said["audit"]
    assert (
        "2 references to causes without a counted row: d names gone, r names q"
        in (said["false-causality"])
    )
    assert "2 events with causes that are not in the trace: 2 references" in said["order"]
    for text in said.values():
        assert "2 references of events to themselves" in text
        assert "2 causes repeated within an event" in text
        assert "3 blanks among the causes" in text
