"""Blobs of a shard: named bytes in the state store, opened as arrays through a cache.

Every blob is immutable, and the head of the shard has a digest of each. So a blob is read once:
small ones stay in the process, large ones in files that all workers of a machine map. A blob that
is damaged in the store is rejected by name; a damaged file is read from the store again. Nothing is
pickled.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import mmap
import os
import stat
import struct
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from antecede.errors import InputError

Arrays = dict[str, NDArray[Any]]
Part = TypeVar("Part")

_MIN_MAPPED_BYTES = 64 * 1024
_MAX_PROCESS_BYTES = 256 * 2**20
_MAX_FILE_BYTES = 16 * 2**30
_MAGIC = b"antecede"
_VERSION = 1
_HEAD = struct.Struct("<8sII")
_ENTRY = struct.Struct("<16s4sQ")
_TYPES = {b"u1", b"i4", b"u4", b"i8"}


def pack(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return one-dimensional arrays (uint8, int32, uint32, int64) as bytes.

    Layout: magic, version, number of entries; name, type and size of each; then the data, aligned
    to eight bytes.
    """
    heads = [_HEAD.pack(_MAGIC, _VERSION, len(arrays))]
    parts: list[bytes] = []
    for name, array in arrays.items():
        kind = array.dtype.str[1:].encode()
        heads.append(_ENTRY.pack(name.encode(), kind, len(array)))
        parts.append(array.tobytes() + bytes(-array.nbytes % 8))
    head = b"".join(heads)
    return b"".join([head, bytes(-len(head) % 8), *parts])


def unpack(data: Any) -> dict[str, NDArray[Any]]:
    """Return the arrays that `pack` wrote, as views of a buffer. Raises InputError for other bytes.

    The buffer must be writable: numba compiles kernels again for read-only arrays.
    """
    if len(data) < _HEAD.size:
        raise InputError(f"the state of a shard is truncated at {len(data)} bytes")
    magic, version, count = _HEAD.unpack_from(data)
    if magic != _MAGIC or version != _VERSION:
        raise InputError(
            f"the state of a shard was written by another version (format {version}, this is "
            f"{_VERSION}): start from a new checkpoint"
        )
    end = _HEAD.size + count * _ENTRY.size
    offset = end + -end % 8
    arrays: dict[str, NDArray[Any]] = {}
    for index in range(count):
        if end > len(data):
            raise InputError("the state of a shard is truncated in its table of contents")
        name, kind, size = _ENTRY.unpack_from(data, _HEAD.size + index * _ENTRY.size)
        kind = kind.rstrip(b"\0")
        nbytes = size * int(kind[1:]) if kind in _TYPES else -1
        if nbytes < 0 or offset + nbytes > len(data):
            raise InputError(f"the state of a shard is damaged at entry {index}")
        dtype = np.dtype("<" + kind.decode())
        arrays[name.rstrip(b"\0").decode()] = np.frombuffer(data, dtype, size, offset)
        offset += nbytes + -nbytes % 8
    return arrays


class BlobStore(Protocol):
    """Named bytes: Spark's state store, or a dictionary in tests."""

    def get(self, name: str) -> bytes | None:
        """Return the bytes of that name, None if there are none."""

    def put(self, name: str, data: bytes) -> None:
        """Store bytes under a name."""

    def remove(self, name: str) -> None:
        """Delete a name."""


class Memory(dict[str, bytes]):
    """Store in a dictionary."""

    def put(self, name: str, data: bytes) -> None:
        """Store bytes under a name."""
        self[name] = data

    def remove(self, name: str) -> None:
        """Delete a name."""
        del self[name]


class ShardParts:
    """Blobs of one shard: arrays by name and digest."""

    def __init__(self, blobs: BlobStore) -> None:
        self.store = blobs
        self.written = 0
        """Bytes written to the store."""

    def save(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> tuple[bytes, int]:
        """Store arrays under a name; return their digest (16 bytes) and size in bytes."""
        data = pack(arrays)
        self.store.put(name, data)
        self.written += len(data)
        digest = _hash_bytes(data)
        _cache.put(digest, data)
        return digest, len(data)

    def open(self, name: str, digest: bytes) -> Arrays:
        """Return the arrays of a blob. Raises InputError when it is missing or damaged."""
        arrays = _cache.get(digest)
        if arrays is not None:
            return arrays
        data = self.store.get(name)
        if data is None or _hash_bytes(data) != digest:
            what = "is missing" if data is None else "is damaged"
            raise InputError(
                f"blob {name} of a shard's state {what} in the checkpoint: restore a copy of the "
                "checkpoint, or start from a new one"
            )
        return _cache.put(digest, data)

    def remove(self, name: str) -> None:
        """Delete a blob."""
        self.store.remove(name)


class _Cache:
    def __init__(self) -> None:
        self.opened: OrderedDict[bytes, tuple[Arrays, int]] = OrderedDict()
        self.size = 0
        self.files = _Files()

    def get(self, digest: bytes) -> Arrays | None:
        if digest in self.opened:
            self.opened.move_to_end(digest)
            return self.opened[digest][0]
        mapped = self.files.get(digest)
        return None if mapped is None else self._insert(digest, unpack(mapped), 0)

    def put(self, digest: bytes, data: bytes) -> Arrays:
        if digest in self.opened:
            return self.opened[digest][0]
        if len(data) >= _MIN_MAPPED_BYTES and self.files.put(digest, data):
            mapped = self.files.get(digest)
            if mapped is not None:
                return self._insert(digest, unpack(mapped), 0)
        return self._insert(digest, unpack(bytearray(data)), len(data))

    def _insert(self, digest: bytes, arrays: Arrays, size: int) -> Arrays:
        self.opened[digest] = (arrays, size)
        self.size += size
        while self.size > _MAX_PROCESS_BYTES or len(self.opened) > 20_000:
            _, (_, gone) = self.opened.popitem(last=False)
            self.size -= gone
        return arrays


class _Files:
    """Large blobs as files below a folder that only this user may read and write."""

    @functools.cached_property
    def folder(self) -> Path | None:
        folder = _find_folder()
        if folder is not None:
            _delete_oldest(folder)
        return folder

    def get(self, digest: bytes) -> mmap.mmap | None:
        """Map a blob privately: writing to its arrays changes no file."""
        if self.folder is None:
            return None
        path = self.folder / digest.hex()
        try:
            with path.open("rb") as file:
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        except (OSError, ValueError):
            return None
        if _hash_bytes(mapped) != digest:
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        return mapped

    def put(self, digest: bytes, data: bytes) -> bool:
        if self.folder is None:
            return False
        path = self.folder / digest.hex()
        if path.exists():
            return True
        draft = self.folder / f"{digest.hex()}.{os.getpid()}"
        try:
            draft.write_bytes(data)
            draft.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                draft.unlink()
            return False
        return True


def _find_folder() -> Path | None:
    """Return the folder of mapped blobs, or None if others may write there."""
    given = os.environ.get("ANTECEDE_PARTS")
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(given or Path(tempfile.gettempdir()) / f"antecede-parts-{user}")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = folder.lstat()
    except OSError:
        return None
    foreign = hasattr(os, "getuid") and state.st_uid != os.getuid()
    shared = bool(stat.S_IMODE(state.st_mode) & 0o022)
    return None if foreign or shared or not stat.S_ISDIR(state.st_mode) else folder


def _delete_oldest(folder: Path) -> None:
    """Delete the oldest files beyond the limit of bytes; processes keep the files that they map."""
    try:
        files = [(entry.stat().st_mtime, entry.stat().st_size, entry) for entry in folder.iterdir()]
    except OSError:
        return
    room = _MAX_FILE_BYTES
    for _, size, path in sorted(files, key=lambda file: -file[0]):
        room -= size
        if room < 0:
            with contextlib.suppress(OSError):
                path.unlink()


def _hash_bytes(data: Any) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


_cache = _Cache()


def dump_segments(
    numbers: str, seals: str, following: int, parts: Sequence[Any]
) -> dict[str, NDArray[Any]]:
    """Return the entries of segments (four numbers, two digests of 16 bytes) for a head."""
    rows = [astuple(part) for part in parts]
    return {
        numbers: np.array([following, *(number for row in rows for number in row[:4])], np.int64),
        seals: np.frombuffer(b"".join(row[4] + row[5] for row in rows), np.uint8),
    }


def load_segments(
    kind: Callable[..., Part], numbers: NDArray[Any], seals: NDArray[Any]
) -> tuple[int, list[Part]]:
    """Return the number of the next segment, and the segments that were dumped."""
    following, *values = numbers.tolist()
    data = seals.tobytes()
    rows = [(values[4 * k : 4 * k + 4], 32 * k) for k in range(len(values) // 4)]
    return following, [kind(*row, data[a : a + 16], data[a + 16 : a + 32]) for row, a in rows]
