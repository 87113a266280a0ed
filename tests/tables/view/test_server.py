"""Server of pages: access, responses, and growing traces."""

from __future__ import annotations

import http.client
import random
import socket
import struct
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow.parquet as pq
import pytest

from antecede.errors import InputError
from antecede.tables.causality.queries import Causality, EventRef
from antecede.tables.trace.arrow import Trace, read
from antecede.tables.view import tiles
from antecede.tables.view.live_source import Followed
from antecede.tables.view.server import Serving, Source
from antecede.tables.view.tiles import Tiles, write_tiles
from tests.tables.view.conftest import Opened
from tests.tables.view.made import drawn, make_held_trace, make_row, trace_of


class Fixed:
    """Source that returns its query."""

    title = "<b>fixed</b>"
    grows = False

    def version(self) -> str:
        return "7"

    def block(self, asked: Mapping[str, str]) -> bytes:
        if "wrong" in asked:
            raise InputError("not there")
        return repr(sorted(asked.items())).encode()


@contextmanager
def serve(source: Source) -> Iterator[Serving]:
    serving = Serving(source)
    thread = threading.Thread(target=serving.serve)
    thread.start()
    try:
        yield serving
    finally:
        serving.close()
        thread.join(5)


def request(serving: Serving, path: str, host: str | None = None) -> tuple[int, bytes, Any]:
    line = http.client.HTTPConnection("127.0.0.1", serving.port, timeout=10)
    line.request("GET", path, headers={} if host is None else {"Host": host})
    answer = line.getresponse()
    body = answer.read()
    line.close()
    return answer.status, body, answer.headers


def test_only_who_knows_the_word_and_names_this_host_is_answered() -> None:
    with serve(Fixed()) as serving:
        word = urlsplit(serving.url).path
        assert len(word) > 20
        status, body, headers = request(serving, word)
        assert status == 200
        assert b"&lt;b&gt;fixed" in body
        assert b"<b>fixed" not in body
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Frame-Options"] == "DENY"
        assert request(serving, "/")[0] == 404
        assert request(serving, "/guess/")[0] == 404
        assert request(serving, word, f"rebound.example:{serving.port}")[0] == 403
        assert request(serving, word, "127.0.0.1")[0] == 403
        assert request(serving, word, f"localhost:{serving.port}")[0] == 200
        assert request(serving, word + "../../etc/passwd")[0] == 404


def test_data_version_and_errors() -> None:
    with serve(Fixed()) as serving:
        word = urlsplit(serving.url).path
        status, body, _ = request(serving, word + "data?x0=1&x1=2&x1=3")
        assert (status, zlib.decompress(body)) == (200, b"[('x0', '1'), ('x1', '3')]")
        assert request(serving, word + "version")[1] == b"7"
        assert request(serving, word + "data?wrong=1")[:2] == (422, b"not there")


class Large(Fixed):
    """Source with a response that exceeds the buffers of a socket."""

    def block(self, asked: Mapping[str, str]) -> bytes:
        return random.Random(1).randbytes(30_000_000)


@pytest.mark.slow
def test_a_page_that_is_closed_meanwhile_is_no_error(capfd: pytest.CaptureFixture[str]) -> None:
    with serve(Large()) as serving:
        path = urlsplit(serving.url).path
        line = socket.create_connection(("127.0.0.1", serving.port))
        line.sendall(f"GET {path}data HTTP/1.1\r\nHost: 127.0.0.1:{serving.port}\r\n\r\n".encode())
        assert line.recv(9) == b"HTTP/1.1 "
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        line.close()
        assert request(serving, path + "version")[1] == b"7"
        for thread in threading.enumerate():
            if "process_request_thread" in thread.name:
                thread.join(10)
    assert capfd.readouterr().err == ""


def test_a_port_that_is_taken_is_said() -> None:
    serving = Serving(Fixed())
    try:
        with pytest.raises(InputError, match="is not available"):
            Serving(Fixed(), serving.port)
    finally:
        serving.release_port()


def _written(trace: Trace, file: Path) -> None:
    pq.write_table(trace.events, file)


def test_a_trace_that_grows_is_followed(opened: Opened, tmp_path: Path) -> None:
    folder = tmp_path / "live"
    folder.mkdir()
    _written(make_held_trace(), folder / "trace-1.parquet")
    source = Followed("live", [folder], lambda: read([folder]))
    with serve(source) as serving:
        shown = opened(serving.url)
        assert "12 events in view" in shown.inner_text("#status")
        shown.evaluate("antecede.reveal(3)")
        chosen = "antecede.model.ids.at(antecede.model.chosen)"
        assert shown.evaluate(chosen) == "b"
        shown.evaluate("antecede.fit(true)")
        more = [make_row("send", "late", "zoe", 70), make_row("receive", "late", "ann", 75)]
        _written(trace_of(more), folder / "trace-2.parquet")
        shown.locator("#status", has_text="14 events in view").wait_for(timeout=15_000)
        assert shown.evaluate(chosen) == "b"


def test_files_that_fit_a_pattern_are_followed(tmp_path: Path) -> None:
    _written(make_held_trace(), tmp_path / "trace-1.parquet")
    pattern = tmp_path / "trace-*.parquet"
    source = Followed("live", [pattern], lambda: read([pattern]))
    before = source.version()
    assert source.version() == before
    _written(make_held_trace(), tmp_path / "trace-2.parquet")
    assert source.version() != before


def test_a_file_that_is_being_written_keeps_the_picture_before(tmp_path: Path) -> None:
    folder = tmp_path / "live"
    folder.mkdir()
    _written(make_held_trace(), folder / "trace-1.parquet")
    source = Followed("live", [folder], lambda: read([folder]))
    before = source.version()
    block = source.block({})
    (folder / "trace-2.parquet").write_bytes(b"PAR1 not yet")
    assert source.version() != before
    assert source.block({}) == block


def test_pieces_in_the_page(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiles, "MAX_TILE_EVENTS", 400)
    trace = drawn(5, events=6000, members=8)
    write_tiles(trace, tmp_path / "cut", "a <b>trace</b>")
    with serve(Tiles(tmp_path / "cut")) as serving:
        shown = opened(serving.url)
        said = shown.inner_text("#status")
        assert f"{len(trace.events):,} events in view" in said
        assert "zoom in for messages" in said
        assert shown.evaluate("antecede.model.size") == 0
        shown.evaluate("antecede.zoom(40, 600)")
        shown.locator("#status", has_text="line").wait_for(timeout=15_000)
        size = shown.evaluate("antecede.model.size")
        assert 0 < size <= 1600
        shown.keyboard.press("Enter")
        assert f"Counted among {size:,} events of" in shown.inner_text("#panel")
        last = trace.events["id"].to_pylist()[-1]
        shown.fill("#search", last)
        shown.keyboard.press("Enter")
        shown.locator("#panel h2", has_text=last).wait_for(timeout=15_000)
        shown.fill("#search", "nothing is called so")
        shown.keyboard.press("Enter")
        shown.locator("#status", has_text="no event matches the search").wait_for(timeout=15_000)
        shown.fill("#search", "")
        shown.evaluate("antecede.fit(true)")
        shown.locator("#status", has_text="zoom in for messages").wait_for(timeout=15_000)
        # The refused search is an answer of 422, which the browser writes down.
        opened.wrong[:] = [one for one in opened.wrong if "422" not in one]


def test_past_and_future_go_beyond_a_piece_where_the_whole_is_at_hand(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiles, "MAX_TILE_EVENTS", 400)
    trace = drawn(6, events=3000, members=6)
    write_tiles(trace, tmp_path / "cut", "t")
    asked = Causality(trace)
    ids = [str(id) for id in trace.events["id"].to_pylist()]
    event = EventRef(ids[1500])
    row = asked.row(event)
    past, future = (mask.tolist() for mask in asked.around(row))
    with serve(Tiles(tmp_path / "cut", event, lambda: asked)) as serving:
        shown = opened(serving.url)
        shown.locator("#panel", has_text=f"{sum(past):,} before it").wait_for(timeout=15_000)
        assert f"{sum(future):,} after it" in shown.inner_text("#panel")
        depth = shown.locator("#panel dt", has_text="depth").locator("+ dd")
        assert depth.inner_text() == f"{asked.depths[row]:,}"
        assert f"{len(ids) - sum(past) - sum(future) - 1:,} concurrent" in shown.inner_text(
            "#panel"
        )
        assert "Counted among" not in shown.inner_text("#panel")
        places, before, after = shown.evaluate(
            """() => [antecede.model.data.arrays.place, antecede.model.past, antecede.model.future]
              .map((one) => Array.from(one))"""
        )
        assert 0 < len(places) < len(ids)
        assert before == [int(past[int(place)]) for place in places]
        assert after == [int(future[int(place)]) for place in places]
