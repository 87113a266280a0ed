"""Pairs counted from labels, against GROUND_TRUTH.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from antecede.tables.causality import add_causal_labels, concurrent, happened_before, past_size
from antecede.tables.trace.arrow import read

LOGS = (
    "RpcClientServer",
    "chord",
    "shiviz_all_services",
    "simpledb",
    "tsviz_fslock_24t_4sp",
    "tsviz_shared_var_4_threads",
)
DAGS = (
    "crdt/clownschool.json.gz",
    "gitdag/corosync.tsv.gz",
    "gitdag/partisan.tsv.gz",
    "gitdag/simblock.tsv.gz",
)


def stamps_of(data: Path, name: str) -> tuple[Any, dict[str, int]]:
    truth = json.loads((data / "GROUND_TRUTH.json").read_text())[name]
    events: Any = read([data / name]).events
    if not name.startswith("shiviz/"):
        made = add_causal_labels(events, id="id", after="causes")
    else:
        pair = [events[f"clock_{what}"].combine_chunks() for what in ("members", "counts")]
        clock = pa.StructArray.from_arrays(pair, ["members", "counts"])
        made = add_causal_labels(
            events.append_column("vector", clock), clock="vector", member="member"
        )
    stamps: Any = made["causal_label"].combine_chunks()
    return stamps.drop_null(), truth


@pytest.mark.parametrize("name", [*(f"shiviz/{log}.log" for log in LOGS), *DAGS])
def test_pairs(name: str, shared_data: Path) -> None:
    stamps, truth = stamps_of(shared_data, name)
    n = len(stamps)
    ordered = pc.sum(past_size(stamps)).as_py()
    assert n * (n - 1) // 2 - ordered == truth["concurrent_pairs"]
    if "ordered_pairs" in truth:
        assert ordered == truth["ordered_pairs"]


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["shiviz/chord.log", "shiviz/simpledb.log", DAGS[3]])
def test_pairs_one_by_one(name: str, shared_data: Path) -> None:
    stamps, truth = stamps_of(shared_data, name)
    before, apart = 0, 0
    for one in stamps:
        left = pa.array([one.as_py()] * len(stamps), stamps.type)
        before += pc.sum(happened_before(left, stamps)).as_py()
        apart += pc.sum(concurrent(left, stamps)).as_py()
    n = len(stamps)
    assert apart == 2 * truth["concurrent_pairs"]
    assert before == n * (n - 1) // 2 - truth["concurrent_pairs"]
