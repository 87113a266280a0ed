"""A group of processes over networks that delay, lose, reorder and part; the oracle judges.

Each member has a network namespace of its own; packets go through a relay of this process's child.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

from tests.live.networks import Link, Network
from tests.live.networks.needs import needs_namespaces
from tests.live.test_processes import NAMES, Members, judge

pytestmark = [needs_namespaces, pytest.mark.slow]

PORT = 7001
SILENCE_S = 1.5
"""As `tests.live.member` has it."""


class Networked(Members):
    """Each member in its own namespace."""

    def __init__(self, folder: Path, network: Network, order: str = "causal") -> None:
        super().__init__(folder, order)
        self.network = network
        self.addresses = {name: f"{network[name].address}:{PORT}" for name in NAMES}

    def launch(self, name: str, command: list[str], errors: BinaryIO) -> subprocess.Popen[bytes]:
        return self.network[name].popen(command, stderr=errors)

    def connected(self, name: str) -> set[str]:
        """Return with whom a member says to be connected now."""
        lines = [fields for fields in self.log(name) if fields[0] == "C"]
        return set(lines[-1][2].split(",")) - {"-"} if lines else set()

    def until_connected(self, wanted: dict[str, set[str]], seconds: float = 15.0) -> None:
        end = time.monotonic() + seconds
        while (found := {name: self.connected(name) for name in wanted}) != wanted:
            assert time.monotonic() < end, found
            time.sleep(0.05)


@contextmanager
def group(folder: Path, seed: int, order: str = "causal") -> Iterator[Networked]:
    with Network(NAMES, seed=seed) as network:
        members = Networked(folder, network, order)
        for name in NAMES:
            members.start(name)
        members.go()
        time.sleep(0.5)
        yield members


def end(members: Networked) -> None:
    """Let them come to rest, and judge."""
    everybody = {name: set(NAMES) - {name} for name in NAMES}
    members.network.set_all(Link())
    members.until_connected(everybody, 30)
    members.stop()
    members.rest()
    sent, delivered = judge(members)
    assert sent > 50, members.errors()
    assert delivered == (len(NAMES) - 1) * sent
    assert "Traceback" not in members.errors()


LINKS = {
    "delay": Link(delay_ms=80),
    "jitter": Link(delay_ms=5, jitter_ms=80),
    "loss": Link(delay_ms=2, loss=0.05),
    "reordering": Link(delay_ms=2, jitter_ms=10, reorder=0.3, duplicate=0.1),
    "all": Link(delay_ms=20, jitter_ms=30, loss=0.03, reorder=0.2, duplicate=0.05),
}


@pytest.mark.parametrize("link", LINKS)
def test_over_links_that_are_bad_nothing_is_lost_or_early(tmp_path: Path, link: str) -> None:
    with group(tmp_path, 1) as members:
        members.network.set_all(LINKS[link])
        time.sleep(3)
        counts = members.network.stats()[NAMES[0], NAMES[1]]
        assert counts.sent > 20
        assert not LINKS[link].loss or counts.lost
        assert not LINKS[link].reorder or counts.reordered
        end(members)


def test_both_parts_of_a_partition_go_on_and_merge(tmp_path: Path) -> None:
    ann, bob, cat, dan = NAMES
    with group(tmp_path, 2) as members:
        members.network.cut({ann, bob}, {cat, dan})
        members.until_connected({ann: {bob}, bob: {ann}, cat: {dan}, dan: {cat}})
        before = members.counts()
        time.sleep(1.5)
        assert all(now > then for now, then in zip(members.counts(), before, strict=True))
        members.network.heal()
        end(members)


@pytest.mark.parametrize("deaf", [False, True])
def test_who_is_heard_in_one_direction_alone_counts_as_unheard(tmp_path: Path, deaf: bool) -> None:
    ann, *others = NAMES
    with group(tmp_path, 3) as members:
        if deaf:
            members.network.cut(others, {ann}, one_way=True)
        else:
            members.network.cut({ann}, others, one_way=True)
        rest = {name: set(others) - {name} for name in others}
        members.until_connected({ann: set(), **rest})
        before = members.counts()
        time.sleep(1.5)
        now = members.counts()
        assert all(now[k] > before[k] for k in range(1, len(NAMES)))
        members.network.heal()
        end(members)


def test_flapping_links_and_bad_ones_at_once(tmp_path: Path) -> None:
    with group(tmp_path, 4) as members:
        members.network.set_all(LINKS["all"])
        for k in range(4):
            one = NAMES[k % len(NAMES)]
            members.network.cut({one}, set(NAMES) - {one}, one_way=k % 2 == 1)
            time.sleep(SILENCE_S * (0.5 if k < 2 else 1.5))
            members.network.heal()
            time.sleep(0.5)
        end(members)
