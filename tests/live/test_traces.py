"""What live peers note of themselves, judged by the audit and by the oracle."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from antecede.cli import main
from antecede.core.oracle.history import History
from antecede.core.protocols.base import Relation
from antecede.errors import LocalError, MissingExtraError, StoreError
from antecede.live import traces
from antecede.live.events import Id, SentBatch
from antecede.live.peer import Peer
from antecede.live.traces import TraceWriter
from antecede.tables.trace.arrow import read, write_events
from antecede.tables.trace.schema import DELIVER, NAMES, SEND, Event
from antecede.tables.trace.user_tables.writing import PARQUET
from antecede.tables.view.live_source import Followed
from tests.tables.view.unpacked import unpacked

NAMES_OF_PEERS = ("a", "b", "c")
TALK = 30


def peer(name: str, folder: Path, order: str = "causal", **more: Any) -> Peer:
    return Peer(name, listen="127.0.0.1:0", insecure=True, order=order, trace=folder, **more)


def events(folder: Path) -> list[Event]:
    """Return all rows of a folder, by file and place in it."""
    return read_rows(*sorted(folder.glob("*.parquet")))


def read_rows(*paths: Path) -> list[Event]:
    """Return all rows as the audit reads them."""
    table = read(paths).events
    columns = [table.column(name).to_pylist() for name in NAMES]
    rows = (Event(*row) for row in zip(*columns, strict=True))
    return [row._replace(causes=tuple(row.causes), topics=tuple(row.topics)) for row in rows]


async def talk(folder: Path, order: str) -> int:
    """Let three peers talk; return how many messages there were."""
    peers = [peer(name, folder, order) for name in NAMES_OF_PEERS]
    for one in peers:
        await one.__aenter__()
    await peers[0].bootstrap()
    for one in peers[1:]:
        await one.join(peers[0].address)
    while not all(one.members == NAMES_OF_PEERS for one in peers):
        await asyncio.sleep(0.005)
    draw, sent = random.Random(7), 0

    async def say(one: Peer, payload: bytes, **more: Any) -> None:
        nonlocal sent
        sent += 1
        await one.send(payload, **more)

    async def hear(one: Peer) -> None:
        async for message in one:
            if message.payload == b"ask":
                await say(one, b"answer", **({"reply_to": message} if order == "reply" else {}))

    hearing = [asyncio.create_task(hear(one)) for one in peers]
    for k in range(TALK):
        await say(peers[k % 3], b"ask")
        await asyncio.sleep(draw.random() * 0.01)
    while sent < 3 * TALK or any(one.status().delivered < 2 * TALK for one in peers):
        await asyncio.sleep(0.005)
    while any(one.status().pending_messages for one in peers):
        await asyncio.sleep(0.005)
    for task in hearing:
        task.cancel()
    for one in peers:
        await one.close()
    return sent


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trace")
    assert asyncio.run(asyncio.wait_for(talk(folder, "causal"), 30)) == 3 * TALK
    return folder


def test_a_run_is_whole_and_the_audit_finds_it_causal(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = events(run)
    assert sum(row.kind == SEND for row in rows) == 3 * TALK
    assert sum(row.kind == DELIVER for row in rows) == 6 * TALK
    assert len({row.run for row in rows}) == 1
    assert any(len(row.causes) > 1 for row in rows)
    history = History(rows)
    assert history.early("delivery") == []
    assert main(["audit", *map(str, sorted(run.glob("*.parquet")))]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"deliveries: causal, all {6 * TALK} copies" in out
    assert f"by declared causes 0 0.0% of {6 * TALK}" in out


def test_a_wrong_order_is_found_by_both(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = events(run)
    answer = next(r for r in rows if r.kind == SEND and any("~" in p for p in r.causes[:1]))
    cause = answer.causes[0]
    at = {
        (row.member, row.id): k
        for k, row in enumerate(rows)
        if row.kind == DELIVER and row.id in (cause, answer.id)
    }
    member = next(m for m, i in at if i == cause and (m, answer.id) in at)
    one, other = at[member, cause], at[member, answer.id]
    assert one < other
    rows[one], rows[other] = rows[other], rows[one]
    rows = [row._replace(file_order=k) for k, row in enumerate(rows)]
    assert History(rows).early("delivery")
    write_events(rows, tmp_path / "wrong.parquet", PARQUET)
    main(["audit", str(tmp_path / "wrong.parquet")])
    assert "deliveries: causal, all" not in capsys.readouterr().out


def test_answers_name_what_they_answer(tmp_path: Path) -> None:
    asyncio.run(asyncio.wait_for(talk(tmp_path, "reply"), 30))
    rows = events(tmp_path)
    causes = {row.id: row.causes for row in rows if row.kind == SEND}
    assert sorted(map(len, causes.values())) == [0] * TALK + [1] * 2 * TALK
    assert all(causes[p] == () for ps in causes.values() for p in ps)
    assert History(rows).early("reply") == []


async def test_a_restart_notes_nothing_twice(tmp_path: Path) -> None:
    folder = tmp_path / "trace"

    async def take(one: Peer, count: int) -> None:
        async for _ in one:
            count -= 1
            if not count:
                return

    async with Peer("a", listen="127.0.0.1:0", insecure=True) as a:
        await a.bootstrap()
        again: dict[str, Any] = {"store": tmp_path / "b.db", "acknowledge": "explicit"}
        async with peer("b", folder, **again) as b:
            await b.join(a.address)
            for _ in range(4):
                await a.send(b"x")
            await take(b, 4)
        await a.send(b"y")
        async with peer("b", folder, **again) as b:
            await take(b, 5)  # nothing was acknowledged: all come again
    rows = [row for row in events(folder) if row.kind == DELIVER]
    assert [row.seq for row in rows] == [1, 2, 3, 4, 5]
    assert len(list(folder.iterdir())) == 2


# -- files -----------------------------------------------------------------------------------------

ME, OTHER = "a~00000000", "b/c~11111111"


def make_batch(first: int, count: int, lane: str = OTHER) -> SentBatch:
    return SentBatch(lane, first, [b""] * count)


def make_writer(folder: Path, *, lane: str = ME) -> TraceWriter:
    return TraceWriter(folder, lane, "run", Relation.BY_DELIVERY)


def of(rows: Iterable[Event]) -> list[tuple[str, str, int | None]]:
    return [(row.kind, row.id, row.seq) for row in rows]


def test_files_rotate_and_are_whole_when_they_have_their_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traces, "ROWS", 10)
    monkeypatch.setattr(traces, "CHUNK", 5)
    trace = make_writer(tmp_path, lane=OTHER)
    trace.record_send(Id(OTHER, 1))
    for k in range(9):
        trace.record_deliveries(make_batch(5 * k + 1, 5, ME))
    trace.close()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [f"trace-b%2Fc~11111111-{k:06}.parquet" for k in range(1, 6)]
    wanted = [(SEND, f"{OTHER}:1", 1), *((DELIVER, f"{ME}:{k}", k) for k in range(1, 46))]
    assert of(events(tmp_path)) == wanted


@pytest.mark.parametrize("name", ["_bot", ".bot", "字" * 60, "a" * 190])
def test_names_of_any_kind_make_files_that_are_read(tmp_path: Path, name: str) -> None:
    lane = f"{name}~22222222"
    trace = make_writer(tmp_path, lane=lane)
    trace.record_send(Id(lane, 1))
    trace.close()
    trace = make_writer(tmp_path, lane=lane)
    trace.record_send(Id(lane, 2))
    trace.close()
    assert (trace.lost, len(list(tmp_path.iterdir()))) == (0, 2)
    assert of(read_rows(tmp_path)) == [(SEND, f"{lane}:1", 1), (SEND, f"{lane}:2", 2)]


def test_what_a_crash_left_is_swept_and_the_rest_is_gone_on_with(tmp_path: Path) -> None:
    trace = make_writer(tmp_path)
    trace.record_deliveries(make_batch(1, 3))
    trace.close()
    (tmp_path / f".trace-{ME}-000002.parquet.part").write_bytes(b"PAR1 half")
    (tmp_path / ".somebody-else.part").write_bytes(b"")
    trace = make_writer(tmp_path)
    trace.record_deliveries(make_batch(1, 5))
    trace.close()
    assert [seq for _, _, seq in of(events(tmp_path))] == [1, 2, 3, 4, 5]
    assert sorted(p.name for p in tmp_path.iterdir() if p.name[0] == ".") == [".somebody-else.part"]


def test_redelivery_in_another_order_is_neither_noted_twice_nor_lost(tmp_path: Path) -> None:
    third = "c~33333333"
    trace = make_writer(tmp_path)
    for one in (
        make_batch(1, 2),
        make_batch(1, 1, third),
        make_batch(4, 1),
    ):  # order "reply": 4 before 3
        trace.record_deliveries(one)
    trace.close()
    trace = make_writer(tmp_path)
    for one in (make_batch(1, 3, third), make_batch(2, 4), make_batch(6, 1), make_batch(1, 1)):
        trace.record_deliveries(one)
    trace.close()
    found = of(events(tmp_path))
    ids = [f"{OTHER}:1", f"{OTHER}:2", f"{third}:1", f"{OTHER}:4"]
    ids += [f"{third}:2", f"{third}:3", f"{OTHER}:3", f"{OTHER}:5", f"{OTHER}:6"]
    assert found == [(DELIVER, one, k) for k, one in enumerate(ids, 1)]


def test_rows_that_come_too_fast_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(traces, "WAITING", 10)
    trace = make_writer(tmp_path)
    trace.record_deliveries(make_batch(1, 8))
    trace.record_deliveries(make_batch(9, 8))
    assert trace.lost == 8
    trace.record_deliveries(make_batch(17, 8))
    trace.close()
    assert trace.lost + len(events(tmp_path)) == 24
    assert [r.message for r in caplog.records] == [
        f"{ME}: trace incomplete: rows are dropped, since they come faster than the disk"
    ]


@pytest.mark.slow
def test_a_disk_that_refuses_is_said_and_disturbs_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    trace = make_writer(tmp_path)
    trace.record_deliveries(make_batch(1, 3))
    trace.close()
    monkeypatch.setattr(traces, "ParquetWriter", refuse)
    trace = make_writer(tmp_path)
    trace.record_deliveries(make_batch(1, 6))
    while not trace.trouble:
        time.sleep(0.01)
    trace.record_deliveries(make_batch(7, 3))
    trace.close()
    assert "No space left" in trace.trouble
    assert len(events(tmp_path)) == 3
    assert trace.lost == 6
    assert "No space left" in caplog.text


def test_a_folder_that_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be used"):
        make_writer(tmp_path / "file")


def test_without_the_extra_it_is_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "antecede.live.traces")
    with pytest.raises(MissingExtraError, match="trace"):
        peer("a", tmp_path)


def test_rows_can_be_read_while_the_file_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traces, "ROWS", 60)
    trace = TraceWriter(tmp_path, ME, "run", Relation.BY_DELIVERY, every_s=0.05)
    total = 0
    for _ in range(4):
        for _ in range(25):
            total += 1
            trace.record_send(Id(ME, total))
        until = time.monotonic() + 10
        while (there := len(events(tmp_path)) if any(tmp_path.glob("*.parquet")) else 0) < total:
            assert time.monotonic() < until, f"{there} of {total}"
            time.sleep(0.02)
    assert [row.seq for row in events(tmp_path)] == list(range(1, total + 1))
    files = sorted(tmp_path.glob("*.parquet"))
    assert len(files) == 2  # grown to 60 rows and more, and the rest
    trace.close()
    assert [row.seq for row in events(tmp_path)] == list(range(1, total + 1))
    assert not list(tmp_path.glob(".*"))
    again = TraceWriter(tmp_path, ME, "run", Relation.BY_DELIVERY, every_s=0.05)
    again.record_send(Id(ME, total + 1))
    again.close()
    assert len(sorted(tmp_path.glob("*.parquet"))) == 3
    assert (trace.lost, again.lost) == (0, 0)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"trace_every_s": 0}, "trace_every_s=.* expected above 0"),
        ({"trace_every_s": "1"}, "trace_every_s=.* expected a number of seconds"),
        ({"trace_every_s": 1, "trace": None}, "without trace="),
    ],
)
def test_how_often_is_judged_at_once(tmp_path: Path, more: dict[str, Any], words: str) -> None:
    given = {"trace": tmp_path, **more}
    with pytest.raises(LocalError, match=words):
        Peer("a", insecure=True, **given)


async def test_a_page_follows_a_living_group(tmp_path: Path) -> None:
    followed = Followed("live", [tmp_path], lambda: read([tmp_path]))
    async with peer("a", tmp_path, trace_every_s=0.05) as one:
        await one.bootstrap()
        for k in range(3):
            await one.send(f"{k}".encode())
            until = time.monotonic() + 10
            while not any(tmp_path.glob("*.parquet")) or len(events(tmp_path)) < k + 1:
                assert time.monotonic() < until
                await asyncio.sleep(0.02)
            meta, _ = unpacked(followed.block({}))
            assert meta["events"] >= k + 1
