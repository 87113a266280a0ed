"""Digest of a row's content: published vectors, and those of Spark."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from antecede.tables.kernels.xxhash import hash_bytes
from antecede.tables.order.row_hash import content_digests, digests

VECTORS = {  # of the reference implementation of XXH64, seed 0
    b"": 0xEF46DB3751D8E999,
    b"a": 0xD24EC4F1A98C6E5B,
    b"abc": 0x44BC2CF5AD770999,
    b"Nobody inspects the spammish repetition": 0xFBCEA83C8A378BF1,
}


@pytest.mark.parametrize("text", VECTORS)
def test_published_vectors(text: bytes) -> None:
    h = np.zeros(1, np.uint64)
    hash_bytes(h, np.frombuffer(text, np.uint8), np.array([0, len(text)]), np.ones(1, np.bool_))
    assert h[0] == VECTORS[text]


@pytest.mark.parametrize("digest", [digests, content_digests])
def test_chunks_and_slices_do_not_matter(digest: Any) -> None:
    table = pa.table({"s": ["a", None, "b", "c"], "l": [[1], None, [], [2, None]]})
    again = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    assert digest(again).tolist() == digest(table).tolist()
    assert digest(table.slice(2)).tolist() == digest(table).tolist()[2:]


def test_forms_of_one_value_are_one() -> None:
    text = pa.array(["x", None, "longer than what is kept in a view itself"])
    views = pa.string_view(), pa.dictionary(pa.int32(), pa.string())
    kinds = (pa.string(), pa.large_string(), *views)
    assert len({tuple(digests(pa.table([text.cast(k)], ["c"]))) for k in kinds}) == 1
    small = [pa.array([1, -2, None], kind) for kind in (pa.int8(), pa.int32())]
    assert len({tuple(digests(pa.table([column], ["c"]))) for column in small}) == 1


def test_what_is_null_tells_contents_apart() -> None:
    kind = pa.struct([("x", pa.string()), ("y", pa.string())])
    for table in (
        pa.table({"a": [None, "x", None], "b": ["x", None, None]}).slice(0, 2),
        pa.table({"l": pa.array([[], [None], [None, None], None], pa.list_(pa.int64()))}),
        pa.table({"l": pa.array([[None, "a"], ["a", None], ["a"]])}),
        pa.table({"s": pa.array([{"x": None, "y": "a"}, {"x": "a", "y": None}], kind)}),
        pa.table({"s": pa.array([{"x": None, "y": None}, None], kind)}),
        pa.table({"l": pa.array([[[], [None]], [[None], []]], pa.list_(pa.list_(pa.int64())))}),
    ):
        assert len(set(digests(table).tolist())) == 1
        assert len(set(content_digests(table).tolist())) == len(table)
