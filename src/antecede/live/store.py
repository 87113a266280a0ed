"""What a live peer keeps on disk: one SQLite file in WAL mode.

The inputs of its ordering in the order they were taken, a snapshot now and then, and how far the
application is done. One transaction for what one turn brought, written through to the disk
(`synchronous=FULL`) before anybody is told of it. So after `kill -9`, or when the power
fails, what was acknowledged is there.

    meta     key, value, crc   version, owner, life, snapshot, since (seq), done, secret
    batches  seq, lane, number, seal, wire, crc
    owners   lane, statement, crc   whose the others' lanes are, to be shown when they are handed on

SQLite trusts the disk; the checksums do not, so a flipped byte is found and not replayed.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from antecede.errors import StoreError
from antecede.live.heads import is_run, read_run
from antecede.live.lanes import SignedBatch
from antecede.live.node import Saved
from antecede.live.ordering import Row

VERSION: Final = 2
_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (
    key TEXT PRIMARY KEY, value BLOB NOT NULL, crc INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches (
    seq INTEGER PRIMARY KEY, lane TEXT NOT NULL, number INTEGER NOT NULL,
    seal BLOB NOT NULL, wire BLOB NOT NULL, crc INTEGER NOT NULL, UNIQUE (lane, number)
);
CREATE TABLE IF NOT EXISTS owners (
    lane TEXT PRIMARY KEY, statement BLOB NOT NULL, crc INTEGER NOT NULL
) WITHOUT ROWID;
"""
_FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises; the second where its words quote a name out of a damaged file."""
_HINT = {
    "codec can't decode": "the file is damaged",
    "locked": "another process has it open: one peer, one store",
    "full": "there is no room left on the disk",
    "readonly": "it may not be written",
    "malformed": "the file is damaged",
    "not a database": "it is no store of a peer",
    "unable to open": "it cannot be opened: is the folder there?",
    "disk i/o": "the disk refuses",
}


class Store:
    """One peer's file. Used by one thread at a time; raises StoreError whatever goes wrong."""

    def __init__(self, path: Path, owner: str, group: bytes) -> None:
        """Open or make it. `owner`, `group`: whose it is; that of another is refused."""
        self.path = path
        self._last = 0
        _only_ours(path)
        try:
            self._db = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=0.2
            )
            self._db.text_factory = _text
        except _FAILURES as error:
            raise self._error("opened", error) from error
        try:
            self._set_up(owner, group)
        except _FAILURES as error:
            self._db.close()
            raise self._error("opened", error) from error
        except StoreError:
            self._db.close()
            raise

    def _set_up(self, owner: str, group: bytes) -> None:
        db = self._db
        db.execute("PRAGMA locking_mode=EXCLUSIVE")
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.execute("BEGIN EXCLUSIVE")
        db.executescript(_SCHEMA)  # commits what was begun; the lock stays
        # Of the index too, or rows could be passed over: a second and a half for a gigabyte.
        if db.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
            raise StoreError(f"{self.path}: the file is damaged; nothing was changed in it")
        # What defines the tables may be damaged and still be SQL: where `seq` is no key any more,
        # rows have no numbers, and all would be passed over.
        if not _as_defined() <= _definitions(db):
            raise StoreError(f"{self.path}: the file is damaged, in what its tables are")
        # All, for one whose key is damaged would be looked up in vain, as if it had never been put.
        for key, value, crc in db.execute("SELECT key, value, crc FROM meta"):
            self._check(_crc(key, 0, value), crc, key)
        version, mine = self.get("version"), owner.encode() + b"\0" + group
        if version is None:
            self._put("version", str(VERSION).encode())
            self._put("owner", mine)
        elif version != str(VERSION).encode():
            raise StoreError(f"{self.path}: a store of version {version!r}; this is {VERSION}")
        elif (found := self.get("owner")) != mine:
            theirs = (found or b"").partition(b"\0")[0].decode(errors="replace")
            raise StoreError(
                f"{self.path}: the store of {theirs!r}, or of another room, order or options"
            )
        self._last = db.execute("SELECT coalesce(max(seq), 0) FROM batches").fetchone()[0]

    def _error(self, what: str, error: sqlite3.Error | UnicodeDecodeError) -> StoreError:
        words = str(error).lower()
        hint = next((text for key, text in _HINT.items() if key in words), "")
        return StoreError(f"{self.path} cannot be {what}: {error}{f' ({hint})' if hint else ''}")

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    # -- small things ------------------------------------------------------------------------------

    def get(self, key: str) -> bytes | None:
        """Return one value of the table of single values."""
        try:
            query = "SELECT value, crc FROM meta WHERE key = ?"
            row = self._db.execute(query, (key,)).fetchone()
        except _FAILURES as error:
            raise self._error("read", error) from error
        if row is None:
            return None
        self._check(_crc(key, 0, row[0]), row[1], key)
        return bytes(row[0])

    def _check(self, found: int, written: int, what: str) -> None:
        if found != written:
            raise StoreError(
                f"{self.path}: the file is damaged, in {what}: what was written is not what is read"
            )

    def put(self, key: str, value: bytes) -> None:
        """Keep one value."""
        try:
            self._put(key, value)
        except _FAILURES as error:
            raise self._error("written", error) from error

    def _put(self, key: str, value: bytes) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", (key, value, _crc(key, 0, value))
        )

    # -- inputs ------------------------------------------------------------------------------------

    def write(
        self,
        rows: Iterable[Row],
        done: int,
        snapshot: bytes | None = None,
        oldest: Mapping[str, int] | None = None,
        owners: Mapping[str, bytes] | None = None,
    ) -> None:
        """Write what one turn brought, all or nothing, and through to the disk.

        `snapshot` holds all these rows; then batches below `oldest` of their lanes go. `owners`:
        what shows whose lanes are, as it was learnt since the last time.
        """
        db, last = self._db, self._last
        try:
            db.execute("BEGIN")
            numbered = [
                (seq, lane, number, *batch, _crc(lane, number, *batch))
                for seq, (lane, number, batch) in enumerate(rows, last + 1)
            ]
            db.executemany("INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?)", numbered)
            last += len(numbered)
            shown = [(lane, one, _crc(lane, 0, one)) for lane, one in (owners or {}).items()]
            db.executemany("INSERT OR REPLACE INTO owners VALUES (?, ?, ?)", shown)
            self._put("done", str(done).encode())
            if snapshot is not None:
                self._put("snapshot", snapshot)
                self._put("since", str(last).encode())
                gone = [(lane, number) for lane, number in (oldest or {}).items()]
                db.executemany("DELETE FROM batches WHERE lane = ? AND number < ?", gone)
            db.execute("COMMIT")
        except _FAILURES as error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise self._error("written", error) from error
        self._last = last

    def saved(self) -> Saved | None:
        """Return what a restart begins from; None: nothing was kept yet."""
        snapshot = self.get("snapshot")
        if snapshot is None:
            return None
        since, done = int(self.get("since") or 0), int(self.get("done") or 0)
        return Saved(snapshot, self._rows(since), self._batch, done, self._owners())

    def _owners(self) -> dict[str, bytes]:
        try:
            found = self._db.execute("SELECT lane, statement, crc FROM owners").fetchall()
        except _FAILURES as error:
            raise self._error("read", error) from error
        for lane, owner, crc in found:
            self._check(_crc(lane, 0, owner), crc, f"what shows whose {lane} is")
        return {lane: owner for lane, owner, _ in found}

    def _rows(self, since: int) -> Iterator[Row]:
        query = "SELECT lane, number, seal, wire, crc FROM batches WHERE seq > ? ORDER BY seq"
        try:
            for lane, number, seal, wire, crc in self._db.execute(query, (since,)):
                self._check(_crc(lane, number, seal, wire), crc, f"batch {number} of {lane}")
                yield Row(lane, number, SignedBatch(seal, wire))
        except _FAILURES as error:
            raise self._error("read", error) from error

    def _batch(self, lane: str, number: int) -> SignedBatch:
        found = self.behind(lane, number - 1, 1)
        if not found or not _is_of(number, *found[0]):
            raise StoreError(f"{self.path}: batch {number} of {lane} is not there")
        return found[0][1]

    def behind(self, lane: str, number: int, at_most: int) -> list[tuple[int, SignedBatch]]:
        """Return (number, batch) of a lane behind a number, at most so many."""
        query = (
            "SELECT number, seal, wire, crc FROM batches WHERE lane = ? AND number > ? "
            "ORDER BY number LIMIT ?"
        )
        try:
            found = self._db.execute(query, (lane, number, at_most)).fetchall()
        except _FAILURES as error:
            raise self._error("read", error) from error
        for n, seal, wire, crc in found:
            self._check(_crc(lane, n, seal, wire), crc, f"batch {n} of {lane}")
        return [(n, SignedBatch(seal, wire)) for n, seal, wire, _ in found]


def _is_of(wanted: int, number: int, batch: SignedBatch) -> bool:
    """Tell whether what stands under a number is, or is of a run with, the one that is wanted."""
    if number == wanted:
        return True
    return is_run(batch.wire) and read_run(batch.wire).first <= wanted <= number


def _definitions(db: sqlite3.Connection) -> frozenset[tuple[str | None, ...]]:
    """Return what tables and indices there are, and the text that each was made by."""
    return frozenset(db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))


@functools.cache
def _as_defined() -> frozenset[tuple[str | None, ...]]:
    """Return the definitions of a new store."""
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        db.executescript(_SCHEMA)
        return _definitions(db)


def _text(raw: bytes) -> str:
    """Return a text as it is there: a damaged one fails at its checksum, and not here."""
    return raw.decode(errors="replace")


def _crc(name: str, number: int, *parts: bytes) -> int:
    """Return the checksum of a row; -1, which is none's, for parts that are not bytes any more."""
    if not all(isinstance(part, bytes) for part in parts):
        return -1
    total = zlib.crc32(f"{name}:{number}:{len(parts[0])}".encode())
    for part in parts:
        total = zlib.crc32(part, total)
    return total


def _only_ours(path: Path) -> None:
    """Make the file, readable by nobody else: the key of the lane is in it."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise StoreError(f"{path} cannot be opened: {error.strerror}") from error
