"""Networks of namespaces: what the relay does to packets, and that nothing of it stays behind."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.live.networks import Counts, Link, Network, namespaces, needs
from tests.live.networks.namespaces import Host
from tests.live.networks.needs import needs_namespaces

pytestmark = needs_namespaces

ROOT = Path(__file__).parents[2]
PORT = 4000
PATIENCE_S = 20.0
ECHO = f"""
import socket, sys
with socket.create_server((sys.argv[1], {PORT})) as server:
    server.settimeout({PATIENCE_S})
    print("ready", flush=True)
    peer, _ = server.accept()
    with peer:
        peer.settimeout({PATIENCE_S})
        while data := peer.recv(65536):
            peer.sendall(data)
"""
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


@contextmanager
def echo(client: Host, server: Host) -> Iterator[socket.socket]:
    """Connect a host to another that sends back what it gets."""
    process = server.popen([sys.executable, "-c", ECHO, server.address], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    with client.socket(timeout_s=PATIENCE_S) as connection:
        connection.connect((server.address, PORT))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield connection
    assert process.wait(PATIENCE_S) == 0


def exactly(connection: socket.socket, size: int) -> bytes:
    """Read so many bytes."""
    data = bytearray()
    while len(data) < size:
        more = connection.recv(size - len(data))
        assert more, "the connection ended"
        data += more
    return bytes(data)


def rounds(connection: socket.socket, count: int) -> list[float]:
    """Return how many milliseconds each of so many echoes took."""
    took = []
    for number in range(count):
        begin = time.perf_counter()
        connection.sendall(number.to_bytes(4, "big"))
        assert exactly(connection, 4) == number.to_bytes(4, "big")
        took.append((time.perf_counter() - begin) * 1000)
    return took


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


# -- delay ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_echo_takes_twice_the_delay() -> None:
    with Network(["a", "b"], seed=1) as network, echo(network["a"], network["b"]) as connection:
        before = rounds(connection, 5)
        network.set("a", "b", Link(delay_ms=40))
        slow = rounds(connection, 5)
        network.set("a", "b", Link(delay_ms=40), one_way=True)
        network.set("b", "a", Link(), one_way=True)
        half = rounds(connection, 5)
    assert min(before) < 40  # one of five may well meet a busy machine
    assert min(slow) >= 80
    assert 40 <= min(half) < 80


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


def test_tcp_brings_every_byte_in_order_over_a_bad_link() -> None:
    data = hashlib.shake_128(b"bytes").digest(300_000)
    link = Link(delay_ms=2, jitter_ms=4, loss=0.05, duplicate=0.02, reorder=0.1)
    with Network(["a", "b"], seed=6) as network, echo(network["a"], network["b"]) as connection:
        network.set("a", "b", link)
        writer = threading.Thread(target=connection.sendall, args=(data,))
        writer.start()
        back = exactly(connection, len(data))
        writer.join(PATIENCE_S)
        counts = network.stats()["a", "b"]
        network.set("a", "b", Link())
    assert back == data
    assert counts.lost
    assert counts.reordered


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


@pytest.mark.slow
def test_a_connection_outlives_a_partition() -> None:
    with Network(["a", "b"]) as network, echo(network["a"], network["b"]) as connection:
        rounds(connection, 1)
        network.cut({"a"}, {"b"})
        connection.sendall(b"late")
        connection.settimeout(0.5)
        with pytest.raises(TimeoutError):
            connection.recv(4)
        network.heal()
        connection.settimeout(PATIENCE_S)
        assert exactly(connection, 4) == b"late"


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


def test_a_process_of_a_host_sees_its_devices_alone() -> None:
    with Network(["a", "b"]) as network:
        listing = network["b"].popen(["ip", "-o", "-4", "address"], stdout=-1, text=True)
        shown, _ = listing.communicate(timeout=PATIENCE_S)
        assert [line.split()[3] for line in shown.splitlines()] == [
            "127.0.0.1/8",
            f"{network['b'].address}/24",
        ]


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
