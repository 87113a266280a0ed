"""Causes that begin in a live group and end in a topic."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.cli import main
from antecede.core.propagation import CausalContext, read
from antecede.errors import LimitError, LocalError
from antecede.live.events import Id, Message, is_name
from antecede.live.peer import Peer
from antecede.live.stamps import token
from examples.live import into_kafka
from pipeline.transport import FileTopics, Record, Transport, make_topics, open_transport
from tests.live.loops import run

TOPICS = "orders", "payments", "shipping"
ROOT = Path(__file__).resolve().parents[2]


# -- what a message is called ----------------------------------------------------------------------


@given(name=st.text(min_size=1, max_size=20).filter(is_name), number=st.integers(1, 2**63))
def test_every_id_that_fits_is_an_id_of_a_stamp(name: str, number: int) -> None:
    lane = f"{name}~0a1b2c3d"
    try:
        found = token(lane, number)
    except LimitError:
        assert len(name.encode()) > 40
        return
    stamp = read({"antecede-id": found, "antecede-causes": ""})
    assert stamp is not None
    assert stamp.id == found
    if name.isascii() and name.replace("-", "").isalnum():
        assert found == str(Id(lane, number)), "as in the traces of live peers"


@given(st.lists(st.text(min_size=1, max_size=8).filter(is_name), min_size=2, max_size=2))
def test_two_names_are_never_called_alike(names: list[str]) -> None:
    first, second = names
    assert (token(f"{first}~00000000", 1) == token(f"{second}~00000000", 1)) == (first == second)


def test_what_does_not_fit_is_said() -> None:
    with pytest.raises(LimitError, match="as an id in a header, at most 200"):
        print(Id("é" * 60 + "~00000000", 1).token)
    assert Id("é x~00000000", 1).token == "%C3%A9%20x~00000000:1"


# -- what a program follows ------------------------------------------------------------------------


def test_the_past_of_a_message_is_itself_and_what_it_answers() -> None:
    a = Id("a~00000000", 1)
    answer = Message("b~00000000", 4, b"yes", (a,))
    assert answer.past == CausalContext(("b~00000000:4",), ("a~00000000:1",))


def peer(name: str, **more: Any) -> Peer:
    return Peer(name, listen="127.0.0.1:0", insecure=True, **more)


async def taken(one: Peer, count: int) -> list[Message]:
    found: list[Message] = []
    async for message in one:
        found.append(message)
        if len(found) == count:
            break
    return found


async def test_the_past_of_a_peer_is_what_was_handed_over_since_it_last_spoke() -> None:
    async with into_kafka.group("a", "b", "c") as peers:
        a, b, c = (peers[name] for name in "abc")
        assert c.past() == CausalContext()
        for k in range(5):
            a.send_nowait(b"%d" % k)
        first = (await taken(c, 2))[-1]
        assert c.past() == CausalContext((first.id.token,)), (
            "not what is here and was not handed over"
        )
        await taken(c, 3)
        assert c.past() == CausalContext((Id(first.lane, 5).token,))
        said = await b.send(b"b")
        await taken(c, 1)
        assert set(c.past().frontier) == {Id(first.lane, 5).token, said.token}
        mine = await c.send(b"c")
        assert c.past().frontier[0] == mine.token
        await a.send(b"more")
        [more] = await taken(c, 1)
        assert set(c.past().frontier) >= {mine.token, more.id.token}
        assert Id(first.lane, 5).token not in c.past().frontier


async def test_taken_as_batches_it_is_handed_over_too() -> None:
    async with into_kafka.group("a", "b") as peers:
        a, b = peers["a"], peers["b"]
        sent = [a.send_nowait(b"%d" % k) for k in range(3)]
        async for said in b.batches():
            newest = Id(said.lane, said.first + len(said.payloads) - 1)
            assert b.past() == CausalContext((newest.token,))
            if newest == sent[-1]:
                break


async def test_where_a_message_stands_for_nothing_before_it_there_is_no_past_of_a_peer() -> None:
    async with peer("a", order="reply") as a, peer("b") as b:
        await a.found()
        with pytest.raises(LocalError, match="take the `past` of the messages"):
            a.past()
        with pytest.raises(LocalError, match="in no group yet"):
            b.past()


# -- end to end ------------------------------------------------------------------------------------


def through(topics: Transport) -> list[Record]:
    """Let the example write its rows; return them as they stand in the topics."""

    async def work() -> None:
        await into_kafka.run(lambda *row: topics.send(Record(row[0], "k", row[1], row[2])))

    run(work)
    topics.flush()
    rows: list[Record] = []
    wanted = 4 * into_kafka.ORDERS
    for _ in range(100):
        rows += topics.poll(0.5)
        if len(rows) >= wanted:
            break
    assert len(rows) == wanted
    # As a reader meets them who takes one topic after the other: parcels before what they follow.
    return sorted(rows, key=lambda row: TOPICS.index(row.topic), reverse=True)


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[list[Record]]:
    address = f"files:{tmp_path / 'topics'}"
    make_topics(address, TOPICS, ())
    topics = FileTopics(tmp_path / "topics", "test", TOPICS)
    yield through(topics)
    topics.close()


def table(rows: list[Record], path: Path) -> Path:
    stamps = [read(row.headers) for row in rows]
    columns: dict[str, list[Any]] = {"message_id": [], "causes": [], "value": []}
    for row, stamp in zip(rows, stamps, strict=True):
        assert stamp is not None
        columns["message_id"].append(stamp.id)
        columns["causes"].append(list(stamp.causes))
        columns["value"].append(row.value)
    pq.write_table(pa.table(columns), path)
    return path


def reversed_pairs(values: list[str]) -> list[tuple[str, str]]:
    """Return the pairs of cause and effect that stand the wrong way round."""
    pairs = []
    for n in range(1, into_kafka.ORDERS + 1):
        chain = [f"order {n}", f"paid {n}", f"parcel {n}"]
        pairs += [*itertools.pairwise(chain), (f"order {n}", f"invoice {n}")]
    return [(a, b) for a, b in pairs if values.index(a) > values.index(b)]


def judged(rows: list[Record], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The audit sees effects before their causes, the order puts them right, and lacks no cause."""
    path, out = table(rows, folder / "rows.parquet"), folder / "ordered.parquet"
    assert len(reversed_pairs([row.value for row in rows])) == 3 * into_kafka.ORDERS
    columns = ["--id", "message_id", "--after", "causes"]
    assert main(["audit", str(path), *columns, "--json"]) in (0, 1)
    report = json.loads(capsys.readouterr().out)
    assert report["missing_causes"] == 0, report
    assert main(["order", str(path), *columns, "-o", str(out)]) == 0
    ordered = pq.read_table(out).sort_by("position").to_pydict()
    assert sorted(ordered["value"]) == sorted(row.value for row in rows)
    assert reversed_pairs(ordered["value"]) == []


def test_rows_that_live_messages_caused_come_after_them(
    rows: list[Record], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judged(rows, tmp_path, capsys)


def test_without_the_rows_of_live_messages_a_chain_ends_there(
    rows: list[Record], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left = [row for row in rows if row.value.split()[0] in ("invoice", "parcel")]
    path = table(left, tmp_path / "rows.parquet")
    columns = ["--id", "message_id", "--after", "causes"]
    main(["audit", str(path), *columns, "--json"])
    assert json.loads(capsys.readouterr().out)["missing_causes"] > 0, "it is said, not hidden"


@pytest.mark.slow
def test_through_a_broker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from antecede.errors import SetupError
    from pipeline import broker

    cache = ROOT / ".cache" / "pipeline"
    if find_spec("confluent_kafka") is None:
        pytest.skip("confluent-kafka is not installed: `make pipeline` brings it")
    if not (cache / "broker" / broker.RESOLVED).exists():
        pytest.skip("the broker's jars are not here: `make pipeline` brings them")
    try:
        with broker.broker(cache / "broker", tmp_path / "broker") as address:
            make_topics(address, TOPICS, ())
            topics = open_transport(address, "test", TOPICS)
            try:
                judged(through(topics), tmp_path, capsys)
            finally:
                topics.close()
    except SetupError as error:
        pytest.skip(str(error))
