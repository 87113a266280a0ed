"""Hostile files: read in linear time and bounded memory, or rejected with a line."""

from __future__ import annotations

import contextlib
import gzip
import json
import resource
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from antecede.errors import FormatError
from antecede.tables.trace.arrow import Trace, read
from antecede.tables.trace.formats import irc, shiviz
from antecede.tables.trace.user_tables.chosen_columns import MAX_COLUMNS
from tests.tables.trace.files import write_file

MBOX = "From a@b Mon Jan  1 00:00:00 2024\nMessage-ID: <1@x>\n"
CLOCK = 'a {"a":1}\nstart\n'
SPAN = '[{"traceId":"1","id":"1"'
CASES: dict[str, Callable[[int], str]] = {
    "one line.csv": lambda n: "id,after\n" + "x" * n + ",y\nb,a\n",
    "cells.csv": lambda n: "id,after\n" + "," * n + "\nb,a\n",
    "unclosed quotes.csv": lambda n: "id,after\n" + '"x\n\n' * (n // 10) + "b,a\n",
    "a quote over all lines.csv": lambda n: 'id,after\n"' + "x\n" * (n // 10),
    "digits.csv": lambda n: f"id,after,time\na,,{'9' * n}\nb,a,1e{'9' * 30}\n",
    "list in a cell.csv": lambda n: 'id,after\na,"' + "[" * n + '"\nb,a\n',
    "nested.jsonl": lambda n: '{"id":"a","x":' + "[" * n + "]" * n + '}\n{"id":"b"}\n',
    "digits.jsonl": lambda n: '{"id":"a"}\n{"id":"b","seq":' + "9" * n + "}\n",
    "references.mbox": lambda n: MBOX + "References: " + "<a@b> " * (n // 6) + "\n\nx\n",
    "brackets.mbox": lambda n: MBOX + f"From: {'<' * n}\nDate: {'(' * (n // 10)}\n\nx\n",
    "quotes.mbox": lambda n: MBOX + "From: " + '"a\\' * (n // 3) + "\n\nx\n",
    "encoded.mbox": lambda n: MBOX + "From: " + "=?utf-8?q?a?= " * (n // 14) + "\n\nx\n",
    "folded.mbox": lambda n: MBOX + "References: <a@b>\n" + " <a@b>\n" * (n // 7) + "\nx\n",
    "blanks.log": lambda n: CLOCK + "x\n" + " " * n + '\nb {"b":1}\ny\n',
    "line ends.log": lambda n: CLOCK + "\n" * n + 'b {"b":1}\ny\n',
    "clock of blanks.log": lambda n: CLOCK + 'b {"b":1,' + " " * n + '"a":1}\ny\n',
    "open clocks.log": lambda n: CLOCK + 'a {"a":\n' * (n // 8),
    "spans.json": lambda n: SPAN + "}" + ',{"traceId":"1","id":"2"}' * (n // 25) + "]",
    "nested span.json": lambda n: SPAN + ',"tags":' + "[" * n + "]" * n + "}," + SPAN[1:] + "}]",
    "open string.json": lambda n: SPAN + ',"name":"' + "x" * n,
    "blanks.json": lambda n: SPAN + "}" + " " * n + "]",
    "digits.json": lambda n: SPAN + ',"timestamp":' + "9" * n + "}]",
    "brackets.json": lambda n: SPAN + "}" + ",[" * n,
    "bad objects.json": lambda n: SPAN + "}" + ",{" * (n // 10),
    "bad keys.json": lambda n: SPAN + "}" + ',{"a" ' * (n // 20),
    "otlp.json": lambda n: '{"resourceSpans":[{"scopeSpans":[' + "{" * n,
}
UPLINK = '{"devEUI":"d","fCnt":1,"rxInfo":['
CHAT = "[12:00] <ann> "
SINGLE = {
    "one line.tsv": lambda n: "commit\tparents\n" + "x" * n + "\ty\nb\ta\n",
    "tabs.tsv": lambda n: "commit\tparents\nb\ta" + "\t" * n + "\n",
    "columns.tsv": lambda n: "commit\tparents" + "\tx" * n + "\nb\ta\n",
    "parents.tsv": lambda n: "commit\tparents\nb\t" + "ab " * n + "\nc\tb\n",
    "tiny lines.tsv": lambda n: "commit\tparents\n" + "b\ta\n" * (n // 10) + "\n" * n,
    "one line.ndjson": lambda n: UPLINK + "]}\n" + "x" * n + "\n",
    "gateways.ndjson": lambda n: UPLINK + '{"gatewayID":"g"},' * (n // 20) + "1]}\n",
    "few gateways.ndjson": lambda n: (UPLINK + '{"gatewayID":"g"},' * 99 + "1]}\n") * (n // 2000),
    "nested.ndjson": lambda n: UPLINK + "]}\n" + UPLINK + "[" * n + "\n",
    "tiny lines.ndjson": lambda n: UPLINK + "]}\n" + "{}\n" * (n // 10) + "\n" * n,
    "devices.ndjson": lambda n: "".join(
        f'{{"devEUI":"{k}","fCnt":{k % 7},"rxInfo":[]}}\n' for k in range(n // 20)
    ),
    "resets.ndjson": lambda n: "".join(
        f'{{"devEUI":"d","fCnt":{5000 * (k % 7)},"rxInfo":[]}}\n' for k in range(n // 20)
    ),
}
PAIRS: dict[str, Callable[[int], tuple[str, str]]] = {
    "one line": lambda n: ("0 1 -\n", CHAT + "x" * n + "\n" + CHAT + "y\n"),
    "nick": lambda n: ("0 1 -\n", "[12:00] <" + "x" * n + "\n[12:00] * " + " " * n + "\n"),
    "one link": lambda n: ("0 1 -\n" + "9" * n + " 1 -\n" + "0" + " " * n + "1 -\n", CHAT + "\n"),
    "tiny lines": lambda n: ("0 1 -\n" + "\n" * (n // 2), "\n" * (n // 2)),
    "links": lambda n: ("".join(f"0 {k} -\n" for k in range(n // 20)), (CHAT + "\n") * (n // 20)),
    "links to one": lambda n: (
        "".join(f"{k} {n // 10} -\n" for k in range(n // 10)),
        (CHAT + "\n") * (n // 10 + 1),
    ),
    "links beyond": lambda n: ("".join(f"0 {k} -\n" for k in range(n // 10)), CHAT + "\n"),
}
CASES |= SINGLE
SIZE = 100_000


def cpu_s(path: Path) -> float:
    """Return the processor time of reading or rejecting a file, children included."""
    begin = time.process_time() + resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    with contextlib.suppress(FormatError):
        read([path])
    return time.process_time() + resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - begin


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_time_grows_with_the_size_of_a_file_and_not_with_its_square(
    name: str, tmp_path: Path
) -> None:
    small, large = tmp_path / f"small {name}", tmp_path / f"large {name}"
    small.write_text(CASES[name](SIZE))
    large.write_text(CASES[name](8 * SIZE))
    cpu_s(small)  # imports on first use
    base = min(cpu_s(small) for _ in range(2))
    assert cpu_s(large) < 24 * base + 1.0  # linear is 8, quadratic 64


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_the_same_of_a_chat_log_and_its_annotation(name: str, tmp_path: Path) -> None:
    paths = []
    for size in (SIZE, 8 * SIZE):
        annotation, log = PAIRS[name](size)
        (tmp_path / f"{size}.ascii.txt").write_text(log)
        paths.append(tmp_path / f"{size}.annotation.txt")
        paths[-1].write_text(annotation)
    base = min(cpu_s(paths[0]) for _ in range(3))
    assert cpu_s(paths[1]) < 24 * base + 1.0


@pytest.mark.parametrize(
    ("name", "begin", "unit", "end"),
    [
        ("x.tsv", "commit\tparents\nb\ta\t", "x", ""),
        ("x.ndjson", UPLINK + "]}\n" + UPLINK, "0,", "0]}"),
        ("x.ascii.txt", CHAT, "x", ""),
    ],
)
def test_a_line_of_50_mb_is_cut(name: str, begin: str, unit: str, end: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(begin + unit * (50_000_000 // len(unit)) + end)
    (tmp_path / "x.annotation.txt").write_text("0 0 -\n")
    found = read([tmp_path / name]).events
    assert found.num_rows == 1
    assert len(str(found["text"].to_pylist()[0])) < 1 << 24


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "commit\tparents\nb\t" + "ab " * (1 << 17) + "\nc\tb\n",
            "too many parents; at most 65,536 are read",
        ),
        (
            UPLINK + "]}\n" + UPLINK + '{"gatewayID":"g"},' * 5000 + "1]}\n",
            "rxInfo has more than 4,096 gateways",
        ),
    ],
)
def test_a_record_of_too_many_is_set_aside_with_its_line(
    text: str, reason: str, tmp_path: Path
) -> None:
    path = write_file(tmp_path, text, "x")
    found = read([path])
    assert found.events.num_rows == 1
    assert found.quarantine["reason"].to_pylist() == [reason]
    assert found.quarantine["line"].to_pylist() == [2]


def test_columns_and_links_have_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_file(tmp_path, "commit\tparents" + "\tx" * 4096 + "\nb\ta\n", "x.tsv")
    with pytest.raises(FormatError, match="more than 4,096 columns"):
        read([path])
    monkeypatch.setattr(irc, "MAX_LINKS", 3)
    (tmp_path / "x.ascii.txt").write_text((CHAT + "x\n") * 9)
    path = write_file(tmp_path, "0 1 -\n0 2 -\n0 3 -\n", "x.annotation.txt")
    assert read([path]).events.num_rows == 4
    path.write_text("0 1 -\n0 2 -\n0 3 -\n0 4 -\n")
    with pytest.raises(FormatError, match="more than 3 links") as raised:
        read([path])
    assert raised.value.line == 4


def bomb(path: Path, head: str, unit: bytes, mib: int) -> Path:
    with gzip.open(path, "wb", compresslevel=6) as file:
        file.write(head.encode())
        block = unit * ((1 << 20) // len(unit))
        for _ in range(mib):
            file.write(block)
    return path


def peak_mib(path: Path) -> tuple[float, Trace | FormatError]:
    tracemalloc.start()
    try:
        found: Trace | FormatError = read([path])
    except FormatError as error:
        found = error
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / (1 << 20), found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "head", "unit"),
    [
        ("x.csv.gz", "id,after\na,\n", b"\0"),
        ("x.jsonl.gz", '{"id":"a"}\n', b"\0"),
        ("x.mbox.gz", MBOX + "\n", b"\0"),
        ("y.mbox.gz", MBOX, b"X-Long: " + b"y" * 1000 + b"\n"),
        ("x.json.gz", SPAN + "},", b" "),
        ("y.json.gz", SPAN + ',"name":"', b"\0"),
    ],
)
def test_a_small_file_that_unpacks_to_much_takes_little_memory(
    name: str, head: str, unit: bytes, tmp_path: Path
) -> None:
    path = bomb(tmp_path / name, head, unit, 160)
    assert path.stat().st_size < 1 << 20
    peak, found = peak_mib(path)
    assert peak < 100
    if isinstance(found, Trace):
        assert found.events.num_rows == 1


def test_a_log_that_is_too_large_to_be_matched_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shiviz, "MAX_BYTES", 1 << 20)
    path = bomb(tmp_path / "x.log.gz", CLOCK, b"\0" * 63 + b"\n", 50)
    peak, found = peak_mib(path)
    assert isinstance(found, FormatError)
    assert "exceeds 1 MiB" in found.message
    assert found.line is not None
    assert peak < 20


@pytest.mark.slow
def test_names_in_the_place_of_values_are_refused_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    rows = [json.dumps({"id": str(k), f"k{k}": 1}) for k in range(3 * MAX_COLUMNS)]
    path.write_text("\n".join(rows))
    begin = time.process_time()
    with pytest.raises(FormatError, match="more than 4,096 different columns") as raised:
        read([path])
    assert raised.value.line == MAX_COLUMNS
    assert time.process_time() - begin < 5
    path.write_text("\n".join(rows[: MAX_COLUMNS - 1]))
    assert read([path]).events.num_rows == MAX_COLUMNS - 1
