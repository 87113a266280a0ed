"""Annotated chat logs: lines, links, pairs of files, defects."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from antecede.errors import FormatError, InputError
from antecede.tables.audit import audit
from antecede.tables.trace.arrow import read
from tests.tables.trace.files import get_column, list_quarantined, write_file

LOG = """[23:58] <ann> does it run?
=== eve [~eve@example.org] has joined #talk
[23:59] <bob>  on what?
[00:00] <eve> hi
=== eve is now known as adam
[00:01]  * ann sighs
[00:02] <ann> on anything
[00:03] <nobody> asked me
"""
LINKS = "0 2 - \n2 6 -\n0 6 -\n3 3 -\n1 1 -\n4 5 - \n"


def write_log(
    folder: Path, log: str = LOG, links: str = LINKS, name: str = "2004-11-15_03"
) -> Path:
    (folder / f"{name}.ascii.txt").write_text(log)
    path = folder / f"{name}.annotation.txt"
    path.write_text(links)
    return path


def test_lines_links_and_members(tmp_path: Path) -> None:
    trace = read([write_log(tmp_path)])
    assert trace.format == "irc"
    assert get_column(trace, "id") == ["0", "2", "3", "4", "5", "6"]
    assert get_column(trace, "causes") == [[], ["0"], [], [], ["4"], ["2", "0"]]
    assert get_column(trace, "member") == ["ann", "bob", "eve", None, "ann", "ann"]
    assert get_column(trace, "text")[:2] == ["does it run?", " on what?"]
    assert get_column(trace, "text")[3:5] == ["=== eve is now known as adam", "sighs"]
    assert get_column(trace, "line") == [1, 3, 4, 5, 6, 7]
    assert set(get_column(trace, "run")) == {"2004-11-15_03"}
    assert set(get_column(trace, "kind")) == {"send"}
    assert list_quarantined(trace) == []


def test_lines_that_are_no_events_are_counted(tmp_path: Path) -> None:
    details = read([write_log(tmp_path)]).details
    assert details["system_lines"] == 1  # eve joins, annotated as no reply
    assert details["lines_not_annotated"] == 1
    assert details["context_lines"] == 2  # lines 0 and 4 have no annotated causes
    assert details["links_to_later_lines"] == details["repeated_links"] == 0


def test_no_time_is_invented(tmp_path: Path) -> None:
    events = read([write_log(tmp_path)]).events
    for name in ("send_time", "arrival", "start_time", "commit_time"):
        assert events[name].null_count == len(events)


def test_either_file_the_folder_and_compressed_ones_read_the_same(tmp_path: Path) -> None:
    annotation = write_log(tmp_path)
    log = tmp_path / "2004-11-15_03.ascii.txt"
    one = read([annotation]).events
    assert read([log]).events.equals(one)
    assert read([tmp_path]).events.equals(one)
    assert read([annotation, log]).events.equals(one)
    for path in (annotation, log):
        (tmp_path / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    for path in sorted(tmp_path.iterdir()):
        assert read([path]).events.drop_columns("source").equals(one.drop_columns("source"))


def test_a_folder_of_several_logs_keeps_them_apart(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    for name in ("b", "a"):
        write_log(tmp_path / "dev", name=name)
    trace = read([tmp_path])
    assert get_column(trace, "run") == ["a"] * 6 + ["b"] * 6
    report = audit([tmp_path])
    assert (report.messages, report.edges, report.duplicates) == (12, 8, 0)


def test_raw_text_goes_before_plain_ascii(tmp_path: Path) -> None:
    annotation = write_log(tmp_path)
    (tmp_path / "2004-11-15_03.raw.txt").write_text(LOG.replace("ann", "änn"))
    assert get_column(read([annotation]), "member")[0] == "änn"


def test_several_annotations_of_one_log(tmp_path: Path) -> None:
    write_log(tmp_path)
    (tmp_path / "2004-11-15_03.annotation.txt").rename(tmp_path / "2004-11-15_03.annotation.x.txt")
    log = tmp_path / "2004-11-15_03.ascii.txt"
    assert set(get_column(read([log]), "run")) == {"2004-11-15_03.x"}
    write_log(tmp_path)
    with pytest.raises(FormatError, match="has several annotations"):
        read([log])


def test_bad_links_and_lines_cost_themselves(tmp_path: Path) -> None:
    links = "0 2 -\nnonsense\n2 6\n-1 2 -\n2 99 -\n50 2 -\n2 6 -\n2 6 -\n" + "9" * 30 + " 1 -\n"
    log = LOG.replace("[00:00] <eve> hi", "\x00\x01").replace("[00:03] <nobody>", "[00:03]")
    trace = read([write_log(tmp_path, log, links)])
    assert get_column(trace, "id") == ["0", "2", "6"]
    assert get_column(trace, "causes") == [[], ["0", "50"], ["2"]]
    assert trace.details["repeated_links"] == 1
    reasons = list_quarantined(trace)
    assert [line for line, _ in reasons[:4]] == [2, 3, 4, 9]
    assert all(reason.startswith("not a link") for _, reason in reasons[:4])
    assert [line for line, _ in reasons[4:6]] == [4, 8]
    assert all(reason.startswith("not a chat line") for _, reason in reasons[4:6])
    beyond = "link to a line that is not in the log: line {}; the log has lines 0 to 7"
    assert reasons[6:] == [(6, beyond.format(50)), (5, beyond.format(99))]
    assert audit([tmp_path]).missing_causes == 1


def test_a_link_to_a_later_line_is_kept_and_seen(tmp_path: Path) -> None:
    report = audit([write_log(tmp_path, links="6 2 -\n6 6 -\n")])
    assert report.details["links_to_later_lines"] == 1
    assert report.inversions["file_order"] == 1
    assert report.details["quarantine"] == {}


def test_links_in_a_circle_are_set_aside(tmp_path: Path) -> None:
    report = audit([write_log(tmp_path, links="2 6 -\n6 2 -\n0 2 -\n")])
    assert report.details["events_on_cycles"] == 2


def test_files_that_lack_their_other_half(tmp_path: Path) -> None:
    annotation = write_log(tmp_path)
    log = tmp_path / "2004-11-15_03.ascii.txt"
    other = write_file(tmp_path, LOG, "other.txt")
    with pytest.raises(FormatError, match="not a chat log"):
        read([other])
    log.unlink()
    with pytest.raises(
        FormatError, match=r"no 2004-11-15_03.raw.txt or .*ascii.txt in the same folder"
    ):
        read([annotation])
    annotation.unlink()
    log.write_text(LOG)
    with pytest.raises(FormatError, match=r"no 2004-11-15_03\.annotation\.txt in the same folder"):
        read([log])
    with pytest.raises(FormatError, match=r"no .*annotation\.txt in the same folder"):
        read([tmp_path], "irc")


def test_a_log_that_breaks_off(tmp_path: Path) -> None:
    lines = "".join(f"[10:00] <m{k}> {k * 7919 % 10007}\n" for k in range(5000))
    annotation = write_log(tmp_path, links="".join(f"{k} {k + 1} -\n" for k in range(4999)))
    whole = gzip.compress(lines.encode())
    (tmp_path / "2004-11-15_03.ascii.txt").unlink()
    (tmp_path / "2004-11-15_03.ascii.txt.gz").write_bytes(whole[: len(whole) // 2])
    trace = read([annotation])
    assert 0 < len(trace.events) < 5000
    assert sum("truncated or damaged" in reason for _, reason in list_quarantined(trace)) == 1


def test_the_real_logs(shared_data: Path) -> None:
    """Expected counts (2,607 links, and those between different lines) are from `awk`."""
    report = audit([shared_data / "irc"])
    links = [
        tuple(map(int, line.split()[:2]))
        for path in sorted((shared_data / "irc" / "dev").glob("*.annotation.txt"))
        for line in path.read_text().splitlines()
    ]
    assert len(links) == 2607
    assert report.edges == sum(cause != effect for cause, effect in links)
    assert report.missing_causes == report.self_causes == report.duplicates == 0
    assert report.details["quarantined"] == 0
    assert report.details["links_to_later_lines"] == 0
    total = report.messages + sum(
        report.details[name] for name in ("lines_not_annotated", "system_lines")
    )
    assert total == 12_500  # all lines of 10 logs of 1,250 lines


PIECES = [
    *("0 1 -", "1 1 -", "3 2 -", "2 3", "[10:00] <a> x", "[1:00] <a> x", "=== a left", "\0"),
    "9 0 -",
]
texts = st.lists(st.sampled_from([*PIECES, *LOG.splitlines()]) | st.text(max_size=5)).map("\n".join)


@given(texts, texts)
def test_any_pair_of_texts(log: str, links: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("c.ascii.txt", log), ("c.annotation.txt", links)):
            (Path(folder) / name).write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            trace = read([Path(folder) / "c.annotation.txt"], "irc")
        except InputError:
            return
    aside = [row for row in trace.quarantine.to_pylist() if row["source"].endswith("ascii.txt")]
    counted = trace.details["lines_not_annotated"], trace.details["system_lines"]
    written = log.encode("utf-8", "surrogatepass")
    lines = written.count(b"\n") + (not written.endswith(b"\n") and bool(written))
    assert len(trace.events) + len(aside) + sum(map(int, counted)) == lines


@given(st.integers(0, 7), st.integers(0, 40), st.integers(0, 9), st.binary(max_size=3))
def test_damage_in_a_line_costs_that_line(which: int, at: int, gone: int, put: bytes) -> None:
    lines = LOG.encode().splitlines()
    whole = lines[which]
    lines[which] = whole[:at] + put.replace(b"\n", b"") + whole[at + gone :]
    assume(not lines[0].startswith(b"\x1f\x8b"))  # a compressed file, not a damaged line
    links = "".join(f"{k} {k + 1} -\n" for k in range(7))
    with tempfile.TemporaryDirectory() as folder:
        write_log(Path(folder), links=links)
        (Path(folder) / "2004-11-15_03.ascii.txt").write_bytes(b"\n".join(lines))
        trace = read([folder])
    others = {str(k) for k in range(8)} - {str(which)}
    assert others <= set(get_column(trace, "id"))
