"""Whatever the bytes: an InputError, or good events and a reason for everything else."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from antecede.audit import audit_events
from antecede.errors import InputError
from antecede.trace.arrow import QUARANTINE_SCHEMA, SCHEMA, read

FORMATS = (None, "shiviz", "mail", "table", "git")

pieces = st.sampled_from(
    [
        *(
            'a {"a":1}\n',
            'b {"a":1,"b":2}\n',
            "(?<host>\\w) (?<clock>.*) (?<event>.*)\n",
            "hello\n",
        ),
        *("From a@b Mon Jan  6 10:00:05 2020\n", "Message-ID: <x@y>\n", "In-Reply-To: <x@y>\n"),
        *('{"id":"a","parent":null,"sender":1,"date":1,"arrived":2}\n', '{"id":[]}\n', "{\n"),
        *(
            "id,parents,time\n",
            "a,b,1\n",
            'c,"["\n',
            '"\n',
            "x\x00y\n",
            "commit\tparents\n",
            "p\tq\n",
        ),
        *(
            "=== run ===\n",
            "\n",
            "\r\n",
            '{"a":1e999}',
            "\ud800".encode("utf-8", "replace").decode(),
        ),
        *("NaN", "[[[[", '{"id":1,"time":1e308,"seq":1e308}\n', '{"clock":{"a":true}}\n', "PAR1"),
    ]
)
texts = st.lists(pieces | st.text(max_size=8), max_size=12).map("".join)
contents = st.binary(max_size=80) | texts.map(lambda text: text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ["trace", "trace.csv"])
@given(content=contents)
@example(content=b"\x1f\x8b")
@example(content=b"\x1f\x8b\x08\x00garbage")
@example(content=b"PAR1" + bytes(20) + b"PAR1")
@example(content=b"[" * 100_000)
@example(content=b'{"id":' + b"[" * 100_000)
@example(content=b"id\n" + b"9" * 200_000)
@example(content=gzip.compress(b'a {"a":1}\nx\n' * 50)[:-9])
def test_any_bytes(format: str | None, name: str, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            trace = read([path], format)
        except InputError as error:
            assert str(error)
            return
    trace.events.validate(full=True)
    assert trace.events.schema.equals(SCHEMA)
    assert trace.quarantine.schema.equals(QUARANTINE_SCHEMA)
    assert all(trace.events["id"].to_pylist())
    assert audit_events(trace.events, trace.format).summary()


@given(st.lists(st.sampled_from(["good", '{"id":', "null", '{"id":null}', "[]", '"'])))
def test_good_rows_are_never_lost(kinds: list[str]) -> None:
    lines = [f'{{"id":"m{k}","parents":[]}}' if x == "good" else x for k, x in enumerate(kinds)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.jsonl"
        path.write_text('{"id":"first"}\n' + "\n".join(lines))
        trace = read([path], "table")
    good = [f"m{k}" for k, kind in enumerate(kinds) if kind == "good"]
    assert trace.events["id"].to_pylist() == ["first", *good]
    assert len(trace.quarantine) == len(kinds) - len(good)
