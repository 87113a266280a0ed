"""Each reader on small files: values, bad records with line and reason, good ones kept."""

from __future__ import annotations

import datetime
import gzip
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from antecede.errors import FormatError, InputError
from antecede.tables.audit.engine import audit
from antecede.tables.trace import arrow, reader
from antecede.tables.trace.arrow import SCHEMA, read, read_batches, write_events
from antecede.tables.trace.formats import safe_regex
from antecede.tables.trace.reader import Item, ReadOptions
from antecede.tables.trace.schema import NAMES, Event
from tests.tables.trace.files import get_column, list_quarantined, write_file, write_lines

S = 10**9


# --- vector-clock logs ----------------------------------------------------------------------


def test_shiviz_declared_expression_crlf_and_zero_entries(tmp_path: Path) -> None:
    expression = r"(?<event>.*)\|(?<host>\w+)\|(?<clock>{.*})"
    log = f'{expression}\r\n\r\nhi|a|{{"a":1,"b":0}}\r\nyo|b|{{"b":1,"a":1}}\r\n'
    trace = read([write_file(tmp_path, log)])
    assert trace.format == "shiviz"
    assert get_column(trace, "id") == ["a:1", "b:1"]
    assert get_column(trace, "text") == ["hi", "yo"]
    assert get_column(trace, "clock_members") == [["a"], ["b", "a"]]
    assert get_column(trace, "clock_counts") == [[1], [1, 1]]
    assert get_column(trace, "line") == [3, 4]
    assert get_column(trace, "file_order") == [0, 1]


def test_shiviz_bad_clocks_are_set_aside(tmp_path: Path) -> None:
    log = (
        'a {"a":1}\ngood\na {"a":2\nno brace\na {"a":-2}\nnegative\na {"b":3}\nnot its own\n'
        'a {"a":1.5}\nhalf\na {"a":99999999999999999999}\nabsurd\na {"a":3}\ngood\n'
    )
    trace = read([write_file(tmp_path, log)])
    assert get_column(trace, "id") == ["a:1", "a:3"]
    assert [line for line, _ in list_quarantined(trace)] == [3, 5, 7, 9, 11]
    said = ["does not match", "invalid counter", "no entry of its own", *["invalid counter"] * 2]
    assert all(
        part in reason for (_, reason), part in zip(list_quarantined(trace), said, strict=True)
    )


def test_shiviz_executions_by_the_users_delimiter(tmp_path: Path) -> None:
    log = 'a {"a":1}\nx\n-- two\na {"a":1}\ny\n--\na {"a":1}\nz\n'
    options = ReadOptions(delimiter=r"^--(?: (?<trace>\w+))?$")
    trace = read([write_file(tmp_path, log)], options=options)
    assert get_column(trace, "run") == [None, "two", "execution 2"]


@pytest.mark.parametrize(
    ("regex", "said"),
    [
        ("(?<host>", "invalid regular expression"),
        ("(?<host>a) (?<clock>b)", r"lacks the group \(\?<event>"),
    ],
)
def test_shiviz_wrong_expressions(regex: str, said: str, tmp_path: Path) -> None:
    path = write_file(tmp_path, 'a {"a":1}\nx\n')
    with pytest.raises(FormatError, match=said):
        read([path], options=ReadOptions(regex=regex))


@pytest.mark.parametrize(
    ("written_as", "expected"),
    [
        ("2024-05-04 10:00:00.25", 1_714_816_800_250_000_000),
        ("2024-05-04T12:00:00,25+02:00", 1_714_816_800_250_000_000),
        ("05/04/2024 10:00:00.25 AM", 1_714_816_800_250_000_000),
        ("5/4/2024 12:00:01 AM", 1_714_780_801_000_000_000),
        ("1714816800250", 1_714_816_800_250_000_000),
        ("1714816800250000000", 1_714_816_800_250_000_000),
        ("13/4/2024 10:00:00", None),
        ("5/4/2024 13:00:00 PM", None),
        ("yesterday", None),
        ("nan", None),
        ("inf", None),
    ],
)
@pytest.mark.parametrize("group", ["date", "timestamp"])
def test_shiviz_times_of_the_hosts_clocks_are_read(
    written_as: str, expected: int | None, group: str, tmp_path: Path
) -> None:
    expression = rf"(?<{group}>[^|]*)\|(?<event>.*)\|(?<host>\w+)\|(?<clock>{{.*}})"
    trace = read(
        [write_file(tmp_path, f'{expression}\n{written_as}|x|a|{{"a":1}}\n|y|a|{{"a":2}}\n')]
    )
    assert get_column(trace, "send_time") == [expected, None]
    assert trace.details["time_group"] == group
    assert trace.details["unreadable_times"] == (expected is None)


def test_shiviz_numbers_are_times_in_the_unit_that_is_said(tmp_path: Path) -> None:
    expression = r"(?<ts>\d+) (?<priority>\w+) (?<event>.*)\|(?<host>\w+)\|(?<clock>{.*})"
    path = write_file(tmp_path, f'{expression}\n5 INFO x|a|{{"a":1}}\n')
    trace = read([path], options=ReadOptions(time_unit="us"))
    assert get_column(trace, "send_time") == [5000]
    assert trace.details["further_groups"] == "priority"


HANGING = r"(?<host>\w+) (?<clock>{.*?})(?<event>(x+x+)+y)"


@pytest.mark.few(1)
@pytest.mark.parametrize("way", ["first line", "regex", "delimiter"])
def test_an_expression_that_never_ends_is_ended_and_its_line_named(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(safe_regex, "MATCH_TIMEOUT_S", 1.0)
    good, slow = 'a {"a":1}xxy\n', 'a {"a":2}' + "x" * 60 + "\n"
    options = {
        "first line": ReadOptions(),
        "regex": ReadOptions(regex=HANGING),
        "delimiter": ReadOptions(delimiter="(x+x+)+z"),
    }[way]
    head = f"{HANGING}\n\n" if way == "first line" else ""
    path = write_file(tmp_path, head + good + slow)
    line = {"first line": 3, "regex": 1, "delimiter": 1}[way]
    with pytest.raises(
        FormatError, match=rf":{line}: the expression finds no match .* 1 s"
    ) as told:
        read([path], "shiviz", options)
    assert told.value.line == line


@pytest.mark.slow
def test_a_line_without_spaces_is_read_in_time_that_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(safe_regex, "MATCH_TIMEOUT_S", 1.0)
    path = write_file(tmp_path, 'a {"a":1}\nx\n' + "x" * 3_000_000 + '\nb {"b":1}\ny\n')
    with pytest.raises(FormatError, match=":3: the line exceeds 4,096 characters"):
        read([path], "shiviz")


def test_an_expression_stands_for_a_log_of_vector_clocks(tmp_path: Path) -> None:
    path = write_file(tmp_path, 'at a: [{"a":1}] x\n')
    options = ReadOptions(regex=r"at (?<host>\w): \[(?<clock>{.*})\] (?<event>.*)")
    assert read([path], options=options).format == "shiviz"


# --- mail -----------------------------------------------------------------------------------

MBOX = b"""From ann@example.org Mon Jan  6 10:00:05 2020
Received: from x by y; Mon, 6 Jan 2020 11:00:01 +0100
Received: from w by x; Mon, 6 Jan 2020 09:59:00 +0000
Message-ID:
 <one@example.org>
Date: Mon, 6 Jan 2020 19:00:00 +0900
From: "Ann" <ANN@example.org>
List-Id: Talk <talk.example.org>
Subject: a long
\tsubject

Body.
From the beginning this is body, not a mail.

From bob@example.org Mon Jan  6 10:30:00 2020
message-id: <two@example.org>
References: <zero@example.org>
\t<one@example.org>
Date: yesterday
From: Bob \xe9 <bob@example.org>

From nobody@example.org Mon Jan  6 10:31:00 2020
Subject: no id

"""


def test_mbox(tmp_path: Path) -> None:
    trace = read([write_file(tmp_path, MBOX)])
    assert trace.format == "mail"
    assert get_column(trace, "id") == ["one@example.org", "two@example.org"]
    assert get_column(trace, "causes") == [[], ["one@example.org"]]
    assert get_column(trace, "member") == ["ann@example.org", "bob@example.org"]
    assert get_column(trace, "topics") == [["talk.example.org"], []]
    assert get_column(trace, "text") == ["a long subject", None]
    ten = int(datetime.datetime(2020, 1, 6, 10, tzinfo=datetime.UTC).timestamp()) * S
    assert get_column(trace, "send_time") == [ten, None]
    assert get_column(trace, "arrival") == [ten + S, ten + 1800 * S]
    assert get_column(trace, "line") == [1, 15]
    assert list_quarantined(trace) == [(22, "no id")]


def test_mail_json_lines(tmp_path: Path) -> None:
    good = {"id": "a", "parent": None, "refs": ["r"], "sender": "s", "date": 1, "arrived": 2.5}
    rows = [
        json.dumps(good),
        "{broken",
        '["no object"]',
        json.dumps(good | {"id": None}),
        "",
        json.dumps(good | {"id": "b", "parent": "a", "refs": [], "date": 10**30}),
        json.dumps(good | {"id": "\ud800"}),
    ]
    trace = read([write_lines(tmp_path / "t.jsonl", rows)])
    assert get_column(trace, "id") == ["a", "b"]
    assert get_column(trace, "causes") == [["r"], ["a"]]
    assert get_column(trace, "arrival") == [2_500_000_000] * 2
    assert get_column(trace, "send_time") == [S, None]
    assert [line for line, _ in list_quarantined(trace)] == [2, 3, 4, 7]
    assert list_quarantined(trace)[3][1].startswith("a value does not fit the schema")
    assert trace.details == {"unreadable_times": 1}


# --- git ------------------------------------------------------------------------------------


def test_commit_table(tmp_path: Path) -> None:
    table = (
        "commit\tparents\tauthor_time\tcommit_time\tauthor_id\n"
        "a\t\t1\t2\tann\nb\ta\t3\tsoon\tbob\nc\n\td\t1\t1\tx\nm\ta b\t5\t6\tann\n"
    )
    trace = read([write_file(tmp_path, table)])
    assert trace.format == "git"
    assert get_column(trace, "id") == ["a", "b", "m"]
    assert get_column(trace, "causes") == [[], ["a"], ["a", "b"]]
    assert get_column(trace, "commit_time") == [2 * S, None, 6 * S]
    assert trace.details == {"unreadable_times": 1}
    assert [line for line, _ in list_quarantined(trace)] == [4, 5]


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True
    )


def test_repository(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "first\tone")
    git(tmp_path, "switch", "-q", "-c", "side")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "aside")
    git(tmp_path, "switch", "-q", "main")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "second")
    git(tmp_path, "merge", "-q", "side", "-m", "both")
    trace = read([tmp_path])
    assert trace.format == "git"
    text = get_column(trace, "text")
    assert text[0] == "first\tone"
    assert text[-1] == "both"
    assert [len(parents) for parents in get_column(trace, "causes")] == [0, 1, 1, 2]
    assert set(get_column(trace, "member")) == {"a@example.org"}


def test_an_empty_and_a_broken_repository(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    with pytest.raises(InputError, match="no event"):
        read([tmp_path])
    (tmp_path / ".git" / "HEAD").unlink()
    with pytest.raises(InputError, match="git log failed"):
        read([tmp_path])


# --- tables ---------------------------------------------------------------------------------

COLUMNS = {"id": ("key",), "causes": ("why", "also"), "send_time": ("at",), "member": ("who",)}


def test_csv_quotes_times_and_short_rows(tmp_path: Path) -> None:
    rows = (
        "key;why;also;at;who\n"
        '1;;;2020-01-06T10:00:00.123456789Z;"a\nb"\n'
        "2;1;;2020-01-06T11:00:00.5+01:00;c\n"
        "3;2;1;never;c\n"
        "4;3\n"
        "5;;;2020-01-06 10:00:00;c\n"
    )
    trace = read([write_file(tmp_path, rows, "t.csv")], options=ReadOptions(columns=COLUMNS))
    ten = int(datetime.datetime(2020, 1, 6, 10, tzinfo=datetime.UTC).timestamp()) * S
    assert get_column(trace, "id") == ["1", "2", "3", "5"]
    assert get_column(trace, "causes") == [[], ["1"], ["2", "1"], []]
    assert get_column(trace, "send_time") == [ten + 123456789, ten + S // 2, None, ten]
    assert get_column(trace, "member") == ["a\nb", "c", "c", "c"]
    assert get_column(trace, "line") == [2, 4, 5, 7]
    assert list_quarantined(trace) == [(6, "2 cells, but the first line has 5 columns")]


def test_several_causes_in_one_cell(tmp_path: Path) -> None:
    path = write_file(tmp_path, 'id,causes\na,\nb,"[""a"", ""x""]"\nc,"a| b"\n', "t.csv")
    assert get_column(read([path]), "causes") == [[], ["a", "x"], ["a| b"]]
    split = read([path], options=ReadOptions(separator="|"))
    assert get_column(split, "causes") == [[], ["a", "x"], ["a", "b"]]


@pytest.mark.parametrize(("unit", "given"), [("s", 1.5e9), ("ms", 1.5e12), ("ns", 1.5e18)])
def test_time_units_are_told_by_size_or_by_the_user(
    unit: str, given: float, tmp_path: Path
) -> None:
    path = write_file(tmp_path, f'{{"id":"a","time":{int(given)}}}\n{{"id":"b","time":7}}\n')
    factor = int(1.5e18 / given)
    assert get_column(read([path]), "send_time") == [int(given) * factor, 7 * factor]
    as_said = read([path], options=ReadOptions(time_unit="ns"))
    assert get_column(as_said, "send_time") == [int(given), 7]


def test_json_lines_of_any_kind(tmp_path: Path) -> None:
    rows = [
        '{"event_id":1,"caused_by":[],"host":"a"}',
        *('{"event_id":2,"caused_by":[1,null],"host":null}', '{"event_id":null,"caused_by":1}'),
        *('{"event_id":3,"caused_by":{"odd":1}}', "nonsense"),
        *('{"event_id":4,"caused_by":2.0,"seq":"x"}', '{"event_id":"5","caused_by":"4"}'),
    ]
    trace = read([write_lines(tmp_path / "t.jsonl", rows)])
    assert trace.format == "table"
    assert get_column(trace, "id") == ["1", "2", "5"]
    assert get_column(trace, "causes") == [[], ["1"], ["4"]]
    assert [line for line, _ in list_quarantined(trace)] == [3, 4, 5, 6]


def test_parquet_file_and_folder(tmp_path: Path) -> None:
    when = datetime.datetime(2020, 1, 6, 10, tzinfo=datetime.UTC)
    table = pa.table(
        {
            "id": [1, 2],
            "after": [[], [1]],
            "time": pa.array([when, None], pa.timestamp("us", "Europe/Vienna")),
            "clock": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
        }
    )
    folder = tmp_path / "out"
    (folder / "_temporary").mkdir(parents=True)
    for name in ("part-0.parquet", "part-1.parquet", "_temporary/part-2.parquet"):
        pq.write_table(table, folder / name)
    one, both = read([folder / "part-0.parquet"]), read([folder])
    assert get_column(one, "id") == ["1", "2"]
    assert get_column(one, "causes") == [[], ["1"]]
    assert get_column(one, "send_time") == [int(when.timestamp()) * S, None]
    assert get_column(one, "clock_members") == [["a"], None]
    assert len(both.events) == 4
    for other in ("odd.csv", "x.quarantine.parquet"):
        (folder / other).write_bytes((folder / "part-0.parquet").read_bytes())
        with pytest.raises(FormatError, match=f"other files .*{other}; give its files one by one"):
            read([folder])
        (folder / other).unlink()
    broken = write_file(tmp_path, (folder / "part-0.parquet").read_bytes()[:200], "cut.parquet")
    with pytest.raises(FormatError, match="invalid Parquet file"):
        read([broken])


def test_a_table_that_nothing_identifies(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="give --id COLUMN"):
        read([write_file(tmp_path, "colour,size\nred,1\n", "t.csv")])


def test_member_and_number_identify(tmp_path: Path) -> None:
    trace = read([write_file(tmp_path, "member,seq\na,1\na,2\nb,\n", "t.csv")])
    assert get_column(trace, "id") == ["a:1", "a:2"]
    assert list_quarantined(trace) == [(4, "no id")]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    events = [
        Event(id="a", kind="send", member="x", seq=1, send_time=5, topics=("t",)),
        Event(id="b", causes=("a", "q"), clock_members=("x",), clock_counts=(2,), run="r"),
    ]
    write_events(events, tmp_path / "t.parquet")
    trace = read([tmp_path / "t.parquet"])
    again = [Event(**{**row, "causes": tuple(row["causes"])}) for row in trace.events.to_pylist()]
    for before, after in zip(events, again, strict=True):
        for name in set(NAMES) - {"source", "file_order"}:
            value = getattr(after, name)
            assert (tuple(value) if isinstance(value, list) else value) == getattr(before, name)


# --- all readers ------------------------------------------------------------------------------


def test_several_files_are_numbered_through_and_read_in_batches(tmp_path: Path) -> None:
    one = write_file(tmp_path, "id\n" + "\n".join(f"a{k}" for k in range(25)) + "\n", "1.csv")
    two = write_file(tmp_path, "id\nb,c\nb\n", "2.csv")
    batches = list(read_batches([one, two], batch_rows=10))
    assert [batch.events.num_rows for batch in batches] == [10, 10, 6]
    order = pa.Table.from_batches([batch.events for batch in batches])["file_order"].to_pylist()
    assert order == list(range(26))
    assert sum(batch.quarantine.num_rows for batch in batches) == 1
    assert batches[0].events.schema.equals(SCHEMA)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b" \n\n", "empty"),
        (bytes(range(256)), "unknown format"),
        (b"id,parent,id\na,,b\n", "t:1: two columns are named 'id'"),
        ("id,parent\na,\n".encode("utf-16"), "UTF-16 text; convert it to UTF-8"),
    ],
)
def test_unusable_files(content: bytes, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        read([write_file(tmp_path, content, "t")])


def test_a_folder_and_a_pattern_are_their_files_in_order_of_names(tmp_path: Path) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    for name in ("b.csv", "deep/a.csv", "_b.csv", ".hidden.csv"):
        (tmp_path / "in" / name).write_text(f"id,causes\n{name},\n")
    for path in (tmp_path / "in", tmp_path / "i?"):
        assert read([path]).events["id"].to_pylist() == ["b.csv", "deep/a.csv"]
    assert read([tmp_path / "in"], "table").events.num_rows == 2
    (tmp_path / "in" / "c.log").write_text("neither one nor the other\n")
    with pytest.raises(FormatError, match=r"c\.log: .*unknown format"):
        read([tmp_path / "in"])


def test_a_text_is_one_path(tmp_path: Path) -> None:
    path = write_file(tmp_path, '{"id": "a"}\n{"id": "b", "after": ["a"]}\n', "a.jsonl")
    assert read(str(path)).events.num_rows == read([path]).events.num_rows == 2
    assert read(path).events == read([path]).events
    assert audit(str(path)).paths == (str(path),)
    with pytest.raises(InputError, match="no input path"):
        read([])


def test_unreadable_paths(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read([tmp_path / "nowhere"])
    with pytest.raises(InputError, match="and no match as a pattern"):
        read([tmp_path / "*.csv"])
    with pytest.raises(InputError, match="the folder contains no file to read"):
        read([tmp_path])
    with pytest.raises(InputError, match="no input path"):
        read([])
    for format in ("mail", "shiviz", "table", "git"):
        with pytest.raises(InputError):
            read([tmp_path], format)


class Verse:
    """Custom reader of a user."""

    name = "verse"

    def sniff(self, path: Path, head: bytes) -> float:
        return 1.0 if head.startswith(b"%verse") else 0.0

    def read(self, path: Path, options: ReadOptions) -> Iterator[Item]:
        for number, line in enumerate(path.read_text().splitlines()[1:], 1):
            yield Event(id=line, line=number, seq=2**70 if line == "huge" else number)


def test_a_readers_own_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_READERS", dict(reader._READERS))
    reader.register(Verse())
    trace = read([write_file(tmp_path, "%verse\na\nhuge\n\nb\n")])
    assert trace.format == "verse"
    assert get_column(trace, "id") == ["a", "b"]
    assert len(list_quarantined(trace)) == 2  # a number above 64 bits; an empty id
    assert arrow.read([write_file(tmp_path, "%verse\na\n")], "verse").events.num_rows == 1


@pytest.mark.parametrize("size", [3, 40_000])
def test_a_quote_that_never_closes_costs_one_row(size: int, tmp_path: Path) -> None:
    rows = [f"r{number},b" for number in range(size)]
    # Two quotes close each other: one record of two lines. The last quote stays open.
    trace = read([write_lines(tmp_path / "t.csv", ["id,parent", 'a,"x', 'b,"', *rows, 'z,"a'])])
    assert get_column(trace, "id") == ["a", *(row[:-2] for row in rows)]
    assert list_quarantined(trace) == [
        (size + 4, "invalid CSV: a quote opens here and never closes")
    ]
    trace = read([write_lines(tmp_path / "t.csv", ["id,parent", 'a,"', *rows])])
    assert (trace.events.num_rows, list_quarantined(trace)[0][0]) == (size, 2)


def test_json_lines_whose_first_line_is_bad(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('started, pid 7\n{"id": "a"}\n{"id": "b", "parent": "a"}\n')
    trace = read([path])
    assert trace.events["id"].to_pylist() == ["a", "b"]
    assert [line for line, _ in list_quarantined(trace)] == [1]


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe.csv"
    os.mkfifo(path)
    with pytest.raises(InputError, match="pipes are not supported"):
        read([path])


def test_a_file_that_opens_but_cannot_be_read() -> None:
    path = Path("/proc/self/mem")
    if not path.exists():
        pytest.skip("needs a file whose first byte is an error, as Linux has in /proc")
    with pytest.raises(InputError, match="cannot read"):
        read([path])


def test_the_reason_of_a_file_that_breaks_off_begins_with_what_is_wrong(tmp_path: Path) -> None:
    rows = "".join(f'{{"id": "m{number}", "x": {hash((number,))}}}\n' for number in range(2000))
    path = write_file(tmp_path, gzip.compress(rows.encode())[:-2000], "cut.jsonl.gz")
    ((line, reason),) = list_quarantined(read([path]))
    assert reason.startswith(f"truncated or damaged file after line {line - 1}: ")


def test_a_json_array_and_a_folder_of_other_files_are_told_what_to_do(tmp_path: Path) -> None:
    array = write_file(tmp_path, '[{"id": "a"},\n{"id": "b"}]\n', "spans.json")
    with pytest.raises(FormatError, match=r"jq -c '\.\[\]'"):
        read([array])
    (tmp_path / "whole.parquet").write_bytes(b"PAR1")
    with pytest.raises(FormatError, match="give its files one by one"):
        read([tmp_path])


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        ("id,parent\na,\n", {"separator": ""}, "--list-separator is empty"),
        ("id,n\na,1\n", {"separator": ";"}, "no column of causes or topics"),
        ("id,n\na,1\n", {"time_unit": "ms"}, "no column of times"),
        ("id,arrival\na,2026-01-01\nb,\n", {"time_unit": "ms"}, "the times are dates"),
    ],
)
def test_an_option_that_no_column_has_a_use_for_is_refused(
    rows: str, options: dict[str, str], said: str, tmp_path: Path
) -> None:
    path = write_file(tmp_path, rows.encode(), "t.csv")
    with pytest.raises(InputError, match=said):
        read([path], options=ReadOptions(**options))  # type: ignore[arg-type]


def test_a_separator_of_lists_is_refused_and_one_of_text_is_not(tmp_path: Path) -> None:
    lists = pa.table({"id": ["a", "b"], "causes": [[], ["a"]]})
    pq.write_table(lists, tmp_path / "lists.parquet")
    with pytest.raises(InputError, match="the causes are lists"):
        read([tmp_path / "lists.parquet"], options=ReadOptions(separator=";"))
    pq.write_table(pa.table({"id": ["a", "b"], "causes": ["", "a;c"]}), tmp_path / "text.parquet")
    read_ = read([tmp_path / "text.parquet"], options=ReadOptions(separator=";"))
    assert read_.events["causes"].to_pylist() == [[], ["a", "c"]]
