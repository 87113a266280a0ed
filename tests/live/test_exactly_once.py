"""The example of books that are exact: its processes are killed, and their tables are judged."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from antecede.core.oracle.history import History
from antecede.live import keys
from antecede.live.events import Message
from antecede.tables.trace.schema import DELIVER, SEND, Event
from examples.live.exactly_once import Books
from tests.live.test_processes import free_ports

TILLS = "ann", "bob", "cat"
KILLS = 10
ROOT = Path(__file__).resolve().parents[2]


class Tills:
    """The processes of the example, and their books."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        keys.make_authority(folder)
        for name in TILLS:
            keys.make_member(folder, name)
        addresses = [f"127.0.0.1:{port}" for port in free_ports(len(TILLS))]
        self.addresses = dict(zip(TILLS, addresses, strict=True))
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        join = [] if name == TILLS[0] else [self.addresses[TILLS[0]]]
        words = ["-m", "examples.live.exactly_once", str(self.folder), name, self.addresses[name]]
        with (self.folder / f"{name}.err").open("ab") as errors:
            self.running[name] = subprocess.Popen(
                [sys.executable, *words, *join], stderr=errors, cwd=ROOT
            )

    def kill(self, name: str) -> None:
        self.running[name].kill()
        self.running[name].wait()

    def ask(self, name: str, query: str) -> list[Any]:
        try:
            with closing(sqlite3.connect(self.folder / f"{name}.books", timeout=10)) as books:
                return books.execute(query).fetchall()
        except sqlite3.OperationalError:  # not there yet
            return []

    def until(self, what: str, true: Any) -> None:
        end = time.monotonic() + 60
        while not true():
            assert time.monotonic() < end, (what, self.errors())
            time.sleep(0.05)

    def booked(self) -> list[int]:
        return [len(self.ask(name, "SELECT 1 FROM books")) for name in TILLS]

    def at_rest(self) -> bool:
        """Nothing is left to be told, and all have booked as much."""
        left = sum(len(self.ask(name, "SELECT 1 FROM outbox")) for name in TILLS)
        return not left and len(set(self.booked())) == 1

    def errors(self) -> str:
        return "".join((self.folder / f"{n}.err").read_text(errors="replace") for n in TILLS)


@pytest.mark.slow
def test_books_are_exact_through_kills(tmp_path: Path) -> None:
    draw = random.Random(7)
    tills = Tills(tmp_path)
    try:
        for name in TILLS:
            tills.start(name)
        tills.until("they trade", lambda: min(tills.booked()) > 60)
        for _ in range(KILLS):
            name = draw.choice(TILLS)
            tills.kill(name)
            time.sleep(draw.uniform(0, 0.3))
            tills.start(name)
            before = sum(tills.booked())
            time.sleep(draw.uniform(0.3, 1.0))
            tills.until("they go on", lambda was=before: sum(tills.booked()) > was)
        (tmp_path / "stop").touch()
        tills.until("they come to rest", tills.at_rest)
    finally:
        for process in tills.running.values():
            process.kill()
            process.wait()
    judge(tills)
    assert "Traceback" not in tills.errors()


def judge(tills: Tills) -> None:
    """Every table has every key once, the right sum, and an order that no cause contradicts."""
    rows = {
        name: tills.ask(name, "SELECT key, till, amount FROM books ORDER BY nr") for name in TILLS
    }
    sold = {row for name in TILLS for row in rows[name] if row[1] == name}
    assert len(sold) > 100
    again = 0
    for name in TILLS:
        assert len(rows[name]) == len(sold), "as many as were sold"
        assert set(rows[name]) == sold, "and just these"
        [(total, repeats)] = tills.ask(name, "SELECT amount, again FROM total")
        assert total == sum(amount for _, _, amount in sold), "each counted once"
        again += repeats
    assert again > 0, "no crash fell between booking and acknowledging: nothing was tried"
    events = [
        Event(kind=SEND if till == name else DELIVER, id=key, member=name)
        for name in TILLS
        for key, till, _ in rows[name]
    ]
    assert not History(events).early("delivery")


def test_what_comes_again_and_what_is_told_twice_is_booked_once(tmp_path: Path) -> None:
    books = Books(tmp_path / "books", "ann")
    first = Message("bob~00000000", 1, b'{"key": "bob-1", "amount": 5}')
    books.record_received(first)
    books.record_received(first)
    books.record_received(first._replace(number=2))
    books.record_own(7)
    assert books.read_outbox() == [(1, "ann-1", 7)]
    books.remove_sent(1)
    assert books.read_outbox() == []
    with closing(sqlite3.connect(tmp_path / "books")) as db:
        assert db.execute("SELECT key, till FROM books").fetchall() == [
            ("bob-1", "bob"),
            ("ann-1", "ann"),
        ]
        assert db.execute("SELECT amount, again FROM total").fetchall() == [(12, 2)]
