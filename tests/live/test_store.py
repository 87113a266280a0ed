"""What a peer keeps on disk: killed, damaged, full, opened twice."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from antecede.errors import StoreError
from antecede.live.lanes import SignedBatch
from antecede.live.ordering import StoredInput
from antecede.live.peer import Peer
from antecede.live.store import PeerStore
from tests.live.peer_control import fill_store

LANE = "a~00000000"
KILLS = 10
GROUP = b"group"


def batch(number: int) -> SignedBatch:
    return SignedBatch(b"seal %d" % number, b"%d " % number * 40)


def opened(path: Path) -> PeerStore:
    return PeerStore(path, "a", GROUP)


def filled(path: Path, count: int) -> PeerStore:
    store = opened(path)
    store.write([], 0, snapshot=b"snapshot " * 100)
    store.write([StoredInput(LANE, k, batch(k)) for k in range(1, count + 1)], 0)
    return store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.db"


def test_what_was_written_is_there_again(path: Path) -> None:
    store = opened(path)
    assert store.load() is None
    store.close()
    store = filled(path, 5)
    store.write([StoredInput("b~00000000", 1, batch(9))], 7)
    store.close()
    store = opened(path)
    saved = store.load()
    assert saved is not None
    assert (saved.snapshot, saved.done) == (b"snapshot " * 100, 7)
    wanted = [StoredInput(LANE, k, batch(k)) for k in range(1, 6)] + [
        StoredInput("b~00000000", 1, batch(9))
    ]
    assert list(saved.rows) == wanted
    assert saved.batch_of(LANE, 3) == batch(3)
    assert store.behind(LANE, 2, 2) == [(3, batch(3)), (4, batch(4))]
    with pytest.raises(StoreError, match=f"batch 6 of {LANE}"):
        saved.batch_of(LANE, 6)
    store.close()


def test_a_snapshot_frees_what_all_have(path: Path) -> None:
    store = filled(path, 5)
    store.write([StoredInput(LANE, 6, batch(6))], 3, snapshot=b"newer", oldest={LANE: 4})
    saved = store.load()
    assert saved is not None
    assert (saved.snapshot, list(saved.rows)) == (b"newer", [])
    assert [n for n, _ in store.behind(LANE, 0, 99)] == [4, 5, 6]
    store.close()


def test_whose_the_lanes_are_stays_through_snapshots(path: Path) -> None:
    store = filled(path, 5)
    store.write([], 0, owners={"b~00000000": b"first", "c~00000000": b"hers"})
    store.write(
        [], 0, b"newer", {"b~00000000": 99}, owners={"b~00000000": b"with a new certificate"}
    )
    store.close()
    store = opened(path)
    saved = store.load()
    assert saved is not None
    wanted = {"b~00000000": b"with a new certificate", "c~00000000": b"hers"}
    assert saved.owners == wanted
    store.close()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE signers SET statement = x'00' WHERE sender_id = 'b~00000000'")
    store = opened(path)
    with pytest.raises(StoreError, match="damaged, in the signer of b~00000000"):
        store.load()
    store.close()


def test_a_turn_is_written_whole_or_not_at_all(path: Path) -> None:
    store = filled(path, 5)
    with pytest.raises(StoreError, match="written"):
        store.write([StoredInput(LANE, 6, batch(6)), StoredInput(LANE, 5, batch(5))], 9)
    store.write([StoredInput(LANE, 6, batch(6))], 1)
    saved = store.load()
    assert saved is not None
    assert ([row.number for row in saved.rows], saved.done) == ([1, 2, 3, 4, 5, 6], 1)
    store.close()


def test_nobody_else_can_read_it(path: Path) -> None:
    store = filled(path, 1)
    modes = {stat.S_IMODE(one.stat().st_mode) for one in path.parent.iterdir()}
    assert modes == {0o600}
    store.close()


def test_a_second_process_is_refused_and_harms_nothing(path: Path) -> None:
    store = filled(path, 3)
    code = (
        "import sys; from pathlib import Path; from antecede.live.store import PeerStore\n"
        "try: PeerStore(Path(sys.argv[1]), 'a', b'group')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    out = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert out.stdout.startswith("StoreError"), out
    assert "another process has it open" in out.stdout
    store.write([StoredInput(LANE, 4, batch(4))], 0)
    store.close()


# -- killed ----------------------------------------------------------------------------------------

WRITER = """
import sys
from pathlib import Path
from antecede.live.ordering import StoredInput
from antecede.live.store import PeerStore
from tests.live.test_store import LANE, batch, opened
store = opened(Path(sys.argv[1]))
saved = store.load()
last = 0 if saved is None else max((row.number for row in saved.rows), default=0)
if saved is None:
    store.write([], 0, snapshot=b"x")
while True:
    store.write([StoredInput(LANE, k, batch(k)) for k in range(last + 1, last + 8)], last)
    last += 7
    print(last, flush=True)
"""


@pytest.mark.slow
def test_what_was_said_to_be_written_survives_kills(path: Path) -> None:
    seed = random.randrange(2**32)
    moments, said = random.Random(seed), 0
    for _ in range(KILLS):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline(), "it writes"
            time.sleep(moments.random() * 0.05)
            process.send_signal(signal.SIGKILL)
            said = max([said, *map(int, process.stdout.read().split())])
        store = opened(path)
        saved = store.load()
        assert saved is not None
        rows = list(saved.rows)
        assert rows == [StoredInput(LANE, k, batch(k)) for k in range(1, len(rows) + 1)], (
            f"seed {seed}"
        )
        assert len(rows) >= said, f"seed {seed}"
        assert len(rows) % 7 == 0, f"half a turn; seed {seed}"
        store.close()
    assert said > 7 * KILLS


# -- damaged ---------------------------------------------------------------------------------------


def closed(path: Path) -> bytes:
    store = filled(path, 200)
    store.close()
    return path.read_bytes()


@pytest.mark.parametrize("keep", [10, 100, 5000, 0.5, 0.99])
def test_a_file_cut_short_is_refused_in_words(path: Path, keep: float) -> None:
    whole = closed(path)
    path.write_bytes(whole[: int(keep if keep > 1 else keep * len(whole))])
    with pytest.raises(StoreError, match=r"damaged|not the store"):
        read_all(path)


def test_a_file_of_something_else_is_refused_and_left_alone(path: Path) -> None:
    path.write_text("dear diary, " * 1000)
    with pytest.raises(StoreError, match="not the store of a peer"):
        opened(path)
    assert path.read_text() == "dear diary, " * 1000


def test_no_flipped_byte_goes_unnoticed(path: Path) -> None:
    whole, seed = closed(path), random.randrange(2**32)
    want = read_all(path)
    moments, refused = random.Random(seed), 0
    for _ in range(200):
        damaged = bytearray(whole)
        damaged[moments.randrange(len(whole))] ^= 1 << moments.randrange(8)
        path.write_bytes(damaged)
        try:
            assert read_all(path) == want, f"seed {seed}"
        except StoreError:
            refused += 1
    assert refused > 50, f"seed {seed}"


@pytest.mark.parametrize(
    ("place", "bit"),
    [
        (b"signers", 0x80),  # a name in the words of SQLite's own error is no text any more
        (b"PRIMARY KEY, sender_id TEXT NOT", 0x01),  # without its key, rows have no numbers
        (b"napshotof three", 0x01),  # what is kept under another key is not found under its own
        (b"since", 0x01),
        (b"done", 0x01),
        (b"version", 0x01),
    ],
)
def test_what_tables_and_values_are_called_is_not_damaged_unnoticed(
    path: Path, place: bytes, bit: int
) -> None:
    store = filled(path, 3)
    store.write([], 3, snapshot=b"of three")
    store.close()
    damaged = bytearray(path.read_bytes())
    at = damaged.index(place)
    damaged[at] ^= bit
    path.write_bytes(damaged)
    with pytest.raises(StoreError, match="damaged"):
        read_all(path)
    assert path.read_bytes() == damaged, "it was changed"


def test_no_byte_of_the_definitions_of_tables_is_damaged_unnoticed(path: Path) -> None:
    filled(path, 3).close()
    whole, want = path.read_bytes(), read_all(path)
    first = int.from_bytes(whole[105:107], "big")  # of the cells of the first page (SQLite's)
    refused = 0
    for at in range(first, 4096):
        damaged = bytearray(whole)
        damaged[at] ^= 0x80 if at % 2 else 0x01
        path.write_bytes(damaged)
        try:
            assert read_all(path) == want, f"byte {at}"
        except StoreError:
            refused += 1
    assert refused > 400


def read_all(path: Path) -> tuple[bytes, list[StoredInput]]:
    store = opened(path)
    try:
        saved = store.load()
        assert saved is not None
        rows = list(saved.rows)
        assert [one for _, one in store.behind(LANE, 0, 999)] == [row.batch for row in rows]
        return saved.snapshot, rows
    finally:
        store.close()


# -- full ------------------------------------------------------------------------------------------


def test_a_full_disk_is_said_and_nothing_is_acknowledged_falsely(path: Path) -> None:
    acknowledged = 0

    async def work() -> None:
        nonlocal acknowledged
        async with asyncio.timeout(30), Peer("a", insecure=True, store=path) as peer:
            await peer.bootstrap()
            fill_store(peer, 20)
            for k in range(1000):
                await peer.send(b"%d" % k * 1000)
                acknowledged += 1

    async def again() -> int:
        async with Peer("a", insecure=True, store=path) as peer:
            return peer.status().sent

    with pytest.raises(StoreError, match="the disk is full"):
        asyncio.run(work())
    assert 5 < acknowledged < 1000
    assert asyncio.run(again()) >= acknowledged


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own of a megabyte."""
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("needs root: a small disk is mounted")
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no disk can be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_really_full(small_disk: Path) -> None:
    store, written = filled(small_disk / "a.db", 10), 10

    def fill() -> None:
        nonlocal written
        while True:
            store.write([StoredInput(LANE, written + 1, SignedBatch(b"", bytes(10_000)))], 0)
            written += 1

    with pytest.raises(StoreError, match="disk"):
        fill()
    store.close()
    assert written > 11
    assert len(read_all(small_disk / "a.db")[1]) >= written


def test_a_store_of_another_version_is_refused(path: Path) -> None:
    filled(path, 1).close()
    store = opened(path)
    store.put("version", b"99")
    store.close()
    with pytest.raises(StoreError, match="version b'99'"):
        opened(path)
    assert sqlite3.connect(path).execute("SELECT count(*) FROM batches").fetchone() == (1,)
