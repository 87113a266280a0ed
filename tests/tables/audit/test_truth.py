"""Every figure of GROUND_TRUTH.json for clock logs, mail, commits and spans is reproduced."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from antecede.tables.audit import audit
from antecede.tables.kernels.graph import build_graph
from antecede.tables.kernels.pairs import count_pairs
from antecede.tables.trace.arrow import read
from antecede.tables.trace.reader import ReadOptions
from tests.tables.causality.test_truth import LOGS

LISTS = ("linux-edac", "linux-hwmon", "linux-watchdog", "speakup")
REPOSITORIES = ("corosync", "partisan", "simblock")
TRACES = ("onlineboutique-03_53", "onlineboutique-17_00", "trainticket-08_50")
FILES = (
    *((f"shiviz/{name}.log", "shiviz") for name in LOGS),
    *((f"lore/{name}.jsonl.gz", "mail") for name in LISTS),
    *((f"gitdag/{name}.tsv.gz", "git") for name in REPOSITORIES),
    *((f"traces/{name}.csv.gz", "spans") for name in TRACES),
    ("crdt/clownschool.json.gz", "editing"),
)

NAMES = {"max_parents": "max_causes"}
"""Key of the ground truth -> key of the report."""


@pytest.fixture(scope="module")
def truth(shared_data: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((shared_data / "GROUND_TRUTH.json").read_text())
    return loaded


@pytest.mark.few(1)
@pytest.mark.parametrize(("name", "format"), FILES)
def test_details_and_keys(name: str, format: str, shared_data: Path, truth: dict[str, Any]) -> None:
    report = audit([shared_data / name])
    assert report.format == format
    found = report.to_dict()
    details = {NAMES.get(key, key): value for key, value in truth[name].items()}
    assert {key: found["details"].get(key) for key in details} == details
    for key in ("duplicates", "edges", "immediate_edges", "redundant_edges", "merges", "roots"):
        if key in truth[name]:
            assert found[key] == truth[name][key]
    json.dumps(found)  # the report is plain numbers, text, lists and maps


@pytest.mark.slow
def test_keys_of_a_list(shared_data: Path, truth: dict[str, Any]) -> None:
    name = "lore/linux-hwmon.jsonl.gz"
    report, true = audit([shared_data / name]), truth[name]
    assert report.messages == true["distinct_ids"]
    assert report.members == true["senders"]
    assert report.edges == report.immediate_edges == true["reply_edges"]
    assert report.missing_causes == true["missing_parent"]
    assert report.inversions["arrival"] == true["reply_before_parent_by_arrival_time"]
    assert report.inversions["ingest"] == true["reply_before_parent_by_ingest_seq"]
    assert report.inversions["send_time"] == true["reply_dated_before_parent"]
    n = report.messages
    assert report.ordered_pairs is not None
    assert report.concurrent_pairs is not None
    assert report.ordered_pairs + report.concurrent_pairs == n * (n - 1) // 2
    assert report.clock_inconsistencies is None


@pytest.mark.parametrize("name", LOGS)
def test_keys_of_a_log(name: str, shared_data: Path, truth: dict[str, Any]) -> None:
    report, true = audit([shared_data / f"shiviz/{name}.log"]), truth[f"shiviz/{name}.log"]
    assert (report.messages, report.members) == (true["events"], true["hosts"])
    steps = true["events"] - true["hosts"]
    assert report.redundant_edges == steps + true["message_edges"] - true["immediate_edges"]
    # tsviz: threads of one machine, so of one clock, whose readings the log holds
    times = {"send_time": 0} if name.startswith("tsviz") else {}
    listed = {"file_order": true["message_receive_listed_before_send"]}
    assert report.inversions == times | listed
    assert report.clock_inconsistencies == []
    assert report.roots is None
    assert report.missing_causes is None


@pytest.mark.parametrize("name", LOGS)
def test_the_expression_by_hand_gives_the_same(
    name: str, shared_data: Path, truth: dict[str, Any]
) -> None:
    path = shared_data / f"shiviz/{name}.log"
    given = truth[f"shiviz/{name}.log"]["regex"]
    python = given.replace("(?<", "(?P<")
    looked = read([path]).events
    for spelling in (given, python):
        assert read([path], "shiviz", ReadOptions(regex=spelling)).events.equals(looked)


@pytest.mark.parametrize(
    ("name", "events", "hosts", "runs"),
    [
        ("ewd998", 990, 7, 3),
        ("facebook", 47, 4, 1),
        ("facebook-multiple", 88, 4, 2),
        ("multiple-comparison", 40, 3, 5),
        ("reliable-broadcast", 116, 4, 1),
        ("simple-reliable-broadcast", 39, 3, 1),
        ("voldemort", 864, 20, 1),
        ("voldemort-simple-threadnames", 863, 19, 1),
    ],
)
def test_dialects_found_by_looking(
    name: str, events: int, hosts: int, runs: int, shared_data: Path
) -> None:
    report = audit([shared_data / f"shiviz/{name}.log"])
    assert (report.messages, report.members) == (events, hosts)
    assert report.details["executions"] == runs
    assert report.clock_inconsistencies == []
    text = read([shared_data / f"shiviz/{name}.log"]).events["text"].to_pylist()
    assert not any(str(line).startswith(("[2013", "24.22")) for line in text)


@pytest.mark.slow
def test_mailbox_and_archive_of_one_list_agree(shared_data: Path) -> None:
    """The mailbox adds the nearest known ancestor if the parent mail is missing."""
    archive = audit([shared_data / "lore/speakup.jsonl.gz"])
    mbox = audit([shared_data / "lore/speakup.mbox.gz"])
    assert mbox.format == "mail"
    same = {"messages", "distinct_ids", "duplicates", "no_id", "senders", "missing_parent"}
    for key in same | {"self_reply", "max_date_inversion_s", "dated_after_arrival"}:
        assert mbox.details[key] == archive.details[key], key
    added = mbox.details["nearest_ancestors"]
    assert mbox.edges == archive.edges + added

    with gzip.open(shared_data / "lore/speakup.jsonl.gz") as file:
        references = {row["id"]: row["refs"] for row in map(json.loads, file)}
    declared: dict[str, list[str]] = {}
    for row in read([shared_data / "lore/speakup.jsonl.gz"]).events.to_pylist():
        declared.setdefault(row["id"], row["causes"])
    first: dict[str, list[str]] = {}
    for row in read([shared_data / "lore/speakup.mbox.gz"]).events.to_pylist():
        first.setdefault(row["id"], [parent.removesuffix("@x") for parent in row["causes"]])
    bridged = 0
    for name, parents in declared.items():
        found = first[f"{name}@x"]
        known = [one for one in references[name] if one in declared]
        gap = parents and parents[0] not in declared and known
        assert found == [*parents, *(known[-1:] if gap else ())]
        bridged += bool(gap)
    assert bridged == added


def test_concurrent_editing_by_the_kernels_alone(shared_data: Path, truth: dict[str, Any]) -> None:
    """The counts without the reader are the same."""
    with gzip.open(shared_data / "crdt/clownschool.json.gz") as file:
        changes = json.load(file)["txns"]
    pairs = [(child, parent) for child, c in enumerate(changes) for parent in c["parents"]]
    child, parent = np.array(pairs, dtype=np.int64).T
    counted = count_pairs(build_graph(len(changes), child, parent))
    true = truth["crdt/clownschool.json.gz"]
    assert counted.concurrent == true["concurrent_pairs"]
    assert len(pairs) - counted.redundant.sum() == true["immediate_edges"]


def test_spans_as_a_table_of_the_users_own_columns(
    shared_data: Path, truth: dict[str, Any]
) -> None:
    name = "traces/onlineboutique-03_53.csv.gz"
    columns = {
        "id": ("SpanID",),
        "causes": ("ParentID",),
        "member": ("PodName",),
        "start_time": ("StartTimeUnixNano",),
    }
    report, true = audit([shared_data / name], "table", ReadOptions(columns=columns)), truth[name]
    assert (report.messages, report.members) == (true["spans"], true["processes"])
    assert (report.edges, report.cross_member_edges) == (
        true["parent_edges"],
        true["cross_process_edges"],
    )
    assert report.inversions["start_time"] == true["child_starts_before_parent"]
    assert report.details["max_inversions"]["start_time"] == true["max_skew_ns"]
