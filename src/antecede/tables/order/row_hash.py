"""64-bit digests of rows, equal to Spark's, which distinguish repeats from conflicts.

Spark computes `xxhash64` over the columns (seed 42) in the JVM, so contents need not travel to
Python. Unequal contents have equal digests once in 2**64 pairs and would count as a repeat.

Spark's hash skips nulls: (null, "a") and ("a", null) have one digest, as have [] and [null]. So
content digests also cover nulls. Maps, which Spark does not hash, are hashed by their entries.
Variants are hashed as text in Spark and by their parts here, so the first of two conflicting rows
of one time may differ.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute

from antecede.tables.kernels import ByteArray, Hashes, Longs, hash_bytes, hash_ints, hash_longs

pa: Any = pyarrow
pc: Any = pyarrow.compute

SEED = 42
_EXACT = decimal.Context(prec=80)


def digests(table: pyarrow.Table) -> Longs:
    """Return the digest of each row over all columns, shape (rows,)."""
    found: Hashes = np.full(table.num_rows, SEED, np.uint64)
    for column in table.columns:
        _fold(found, whole(column))
    return found.view(np.int64)


def content_digests(table: pyarrow.Table) -> Longs:
    """Return the digest of each row over all columns and their nulls, shape (rows,)."""
    found: Hashes = digests(table).view(np.uint64)
    for column in table.columns:
        _fold_nulls(found, _unwrap(whole(column)))
    return found.view(np.int64)


def whole(column: Any) -> Any:
    """Return a chunked column as one array."""
    made = column.combine_chunks()
    return pa.concat_arrays(made.chunks) if isinstance(made, pyarrow.ChunkedArray) else made


def _fold(h: Hashes, array: Any) -> None:
    array = _unwrap(array)
    kind = array.type
    if pa.types.is_null(kind):
        return
    if pa.types.is_struct(kind):
        _fold_struct(h, array)
    elif pa.types.is_map(kind) or _is_list(kind):
        _fold_elements(h, array, _fold)
    elif pa.types.is_decimal(kind):
        _fold_decimal(h, array)
    else:
        _fold_scalar(h, array)


def _unwrap(array: Any) -> Any:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array.storage if isinstance(array, pyarrow.ExtensionArray) else array


def _fold_nulls(h: Hashes, array: Any) -> None:
    array = _unwrap(array)
    kind = array.type
    null = array.is_null().to_numpy(zero_copy_only=False)
    hash_ints(h, null.astype(np.uint64), np.ones(len(array), np.bool_))
    if pa.types.is_struct(kind):
        for field in array.flatten():
            _fold_nulls(h, field)
    elif pa.types.is_map(kind) or _is_list(kind):
        _fold_elements(h, array, _fold_nulls)


def _is_list(kind: Any) -> bool:
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _fold_struct(h: Hashes, array: Any) -> None:
    rows = _find_valid(array).nonzero()[0]
    some = h[rows]
    for field in array.take(pa.array(rows)).flatten():
        _fold(some, field)
    h[rows] = some


def _fold_elements(h: Hashes, array: Any, fold: Callable[[Hashes, Any], None]) -> None:
    sizes = pc.fill_null(pc.cast(pc.list_value_length(_to_list(array)), pa.int64()), 0).to_numpy()
    values = pc.list_flatten(_to_list(array))
    starts = np.cumsum(sizes) - sizes
    for place in range(int(sizes.max(initial=0))):
        rows = np.flatnonzero(sizes > place)
        some = h[rows]
        fold(some, values.take(pa.array(starts[rows] + place)))
        h[rows] = some


def _to_list(array: Any) -> Any:
    if not pa.types.is_map(array.type):
        return array
    entry = pa.struct([array.type.key_field, array.type.item_field])
    return array.cast(pa.list_(pa.field("entries", entry, nullable=False)))


def _fold_decimal(h: Hashes, array: Any) -> None:
    valid, scale = _find_valid(array), array.type.scale
    whole = [0 if v is None else int(v.scaleb(scale, _EXACT)) for v in array.to_pylist()]
    if array.type.precision <= 18:
        hash_longs(h, np.array(whole, np.int64).view(np.uint64), valid)
        return
    # As java.math.BigInteger.toByteArray: the fewest bytes with the sign.
    sizes = [(w if w >= 0 else ~w).bit_length() // 8 + 1 for w in whole]
    texts = [w.to_bytes(n, "big", signed=True) for w, n in zip(whole, sizes, strict=True)]
    hash_bytes(h, *_read_bytes(pa.array(texts, pa.binary())), valid)


def _fold_scalar(h: Hashes, array: Any) -> None:
    kind, valid = array.type, _find_valid(array)
    if pa.types.is_boolean(kind) or pa.types.is_date32(kind):
        hash_ints(h, _to_words(array.cast(pa.int32())), valid)
    elif pa.types.is_integer(kind):
        _fold_integer(h, array)
    elif pa.types.is_floating(kind):
        _fold_float(h, array)
    elif pa.types.is_date64(kind):
        hash_ints(h, _to_words(array.cast(pa.date32()).cast(pa.int32())), valid)
    elif pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        micros = pa.duration("us")
        if pa.types.is_timestamp(kind):
            micros = pa.timestamp("us", tz=kind.tz)
        hash_longs(h, _to_words(array.cast(micros, safe=False).cast(pa.int64())), valid)
    elif pa.types.is_time(kind):
        nanos = array.cast(pa.time64("us")).cast(pa.time64("ns")).cast(pa.int64())
        hash_longs(h, _to_words(nanos), valid)
    else:
        hash_bytes(h, *_read_bytes(_to_bytes(array)), valid)


def _fold_integer(h: Hashes, array: Any) -> None:
    kind, valid = array.type, _find_valid(array)
    if kind.bit_width < 32 or kind == pa.int32():
        hash_ints(h, _to_words(array.cast(pa.int32())), valid)
    elif kind == pa.uint64():  # a decimal of 20 digits to Spark
        _fold_decimal(h, array.cast(pa.decimal128(20, 0)))
    else:
        hash_longs(h, _to_words(array.cast(pa.int64())), valid)


def _fold_float(h: Hashes, array: Any) -> None:
    """Fold floats by their bits; both zeros are equal, and so are all NaNs."""
    kind, valid = array.type, _find_valid(array)
    short = kind.bit_width <= 32
    values = pc.fill_null(array.cast(pa.float32() if short else pa.float64()), 0.0).to_numpy()
    values = np.where(np.isnan(values), values.dtype.type(np.nan), values + 0)
    if short:
        hash_ints(h, values.view(np.uint32).astype(np.uint64), valid)
    else:
        hash_longs(h, values.view(np.uint64), valid)


def _to_bytes(array: Any) -> Any:
    """Return text and bytes unchanged, and values of types that Spark lacks as text."""
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return array.cast(pa.large_string()).cast(pa.large_binary())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return array.cast(pa.large_binary())
    if pa.types.is_fixed_size_binary(kind):
        return array.cast(pa.binary())
    texts = [None if v is None else repr(v).encode() for v in array.to_pylist()]
    return pa.array(texts, pa.binary())


def _read_bytes(array: Any) -> tuple[ByteArray, Longs]:
    array = pc.fill_null(array.cast(pa.large_binary()), b"")
    _, ends, data = array.buffers()
    where = np.frombuffer(ends, np.int64)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(data or b"", np.uint8), where


def _to_words(array: Any) -> Hashes:
    words: Hashes = pc.fill_null(array, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return words.view(np.uint64)


def _find_valid(array: Any) -> Any:
    return array.is_valid().to_numpy(zero_copy_only=False)
