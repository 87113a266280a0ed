"""Networks of namespaces: what the relay does to packets, and that nothing of it stays behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.live.networks import Counts, Link, Network, namespaces, needs
from tests.live.networks.namespaces import Host
from tests.live.networks.needs import needs_namespaces

pytestmark = needs_namespaces

ROOT = Path(__file__).parents[2]
PORT = 4000
PATIENCE_S = 20.0
KILLED = """
import subprocess, sys, time
from tests.live.networks import Network
with Network(["a", "b"]) as network:
    child = network["a"].popen(["sleep", "600"])
    print(network["a"].namespace, network["b"].namespace, child.pid, flush=True)
    time.sleep(600)
"""


def own() -> list[str]:
    """Return this process's namespaces: other workers have theirs."""
    return [name for name in namespaces.namespaces() if namespaces.owner(name) == os.getpid()]


def is_running(pid: int) -> bool:
    """Return whether a process does more than wait for somebody to ask for its end."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Post:
    """A UDP socket on each host; what is sent is known to have come, or to be lost, at once."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.sockets = {
            name: host.socket(socket.SOCK_DGRAM) for name, host in network.hosts.items()
        }
        for name, one in self.sockets.items():
            one.bind((network[name].address, PORT))

    def __enter__(self) -> Post:
        return self

    def __exit__(self, *exception: object) -> None:
        for one in self.sockets.values():
            one.close()

    def send(self, source: str, target: str, values: range) -> list[int]:
        """Send numbers, not more at once than a socket can hold; return those that come."""
        got: list[int] = []
        for start in range(0, len(values), 100):
            part = values[start : start + 100]
            sent = self.network.stats()[source, target].sent + len(part)
            for value in part:
                address = (self.network[target].address, PORT)
                self.sockets[source].sendto(value.to_bytes(4, "big"), address)
            self.wait(source, target, sent)
            got += self.read(target)
        return got

    def wait(self, source: str, target: str, sent: int) -> None:
        """Wait until so many packets have been sent, and none is under way."""
        until = time.monotonic() + PATIENCE_S
        while (counts := self.network.stats()[source, target]).sent < sent or counts.waiting:
            assert time.monotonic() < until, counts
            time.sleep(0.002)

    def read(self, name: str) -> list[int]:
        """Return what a host has received."""
        got = []
        self.sockets[name].setblocking(False)
        while True:
            try:
                got.append(int.from_bytes(self.sockets[name].recv(64), "big"))
            except BlockingIOError:
                return got

    def passes(self, source: str, target: str) -> bool:
        """Return whether a datagram arrives."""
        return self.send(source, target, range(7, 8)) == [7]


def test_jitter_alone_keeps_the_order_and_is_on_top_of_the_delay() -> None:
    with Network(["a", "b"], seed=2) as network, Post(network) as post:
        network.set("a", "b", Link(delay_ms=5, jitter_ms=30))
        begin = time.monotonic()
        assert post.send("a", "b", range(100)) == list(range(100))
        assert time.monotonic() - begin >= 0.02  # the latest of a hundred draws below 35 ms


def test_what_is_sent_after_a_delay_has_ended_does_not_overtake() -> None:
    with Network(["a", "b"]) as network, Post(network) as post:
        network.set("a", "b", Link(delay_ms=200))
        sockets, address = post.sockets, (network["b"].address, PORT)
        sockets["a"].sendto((1).to_bytes(4, "big"), address)
        while not network.stats()["a", "b"].waiting:
            time.sleep(0.002)
        network.set("a", "b", Link())
        assert post.send("a", "b", range(2, 4)) == [1, 2, 3]


# -- loss, copies and order -------------------------------------------------------------------


def test_loss_is_of_about_the_share_that_was_asked_for() -> None:
    with Network(["a", "b"], seed=3) as network, Post(network) as post:
        network.set("a", "b", Link(loss=0.2), one_way=True)
        got = post.send("a", "b", range(2000))
        back = post.send("b", "a", range(200))
        stats = network.stats()
    assert 1600 - 6 * 18 < len(got) < 1600 + 6 * 18  # six standard deviations
    assert got == sorted(set(got))
    assert back == list(range(200))
    assert stats["a", "b"] == Counts(sent=2000, delivered=len(got), lost=2000 - len(got))
    assert stats["b", "a"] == Counts(sent=200, delivered=200)
    assert set(stats.overruns.values()) == {0}
    assert stats.strays == 0


def test_a_seed_decides_which_packets_are_lost() -> None:
    def survivors(seed: int) -> list[int]:
        with Network(["a", "b"], seed=seed) as network, Post(network) as post:
            network.set_all(Link(loss=0.5))
            return post.send("a", "b", range(100))

    first = survivors(4)
    assert first == survivors(4) != survivors(5)


def test_copies_and_packets_out_of_order_are_counted() -> None:
    with Network(["a", "b"], seed=5) as network, Post(network) as post:
        network.set("a", "b", Link(duplicate=0.3, reorder=0.3, jitter_ms=1))
        got = post.send("a", "b", range(1000))
        counts = network.stats()["a", "b"]
    assert set(got) == set(range(1000))
    assert got != sorted(got)
    assert 200 < counts.duplicated < 400
    assert 200 < counts.reordered < 600
    assert counts.delivered == len(got) == 1000 + counts.duplicated


# -- partitions -------------------------------------------------------------------------------


def test_a_cut_parts_both_ways_until_it_heals() -> None:
    with Network(["a", "b", "c"]) as network, Post(network) as post:
        network.set("a", "b", Link(delay_ms=1))
        network.cut({"a"}, {"b", "c"})
        assert not any(post.passes(*way) for way in [("a", "b"), ("b", "a"), ("c", "a")])
        assert post.passes("b", "c")
        assert post.passes("c", "b")
        network.heal()
        assert network.links["a", "b"] == Link(delay_ms=1)
        assert all(post.passes(*way) for way in network.links)
        assert network.stats()["a", "b"] == Counts(sent=2, delivered=1, cut=1)


def test_a_cut_one_way_lets_the_other_pass() -> None:
    with Network(["a", "b"]) as network, Post(network) as post:
        network.cut({"a"}, {"b"}, one_way=True)
        assert not post.passes("a", "b")
        assert post.passes("b", "a")
        network.heal()
        assert post.passes("a", "b")


def test_a_cut_takes_what_is_under_way() -> None:
    with Network(["a", "b"]) as network, Post(network) as post:
        network.set("a", "b", Link(delay_ms=300))
        post.sockets["a"].sendto(b"1", (network["b"].address, PORT))
        while not network.stats()["a", "b"].waiting:
            time.sleep(0.002)
        network.cut({"a"}, {"b"})
        post.wait("a", "b", 1)
        network.heal()
        assert post.read("b") == []
        assert network.stats()["a", "b"].cut == 1


# -- namespaces -------------------------------------------------------------------------------


def test_two_networks_at_once_have_nothing_in_common() -> None:
    with Network(["a", "b"]) as one, Network(["a", "b"]) as two:
        assert len(own()) == 4
        with Post(one) as first, Post(two) as second:
            one.cut({"a"}, {"b"})
            assert not first.passes("a", "b")
            assert second.passes("a", "b")
            assert one["a"].address != two["a"].address
            with pytest.raises(OSError, match="unreachable"):  # there is no route out of a network
                first.sockets["a"].sendto(b"out", (two["a"].address, PORT))
    assert own() == []


def test_nothing_stays_behind_a_failure() -> None:
    def fail() -> None:
        with Network(["a", "b"]) as network:
            process = network["a"].popen(["sh", "-c", "sleep 600 & echo $!; wait"], stdout=-1)
            assert process.stdout is not None
            pids.extend([process.pid, int(process.stdout.readline())])
            assert len(own()) == 2
            raise ZeroDivisionError

    pids: list[int] = []
    with pytest.raises(ZeroDivisionError):
        fail()
    assert own() == []
    assert len(pids) == 2
    assert not any(is_running(pid) for pid in pids)


def test_nothing_stays_behind_a_network_that_can_not_be_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(host: Host) -> None:
        if host.name == "b":
            raise OSError("no")
        configure(host)

    configure = Host.configure
    monkeypatch.setattr(Host, "configure", refuse)
    descriptors = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="no"), Network(["a", "b", "c"]):
        pass
    assert own() == []
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_a_relay_that_has_ended_is_told_and_nothing_stays_behind() -> None:
    with Network(["a", "b"]) as network:
        network.control.process.kill()
        with pytest.raises(RuntimeError, match="the relay has ended"):
            network.stats()
        with pytest.raises(RuntimeError, match="the relay has ended"):
            network.heal()
    assert own() == []


def test_what_a_killed_process_left_is_removed() -> None:
    argv = [sys.executable, "-c", KILLED]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        *names, pid = process.stdout.readline().split()
        assert set(names) <= set(namespaces.namespaces())
        process.send_signal(signal.SIGKILL)
    namespaces.sweep.cache_clear()
    namespaces.sweep(os.getpid())
    assert not set(names) & set(namespaces.namespaces())
    assert not is_running(int(pid))


def test_what_a_living_process_has_is_left_alone() -> None:
    with Network(["a"]):
        made = own()
        argv = [sys.executable, "-c", "from tests.live.networks import *\nwith Network(['a']): 1"]
        subprocess.run(argv, cwd=ROOT, check=True, timeout=PATIENCE_S)
        assert own() == made


def test_what_lacks_is_the_reason_of_a_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    assert needs.lacking() is None
    ask = needs.lacking.__wrapped__
    monkeypatch.setattr(needs, "TUN", Path("/nowhere/tun"))
    assert ask() == "no /nowhere/tun here"
    monkeypatch.setenv("PATH", "/nowhere")
    assert "iproute2" in str(ask())
    monkeypatch.setattr(os, "geteuid", lambda: 1)
    assert "root" in str(ask())


def test_what_means_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="share"):
        Link(loss=5)
    with pytest.raises(ValueError, match="time"):
        Link(delay_ms=-1)
    with pytest.raises(ValueError, match="different"):
        Network(["a", "a"])
    with pytest.raises(ValueError, match="not a name"):
        Network(["a/b"])
    with Network(["a", "b"]) as network:
        with pytest.raises(KeyError):
            network.cut({"a"}, {"a", "b"})
        with pytest.raises(KeyError):
            network.set("a", "x", Link())
