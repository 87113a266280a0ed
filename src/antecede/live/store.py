"""What a live peer keeps on disk: one SQLite file in WAL mode.

The inputs of its ordering in the order they were taken, a snapshot now and then, and how far the
application is done. One transaction for what one turn brought, written through to the disk
(`synchronous=FULL`) before anybody is told of it. So after `kill -9`, or when the power
fails, what was acknowledged is there.

    meta     key, value     version, owner, life, snapshot, since (seq), done, keys
    batches  seq, lane, number, seal, wire
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from antecede.errors import StoreError
from antecede.live.lanes import Sealed
from antecede.live.node import Saved
from antecede.live.ordering import Row

VERSION: Final = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches (
    seq INTEGER PRIMARY KEY, lane TEXT NOT NULL, number INTEGER NOT NULL,
    seal BLOB NOT NULL, wire BLOB NOT NULL, UNIQUE (lane, number)
);
"""
_HINT = {
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
        except sqlite3.Error as error:
            raise self._error("opened", error) from error
        try:
            self._set_up(owner, group)
        except sqlite3.Error as error:
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
        if db.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise StoreError(f"{self.path}: the file is damaged; nothing was changed in it")
        found = dict(db.execute("SELECT key, value FROM meta WHERE key IN ('version', 'owner')"))
        mine = owner.encode() + b"\0" + group
        if not found:
            rows = [("version", str(VERSION).encode()), ("owner", mine)]
            db.executemany("INSERT INTO meta VALUES (?, ?)", rows)
        elif found.get("version") != str(VERSION).encode():
            raise StoreError(f"{self.path}: a store of version {found.get('version')!r}")
        elif found.get("owner") != mine:
            theirs = bytes(found.get("owner") or b"").partition(b"\0")[0].decode(errors="replace")
            raise StoreError(
                f"{self.path}: the store of {theirs!r}, or of another room, order or options"
            )
        self._last = db.execute("SELECT coalesce(max(seq), 0) FROM batches").fetchone()[0]

    def _error(self, what: str, error: sqlite3.Error) -> StoreError:
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
            row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error as error:
            raise self._error("read", error) from error
        return None if row is None else bytes(row[0])

    def put(self, key: str, value: bytes) -> None:
        """Keep one value."""
        try:
            self._put(key, value)
        except sqlite3.Error as error:
            raise self._error("written", error) from error

    def _put(self, key: str, value: bytes) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    # -- inputs ------------------------------------------------------------------------------------

    def write(
        self,
        rows: Iterable[Row],
        done: int,
        snapshot: bytes | None = None,
        oldest: Mapping[str, int] | None = None,
    ) -> None:
        """Write what one turn brought, all or nothing, and through to the disk.

        `snapshot` holds all these rows; then batches below `oldest` of their lanes go.
        """
        db, last = self._db, self._last
        try:
            db.execute("BEGIN")
            numbered = [
                (seq, row.lane, row.number, row.batch.seal, row.batch.wire)
                for seq, row in enumerate(rows, last + 1)
            ]
            db.executemany("INSERT INTO batches VALUES (?, ?, ?, ?, ?)", numbered)
            last += len(numbered)
            self._put("done", str(done).encode())
            if snapshot is not None:
                self._put("snapshot", snapshot)
                self._put("since", str(last).encode())
                gone = [(lane, number) for lane, number in (oldest or {}).items()]
                db.executemany("DELETE FROM batches WHERE lane = ? AND number < ?", gone)
            db.execute("COMMIT")
        except sqlite3.Error as error:
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
        return Saved(snapshot, self._rows(since), self._batch, done)

    def _rows(self, since: int) -> Iterator[Row]:
        query = "SELECT lane, number, seal, wire FROM batches WHERE seq > ? ORDER BY seq"
        try:
            for lane, number, seal, wire in self._db.execute(query, (since,)):
                yield Row(lane, number, Sealed(seal, wire))
        except sqlite3.Error as error:
            raise self._error("read", error) from error

    def _batch(self, lane: str, number: int) -> Sealed:
        found = self.behind(lane, number - 1, 1)
        if not found or found[0][0] != number:
            raise StoreError(f"{self.path}: batch {number} of {lane} is not there")
        return found[0][1]

    def behind(self, lane: str, number: int, at_most: int) -> list[tuple[int, Sealed]]:
        """Return (number, batch) of a lane behind a number, at most so many."""
        query = (
            "SELECT number, seal, wire FROM batches WHERE lane = ? AND number > ? "
            "ORDER BY number LIMIT ?"
        )
        try:
            found = self._db.execute(query, (lane, number, at_most)).fetchall()
        except sqlite3.Error as error:
            raise self._error("read", error) from error
        return [(n, Sealed(seal, wire)) for n, seal, wire in found]


def _only_ours(path: Path) -> None:
    """Make the file, readable by nobody else: the key of the lane is in it."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise StoreError(f"{path} cannot be opened: {error.strerror}") from error
