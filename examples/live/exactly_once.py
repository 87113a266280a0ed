"""Exactly-once processing into the program's own table, through any crash.

Tills record sales, send them to the others, and record received ones. Each has a SQLite file beside
the peer's store. Two rules give exactly-once:

- *Receiver.* A transaction records a message under its `id`; the acknowledgement follows
  (`acknowledge="explicit"`). After a crash in between the message is repeated, and its id is known.
- *Sending.* The transaction that records a sale also writes it to an outbox. The program sends the
  outbox and then deletes it. After a crash in between it sends another message for the same sale,
  so receivers compare a key of the program's own.

    python -m examples.live.exactly_once FOLDER NAME HOST:PORT [HOST:PORT of a member]

FOLDER contains the certificates (`antecede certs FOLDER ann bob`). Sales start once every member
with a certificate is present, since a joining member's table would be empty. They end once FOLDER
contains a file `stop`; the remaining sales are then sent and recorded.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from pathlib import Path

from antecede.live import Message, Peer, Tls

SCHEMA = """
CREATE TABLE IF NOT EXISTS books (
    nr INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, id TEXT UNIQUE,
    till TEXT NOT NULL, amount INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS outbox (nr INTEGER PRIMARY KEY, key TEXT NOT NULL, amount INTEGER);
CREATE TABLE IF NOT EXISTS total (amount INTEGER NOT NULL, again INTEGER NOT NULL);
INSERT INTO total SELECT 0, 0 WHERE NOT EXISTS (SELECT 1 FROM total);
"""
PACE_S = 0.02


class Books:
    """Table of sales, their total, the number of repeated ones, and the outbox."""

    def __init__(self, path: Path, till: str) -> None:
        self._till = till
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        self._db.executescript(SCHEMA)

    def record_own(self, amount: int) -> None:
        """Record an own sale, and add it to the outbox."""
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            [number] = self._db.execute(
                "SELECT count(*) + 1 FROM books WHERE id IS NULL"
            ).fetchone()
            key = f"{self._till}-{number}"
            self._db.execute("INSERT INTO outbox VALUES (?, ?, ?)", (number, key, amount))
            self._enter(key, None, self._till, amount)

    def record_received(self, message: Message) -> None:
        """Record a sale of another till, unless it is known."""
        sale = json.loads(message.payload)
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            known = "SELECT 1 FROM books WHERE id = ? OR key = ?"
            if self._db.execute(known, (str(message.id), sale["key"])).fetchone() is None:
                self._enter(sale["key"], str(message.id), message.sender, sale["amount"])
            else:
                self._db.execute("UPDATE total SET again = again + 1")

    def _enter(self, key: str, id: str | None, till: str, amount: int) -> None:
        row = key, id, till, amount
        self._db.execute("INSERT INTO books (key, id, till, amount) VALUES (?, ?, ?, ?)", row)
        self._db.execute("UPDATE total SET amount = amount + ?", (amount,))

    def read_outbox(self) -> list[tuple[int, str, int]]:
        """Return the outbox in order."""
        return self._db.execute("SELECT nr, key, amount FROM outbox ORDER BY nr").fetchall()

    def remove_sent(self, number: int) -> None:
        """Delete a sent entry of the outbox."""
        self._db.execute("DELETE FROM outbox WHERE nr = ?", (number,))


async def take(peer: Peer, books: Books) -> None:
    """Record the sales of the others."""
    async for message in peer:
        books.record_received(message)  # commits
        peer.acknowledge(message)


async def tell(peer: Peer, books: Books) -> None:
    """Send the outbox."""
    while True:
        for number, key, amount in books.read_outbox():
            await peer.send(json.dumps({"key": key, "amount": amount}).encode())
            books.remove_sent(number)
        await asyncio.sleep(PACE_S)


async def sell(books: Books, stop: Path) -> None:
    """Record a sale at intervals, until the file `stop` exists."""
    number = 0
    while not stop.exists():
        number += 1
        books.record_own(number % 97)
        await asyncio.sleep(PACE_S)


async def till(folder: Path, name: str, listen: str, join: str = "") -> None:
    """Run a till."""
    books = Books(folder / f"{name}.books", name)
    async with Peer(
        name,
        group_name="tills",
        listen=listen,
        tls=Tls(folder / f"{name}.pem", folder / "ca.pem"),
        store=folder / f"{name}.db",
        acknowledge="explicit",
    ) as peer:
        await (peer.join(join, timeout_s=60) if join else peer.bootstrap())
        everybody = len(list(folder.glob("*.pem"))) - 1
        while len(peer.members) < everybody:
            await asyncio.sleep(PACE_S)
        tasks = [asyncio.ensure_future(work(peer, books)) for work in (take, tell)]
        await sell(books, folder / "stop")
        await asyncio.gather(*tasks)


if __name__ == "__main__":
    asyncio.run(till(Path(sys.argv[1]), *sys.argv[2:]))
