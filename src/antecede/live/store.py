"""Store of a live peer: one SQLite file in WAL mode.

It contains the inputs of the ordering in the order received, a snapshot at intervals, and the
number of messages that the application has finished. Each step is one transaction, synced to the
disk (`synchronous=FULL`) before other members learn of it. So acknowledged data survives `kill -9`
and power failures.

    meta     key, value, crc: version, member, incarnation, snapshot, since (seq), done, secret
    batches  seq, sender_id, number, signature, wire, crc
    signers  sender_id, statement, crc: proofs of other senders, for relayed batches

SQLite trusts the disk. The checksums find a flipped byte before it is replayed.
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
from antecede.live.ordering import StoredInput

VERSION: Final = 2
_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (
    key TEXT PRIMARY KEY, value BLOB NOT NULL, crc INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches (
    seq INTEGER PRIMARY KEY, sender_id TEXT NOT NULL, number INTEGER NOT NULL,
    signature BLOB NOT NULL, wire BLOB NOT NULL, crc INTEGER NOT NULL, UNIQUE (sender_id, number)
);
CREATE TABLE IF NOT EXISTS signers (
    sender_id TEXT PRIMARY KEY, statement BLOB NOT NULL, crc INTEGER NOT NULL
) WITHOUT ROWID;
"""
_FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""Errors of SQLite. UnicodeDecodeError: its message quotes a name of a damaged file."""
_HINT = {
    "codec can't decode": "the file is damaged",
    "locked": "another process has it open; give each peer its own store",
    "full": "the disk is full",
    "readonly": "it is read-only",
    "malformed": "the file is damaged",
    "not a database": "it is not the store of a peer",
    "unable to open": "the folder may be missing",
    "disk i/o": "the disk fails",
}


class PeerStore:
    """Store file of one peer, for one thread at a time. All errors are StoreError."""

    def __init__(self, path: Path, owner: str, group: bytes) -> None:
        """Open or create the file of the member `owner` in a group. Raises StoreError for
        another's.
        """
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
        db.executescript(_SCHEMA)  # commits the transaction; the lock stays
        # Checks the index too, or rows could be missed: 1.5 s for a gigabyte.
        if db.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
            raise StoreError(
                f"{self.path}: the file is damaged; nothing was changed; restore a copy"
            )
        # A damaged table definition may still be valid SQL. If `seq` is no key then, rows have no
        # numbers, and all of them would be missed.
        if not _as_defined() <= _definitions(db):
            raise StoreError(f"{self.path}: the file is damaged, in the table definitions")
        # Checks all rows: a damaged key would look like an absent one.
        for key, value, crc in db.execute("SELECT key, value, crc FROM meta"):
            self._check(_crc(key, 0, value), crc, key)
        version, mine = self.get("version"), owner.encode() + b"\0" + group
        if version is None:
            self._put("version", str(VERSION).encode())
            self._put("member", mine)
        elif version != str(VERSION).encode():
            raise StoreError(f"{self.path}: unknown store version {version!r}; expected {VERSION}")
        elif (found := self.get("member")) != mine:
            theirs = (found or b"").partition(b"\0")[0].decode(errors="replace")
            raise StoreError(
                f"{self.path}: store of {theirs!r}, or of another group name, order or options"
            )
        self._last = db.execute("SELECT coalesce(max(seq), 0) FROM batches").fetchone()[0]

    def _error(self, what: str, error: sqlite3.Error | UnicodeDecodeError) -> StoreError:
        words = str(error).lower()
        hint = next((text for key, text in _HINT.items() if key in words), "")
        return StoreError(f"{self.path} cannot be {what}: {error}{f' ({hint})' if hint else ''}")

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    # -- single values -----------------------------------------------------------------------------

    def get(self, key: str) -> bytes | None:
        """Return a value of the table meta."""
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
            raise StoreError(f"{self.path}: the file is damaged, in {what}: checksum mismatch")

    def put(self, key: str, value: bytes) -> None:
        """Write a value of the table meta."""
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
        rows: Iterable[StoredInput],
        done: int,
        snapshot: bytes | None = None,
        oldest: Mapping[str, int] | None = None,
        owners: Mapping[str, bytes] | None = None,
    ) -> None:
        """Write the results of one step in one transaction. `snapshot` contains all these rows;
        batches below `oldest` are then deleted. `owners`: proofs of senders since the last write.
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
            db.executemany("INSERT OR REPLACE INTO signers VALUES (?, ?, ?)", shown)
            self._put("done", str(done).encode())
            if snapshot is not None:
                self._put("snapshot", snapshot)
                self._put("since", str(last).encode())
                gone = [(lane, number) for lane, number in (oldest or {}).items()]
                db.executemany("DELETE FROM batches WHERE sender_id = ? AND number < ?", gone)
            db.execute("COMMIT")
        except _FAILURES as error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise self._error("written", error) from error
        self._last = last

    def load(self) -> Saved | None:
        """Return the state for a restart. None: empty store."""
        snapshot = self.get("snapshot")
        if snapshot is None:
            return None
        since, done = int(self.get("since") or 0), int(self.get("done") or 0)
        return Saved(snapshot, self._rows(since), self._batch, done, self._owners())

    def _owners(self) -> dict[str, bytes]:
        try:
            found = self._db.execute("SELECT sender_id, statement, crc FROM signers").fetchall()
        except _FAILURES as error:
            raise self._error("read", error) from error
        for lane, owner, crc in found:
            self._check(_crc(lane, 0, owner), crc, f"the signer of {lane}")
        return {lane: owner for lane, owner, _ in found}

    def _rows(self, since: int) -> Iterator[StoredInput]:
        query = (
            "SELECT sender_id, number, signature, wire, crc FROM batches WHERE seq > ? ORDER BY seq"
        )
        try:
            for lane, number, seal, wire, crc in self._db.execute(query, (since,)):
                self._check(_crc(lane, number, seal, wire), crc, f"batch {number} of {lane}")
                yield StoredInput(lane, number, SignedBatch(seal, wire))
        except _FAILURES as error:
            raise self._error("read", error) from error

    def _batch(self, lane: str, number: int) -> SignedBatch:
        found = self.behind(lane, number - 1, 1)
        if not found or not _is_of(number, *found[0]):
            raise StoreError(f"{self.path}: batch {number} of {lane} is missing")
        return found[0][1]

    def behind(self, lane: str, number: int, at_most: int) -> list[tuple[int, SignedBatch]]:
        """Return (number, batch) of a sender behind a number, at most `at_most`."""
        query = (
            "SELECT number, signature, wire, crc FROM batches "
            "WHERE sender_id = ? AND number > ? ORDER BY number LIMIT ?"
        )
        try:
            found = self._db.execute(query, (lane, number, at_most)).fetchall()
        except _FAILURES as error:
            raise self._error("read", error) from error
        for n, seal, wire, crc in found:
            self._check(_crc(lane, n, seal, wire), crc, f"batch {n} of {lane}")
        return [(n, SignedBatch(seal, wire)) for n, seal, wire, _ in found]


def _is_of(wanted: int, number: int, batch: SignedBatch) -> bool:
    """Return whether a stored row is the batch `wanted`, or a skip marker that contains it."""
    if number == wanted:
        return True
    return is_run(batch.wire) and read_run(batch.wire).first <= wanted <= number


def _definitions(db: sqlite3.Connection) -> frozenset[tuple[str | None, ...]]:
    return frozenset(db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))


@functools.cache
def _as_defined() -> frozenset[tuple[str | None, ...]]:
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        db.executescript(_SCHEMA)
        return _definitions(db)


def _text(raw: bytes) -> str:
    """Return a text. A damaged one fails at its checksum later."""
    return raw.decode(errors="replace")


def _crc(name: str, number: int, *parts: bytes) -> int:
    """Return the checksum of a row. -1, which no row has, for parts that are not bytes."""
    if not all(isinstance(part, bytes) for part in parts):
        return -1
    total = zlib.crc32(f"{name}:{number}:{len(parts[0])}".encode())
    for part in parts:
        total = zlib.crc32(part, total)
    return total


def _only_ours(path: Path) -> None:
    """Create the file without access for others: it contains the private key."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise StoreError(f"{path} cannot be opened: {error.strerror}") from error
