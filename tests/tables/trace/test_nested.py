"""Nested documents: the error has the format and a command whose output is readable."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from antecede.errors import FormatError
from antecede.tables.trace.arrow import read
from antecede.tables.trace.reader import ReadOptions
from tests.tables.trace.files import write_file


def lines(*records: Any) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def change(op: str, position: int, row: Any, **more: Any) -> dict[str, Any]:
    source = {"connector": "postgresql", "name": "db1", "table": "orders", "lsn": position}
    source["ts_ms"] = 1_700_000_000_000 + position
    return {"before": None, "after": row, "source": source, "op": op, "ts_ms": 1, **more}


def ids(position: int, order: int = 0) -> str:
    return f"orders:{position}-{1_700_000_000_000 + position}:{order}"


ENVELOPES = (change("c", 7, {"id": 1, "customer": 2}), change("u", 9, {"id": 1, "customer": 3}))
DELETED = change("d", 11, None) | {"before": {"id": 1}}
BINLOG = change("c", 0, "{}", source={"connector": "mysql", "file": "b.1", "pos": 4, "table": "t"})
HITS = [{"_id": "a", "_source": {"after": "b"}}, {"_id": "b", "_source": {}}]
TRAIL = {"eventID": "e1", "eventSource": "s3", "eventTime": "2024-01-01T00:00:00Z"}
POD = {"metadata": {"uid": "u1"}, "lastTimestamp": "2024-01-01T00:00:00Z", "message": "m"}
ZEEK = "#separator \\x09\n#path\tconn\n#fields\tts\tuid\tid.orig_h\n#types\ttime\tstring\taddr\n"
ZEEK += "1700000000.5\tCx\t10.0.0.1\n1700000001.5\tCy\t10.0.0.2\n#close\tx\n"
IDS = {"id": "k1", "after": None}

DOCUMENTS = {
    "debezium": (lines(*ENVELOPES, DELETED), "Debezium", [ids(7), ids(9), ids(11)]),
    "schemas": (
        lines(*({"schema": {}, "payload": one} for one in ENVELOPES)),
        "Debezium",
        [ids(7), ids(9)],
    ),
    "binlog": (lines(BINLOG), "Debezium", ["t:b.1-4:0"]),
    "transaction": (
        lines(*(change("c", 7, {}, transaction={"id": "x", "total_order": n}) for n in (1, 2))),
        "Debezium",
        [ids(7, 1), ids(7, 2)],
    ),
    "search": (
        json.dumps({"took": 1, "hits": {"total": 2, "hits": HITS}}),
        "Elasticsearch",
        ["a", "b"],
    ),
    "trail": (json.dumps({"Records": [TRAIL]}), "CloudTrail", ["e1"]),
    "kubernetes": (
        json.dumps({"kind": "List", "apiVersion": "v1", "items": [POD]}, indent=2),
        "Kubernetes",
        ["u1"],
    ),
    "array": (json.dumps([IDS, {"id": "k2"}]), "one list of objects", ["k1", "k2"]),
    "document": (
        json.dumps({"meta": {"tags": [{"k": 1}]}, "data": {"my-rows": [IDS]}}, indent=2),
        "a list of objects under data.my-rows",
        ["k1"],
    ),
    "pretty": (
        json.dumps(IDS, indent=2) + "\n" + json.dumps(IDS | {"id": "k2"}, indent=2),
        "several lines",
        ["k1", "k2"],
    ),
    "nested": (
        lines({"level": "x", "msg": {"body": {"event_id": "k1"}}}),
        "msg.body.event_id",
        ["k1"],
    ),
}


def run(command: str, folder: Path) -> None:
    for tool in ("jq", "awk", "zcat"):
        if tool in command.split() and shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    subprocess.run(["sh", "-c", command], cwd=folder, check=True, timeout=60)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_command_in_the_error_makes_a_table(name: str, packed: bool, tmp_path: Path) -> None:
    content, described, expected = DOCUMENTS[name]
    path = tmp_path / f"it's {name}.json{'.gz' if packed else ''}"
    path.write_bytes(gzip.compress(content.encode()) if packed else content.encode())
    with pytest.raises(FormatError) as caught:
        read([path])
    message = str(caught.value)
    assert described in message
    command = re.search(r"(?:zcat|jq) .* > flat\.jsonl(?=, then read flat\.jsonl)", message)
    assert command is not None
    run(command[0], tmp_path)
    flat = read([tmp_path / "flat.jsonl"])
    assert flat.format == "table"
    assert flat.events["id"].to_pylist() == expected
    assert not flat.quarantine.num_rows


def test_rows_of_change_events_keep_their_columns(tmp_path: Path) -> None:
    path = write_file(tmp_path, lines(*ENVELOPES), "d.jsonl")
    with pytest.raises(FormatError) as caught:
        read([path])
    run(str(caught.value).partition("op); run: ")[2].partition(", then read")[0], tmp_path)
    first = json.loads((tmp_path / "flat.jsonl").read_text().splitlines()[0])
    assert (first["row_id"], first["row_customer"]) == (1, 2)
    assert (first["member"], first["topic"], first["text"]) == ("db1", "orders", "c")
    flat = read([tmp_path / "flat.jsonl"], options=ReadOptions(columns={"causes": ("row_id",)}))
    assert flat.events["send_time"].to_pylist()[0] == (1_700_000_000_000 + 7) * 10**6


@pytest.mark.parametrize("packed", [False, True])
def test_zeek_logs(packed: bool, tmp_path: Path) -> None:
    path = tmp_path / f"conn.log{'.gz' if packed else ''}"
    path.write_bytes(gzip.compress(ZEEK.encode()) if packed else ZEEK.encode())
    with pytest.raises(FormatError) as caught:
        read([path])
    message = str(caught.value)
    assert "a Zeek log" in message
    assert message.endswith("then read flat.tsv --id uid --time ts")
    command = re.search(r"(?:zcat .* \| )?awk .*flat\.tsv(?=, then)", message)
    assert command is not None
    run(command[0], tmp_path)
    options = ReadOptions(columns={"id": ("uid",), "send_time": ("ts",)})
    flat = read([tmp_path / "flat.tsv"], options=options)
    assert flat.events["id"].to_pylist() == ["Cx", "Cy"]
    assert flat.events["send_time"].to_pylist()[0] == 1_700_000_000_500_000_000


def test_records_without_anything_like_an_id_list_their_columns(tmp_path: Path) -> None:
    path = write_file(tmp_path, lines({"level": "x", "msg": {"text": "y"}}), "t.jsonl")
    with pytest.raises(FormatError, match="columns are level, msg; give --id COLUMN"):
        read([path])


@pytest.mark.parametrize(
    "content",
    [
        *("{", "[", "[[[", '{"a": [{', '{"a', "[{]}", "{" * 100_000, '{"\\ud800": [{"id": 1}]}'),
        "#separator",
    ],
)
def test_broken_documents_are_refused(content: str, tmp_path: Path) -> None:
    path = write_file(tmp_path, content, "t")
    with pytest.raises(FormatError):
        read([path])


def test_an_id_of_a_trace_or_parent_is_not_the_event_s(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"trace": {"id": "t"}, "parent": {"id": "p"}, "event": {"id": "e"}}\n')
    with pytest.raises(FormatError, match=r"ids seem to be nested at event\.id"):
        read([path])
