"""Each message once in the program's own table, through any crash: the books of some tills.

Every till books amounts, tells the others, and books what they tell. Its books are a SQLite file of
its own, beside the peer's store. Two rules make that exact:

- *Taking.* A message is booked under its `id` in one transaction, and acknowledged to the peer
  after that (`acknowledge="explicit"`). A crash in between brings it again, and the id is there.
- *Telling.* What is to be told is written in the transaction that booked it (an outbox), sent from
  there, and crossed out. A crash in between sends it again, as another message: so it bears a key
  of the program's own, and who takes it books a key once.

    python -m examples.live.exactly_once FOLDER NAME HOST:PORT [HOST:PORT of who is in the group]

FOLDER holds the certificates (`antecede certs FOLDER ann bob`). They trade once all who have one are
there, since a newcomer's books would begin empty; once FOLDER holds a file `stop` nothing new is
sold, and what was sold is told and booked to the end.
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
    """The program's own table, what it sums up to, what came again, and what is to be told."""

    def __init__(self, path: Path, till: str) -> None:
        self._till = till
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        self._db.executescript(SCHEMA)

    def own(self, amount: int) -> None:
        """Book an amount of one's own, and that the others are to be told."""
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            [number] = self._db.execute(
                "SELECT count(*) + 1 FROM books WHERE id IS NULL"
            ).fetchone()
            key = f"{self._till}-{number}"
            self._db.execute("INSERT INTO outbox VALUES (?, ?, ?)", (number, key, amount))
            self._enter(key, None, self._till, amount)

    def told(self, message: Message) -> None:
        """Book what another till told, unless that is booked already."""
        said = json.loads(message.payload)
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            known = "SELECT 1 FROM books WHERE id = ? OR key = ?"
            if self._db.execute(known, (str(message.id), said["key"])).fetchone() is None:
                self._enter(said["key"], str(message.id), message.sender, said["amount"])
            else:
                self._db.execute("UPDATE total SET again = again + 1")

    def _enter(self, key: str, id: str | None, till: str, amount: int) -> None:
        row = key, id, till, amount
        self._db.execute("INSERT INTO books (key, id, till, amount) VALUES (?, ?, ?, ?)", row)
        self._db.execute("UPDATE total SET amount = amount + ?", (amount,))

    def to_tell(self) -> list[tuple[int, str, int]]:
        """Return what the others are to be told, in order."""
        return self._db.execute("SELECT nr, key, amount FROM outbox ORDER BY nr").fetchall()

    def has_told(self, number: int) -> None:
        """Cross out what was sent."""
        self._db.execute("DELETE FROM outbox WHERE nr = ?", (number,))


async def take(peer: Peer, books: Books) -> None:
    """Book what the others tell."""
    async for message in peer:
        books.told(message)  # commits
        peer.acknowledge(message)


async def tell(peer: Peer, books: Books) -> None:
    """Tell the others what is in the outbox."""
    while True:
        for number, key, amount in books.to_tell():
            await peer.send(json.dumps({"key": key, "amount": amount}).encode())
            books.has_told(number)
        await asyncio.sleep(PACE_S)


async def sell(books: Books, stop: Path) -> None:
    """Book an amount now and then, until told to stop."""
    number = 0
    while not stop.exists():
        number += 1
        books.own(number % 97)
        await asyncio.sleep(PACE_S)


async def till(folder: Path, name: str, listen: str, join: str = "") -> None:
    """Be one of the tills."""
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
