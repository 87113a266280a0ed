"""Blobs of a shard: damaged and missing ones are rejected, cached ones are checked."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from antecede.errors import InputError
from antecede.tables.order.stream.kernels.interning import Text
from antecede.tables.order.stream.shard import Shard
from antecede.tables.order.stream.storage import blobs
from antecede.tables.order.stream.storage.blobs import Memory, ShardParts
from antecede.tables.order.stream.storage.index import hash_keys, mix_numbers
from antecede.tables.order.stream.types import ShardPlan
from tests.tables.order.stream.test_shard import Packed, batch, one

PLAN = ShardPlan(counted=False, timed=True, about='{"shards": 4}')


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "parts"
    monkeypatch.setenv("ANTECEDE_PARTS", str(folder))
    monkeypatch.setattr(blobs, "_cache", blobs._Cache())
    return folder


def held_state() -> Memory:
    stream = Packed(PLAN)
    stream.step([one(b"a", time=1), one(b"c", b"b", time=2)], 2)
    return stream.state


@pytest.mark.parametrize("part", ["i0i", "i0d", "g0i", "g0d", "p0"])
@pytest.mark.parametrize("how", ["missing", "damaged"])
def test_a_missing_or_damaged_part_is_refused_by_name(
    part: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = held_state()
    if how == "missing":
        del state[part]
    else:
        state[part] = state[part][:-1] + bytes([state[part][-1] ^ 1])
    monkeypatch.setattr(blobs, "_cache", blobs._Cache())  # another process
    later = Packed(PLAN)
    later.state, later.rows = state, [None] * 9
    with pytest.raises(InputError, match=rf"blob {part} of a shard's state is {how}"):
        later.step([one(b"b", time=3), one(b"a", time=1)], 3)


@pytest.mark.parametrize("cut", [0, 10, 40, -8])
def test_a_damaged_head_is_refused(cut: int) -> None:
    state = held_state()
    state["head"] = state["head"][:cut]
    with pytest.raises(InputError, match="state of a shard"):
        Shard(PLAN, state)


def test_another_stream_is_refused_by_name() -> None:
    state = held_state()
    with pytest.raises(InputError, match="shards was 4, is 8"):
        Shard(PLAN._replace(about='{"shards": 8}'), state)
    with pytest.raises(InputError, match="other key columns"):
        Shard(PLAN._replace(counted=True), state)


def test_a_state_of_a_later_version_is_refused() -> None:
    shard, state = Shard(PLAN, Memory()), Memory()
    shard.parts.store = state
    shard.keep()
    head = bytearray(state["head"])
    at = head.index((2).to_bytes(8, "little"), 200)
    head[at : at + 8] = (9).to_bytes(8, "little")
    with pytest.raises(InputError, match="format 9"):
        Shard(PLAN, Memory(head=bytes(head)))


def test_large_parts_are_mapped_from_files_and_checked(own_cache: Path) -> None:
    store = Memory()
    parts = ShardParts(store)
    digest, size = parts.save("big", {"values": np.arange(20_000, dtype=np.int64)})
    assert [path.name for path in own_cache.iterdir()] == [digest.hex()]
    assert (own_cache / digest.hex()).stat().st_size == size
    with (own_cache / digest.hex()).open("r+b") as file:
        file.seek(5000)
        file.write(b"garbage")
    blobs._cache.opened.clear()
    assert parts.open("big", digest)["values"][-1] == 19_999  # from the store, not from the file
    parts.open("big", digest)["values"][0] = 7  # private: neither the store nor the file changes
    blobs._cache.opened.clear()
    assert parts.open("big", digest)["values"][0] == 0


def test_a_folder_that_others_may_write_to_is_not_used(own_cache: Path) -> None:
    own_cache.mkdir()
    os.chmod(own_cache, 0o777)
    parts = ShardParts(Memory())
    digest, _ = parts.save("big", {"values": np.arange(20_000, dtype=np.int64)})
    assert list(own_cache.iterdir()) == []
    assert parts.open("big", digest)["values"][-1] == 19_999


def test_the_hash_of_a_checkpoint_never_changes() -> None:
    text = Text(np.frombuffer(b"abcdefgh-ijk" + b"x", np.uint8).copy(), np.array([0, 0, 12, 13]))
    value = hash_keys(np.array([0, 7, -1]), *text)
    assert value.tolist() == [0, 18333940480347051972, 17653682297797565741]
    assert mix_numbers(value, np.array([0, 5, -1])).tolist() == [
        0,
        3425288087316349048,
        9469499230304121862,
    ]


def test_held_rows_keep_their_columns(own_cache: Path) -> None:
    stream = Packed(PLAN)
    stream.step([one(b"b", b"a")], 1)
    shard = Shard(PLAN, stream.state)
    with pytest.raises(InputError, match="other columns"):
        shard.step(batch([one(b"a")]), 2, pa.table({"other": ["x"]}))
