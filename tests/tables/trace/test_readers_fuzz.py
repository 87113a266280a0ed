"""Random bytes: an InputError, or events and reasons for bad records."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from antecede.errors import InputError
from antecede.tables.audit import audit_events
from antecede.tables.trace.arrow import QUARANTINE_SCHEMA, SCHEMA, read

FORMATS = (
    *(None, "shiviz", "mail", "table", "git", "editing", "lora", "irc", "matrix", "cloudevents"),
)

PIECES = r"""
a {"a":1}~b {"a":1,"b":2}~(?<host>\w) (?<clock>.*) (?<event>.*)~hello~=== run ===~
From a@b Mon Jan  6 10:00:05 2020~Message-ID: <x@y>~In-Reply-To: <x@y>~
{"id":"a","parent":null,"sender":1,"date":1,"arrived":2}~{"id":[]}~{~{"a":1e999}~NaN~[[[[~
{"id":1,"time":1e308,"seq":1e308}~{"clock":{"a":true}}~{"id":"\ud800"}~PAR1~
{"devEUI":"d","fCnt":7,"rxInfo":[{"gatewayID":"g","time":"x"}]}~{"dev_eui":1,"fcnt":1e9,"hotspots":[1]}~
{"kind":"concurrent","txns":[~{"parents":[],"agent":0,"patches":[]},~{"parents":[0],~]}~],"x":~
{"specversion":"1.0","id":"a","source":"s","type":"t","causationid":[1],"sequence":"2"}~
{"event_id":"a","sender":"s","type":"t","origin_server_ts":1,"prev_events":[["a"],{}]}~{"messages":[~
{"deviceInfo":{"devEui":"d"},"rxInfo":[{"gatewayId":7}],"fCnt":"1"}~
0 1 -~1 1 -~7 2 -~[10:00] <ann> hi~[10:01]  * bob sighs~=== eve has joined~
id,parents,time~a,b,1~c,"["~"~commit,parents~p,q
"""
lines = [piece.strip("\n") for piece in PIECES.split("~")]
tabbed = [line.replace(",", "\t") for line in lines if "," in line]
pieces = st.sampled_from([*(line + "\n" for line in lines + tabbed), *lines, "\r\n", "\x00", "\n"])
texts = st.lists(pieces | st.text(max_size=8), max_size=12).map("".join)
contents = st.binary(max_size=80) | texts.map(lambda text: text.encode("utf-8", "surrogatepass"))


def check(content: bytes, format: str | None, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            trace = read([path], format)
        except InputError:
            return
    trace.events.validate(full=True)
    assert trace.events.schema.equals(SCHEMA)
    assert trace.quarantine.schema.equals(QUARANTINE_SCHEMA)
    assert all(trace.events["id"].to_pylist())
    assert audit_events(trace.events, trace.format).summary()


@pytest.mark.few(9)
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
    check(content, format, name)


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
