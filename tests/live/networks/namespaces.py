"""Network namespaces: one for each host, with a TUN device whose other end is a descriptor here.

A namespace is called ant-PID-NETWORK-NAME after the process that made it. So workers that run at
once do not collide, nor do two networks of one process that have a name in common; and whoever
comes later can tell by the process number what a killed run left behind.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

FOLDER = Path("/var/run/netns")
"""Where `ip netns` keeps namespaces by name."""
TUN = Path("/dev/net/tun")
DEVICE = "tun0"
MTU = 1500
QUEUE = 10_000
"""Packets that wait in a device for the relay; with the usual 500 a burst would lose some."""

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TUN_NO_PI = 0x0001 | 0x1000
COMMAND_TIMEOUT_S = 20
END_TIMEOUT_S = 10


def ip(*arguments: str, lines: Sequence[str] = ()) -> str:
    """Run iproute2's `ip`; return what it prints, raise `OSError` with what it complains of."""
    done = subprocess.run(
        ["ip", *arguments],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_S,
    )
    if done.returncode:
        raise OSError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def namespaces() -> list[str]:
    """Return the names of all namespaces of this harness, whoever made them."""
    if not FOLDER.is_dir():
        return []
    return sorted(path.name for path in FOLDER.iterdir() if owner(path.name) is not None)


def owner(namespace: str) -> int | None:
    """Return the process that made a namespace, None if it is not one of this harness."""
    match = re.fullmatch(r"ant-(\d+)-\d+-.+", namespace)
    return int(match[1]) if match else None


def is_running(pid: int) -> bool:
    """Return whether there is a process of this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@cache
def sweep(pid: int) -> None:
    """Remove what dead processes left, once in a process: `pid` is its number.

    It has made nothing yet, so a namespace of this number is of an earlier process that had it.
    """
    for namespace in namespaces():
        maker = owner(namespace)
        if maker is not None and (maker == pid or not is_running(maker)):
            remove(namespace)


def remove(namespace: str) -> None:
    """End what still runs in a namespace, and delete it; another worker may do so meanwhile."""
    with contextlib.suppress(OSError):
        end_processes(namespace)
    try:
        ip("netns", "delete", namespace)
    except OSError:
        if namespace in namespaces():
            raise


def end_processes(namespace: str) -> None:
    """Kill the processes of a namespace: children of children too, which nobody else knows of."""
    until = time.monotonic() + END_TIMEOUT_S
    while pids := [int(pid) for pid in ip("netns", "pids", namespace).split()]:
        if os.getpid() in pids:  # a test has moved its main thread
            raise RuntimeError(f"this process itself is in {namespace}")
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > until:
            raise RuntimeError(f"{pids} in {namespace} do not end")
        time.sleep(0.005)


def enter(namespace: str) -> None:
    """Move the calling thread into a namespace: what it opens and starts from now on is there."""
    libc = ctypes.CDLL(None, use_errno=True)  # os.setns needs Python 3.12
    fd = os.open(FOLDER / namespace, os.O_RDONLY)
    try:
        if libc.setns(fd, CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), namespace)
    finally:
        os.close(fd)


def open_tun() -> int:
    """Make the TUN device of the calling thread's namespace; it lasts as long as the descriptor."""
    import fcntl  # not on every platform, and this file is imported on all

    fd = os.open(TUN, os.O_RDWR | os.O_NONBLOCK)
    try:
        request = struct.pack("16sH22x", DEVICE.encode(), IFF_TUN_NO_PI)
        fcntl.ioctl(fd, TUNSETIFF, request)
    except BaseException:
        os.close(fd)
        raise
    return fd


def silence_ipv6() -> None:
    """Let devices of the calling thread's namespace send nothing of IPv6; `lo` has been there."""
    setting = Path("/proc/sys/net/ipv6/conf/default/disable_ipv6")
    if setting.exists():
        setting.write_text("1")


class Host:
    """A namespace with one address; what is started or opened by it is inside."""

    def __init__(self, name: str, address: str, network: int) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name):
            raise ValueError(f"not a name for a namespace: {name!r}")
        self.name, self.address = name, address
        self.pid = os.getpid()
        self.namespace = f"ant-{self.pid}-{network}-{name}"
        self.processes: list[subprocess.Popen[Any]] = []

    def make(self) -> int:
        """Make the namespace and its device; return the descriptor, which the caller closes."""
        sweep(self.pid)
        ip("netns", "add", self.namespace)
        try:
            self.inside(silence_ipv6)
            fd = self.inside(open_tun)
        except BaseException:
            self.remove()
            raise
        try:
            self.configure()
        except BaseException:
            os.close(fd)
            self.remove()
            raise
        return fd

    def configure(self) -> None:
        """Give the devices their address and size, and set them up."""
        lines = [
            "link set dev lo up",
            f"link set dev {DEVICE} mtu {MTU} txqueuelen {QUEUE} up",
            f"address add {self.address}/24 dev {DEVICE}",
        ]
        ip("-n", self.namespace, "-batch", "-", lines=lines)

    def inside(self, call: Callable[[], T]) -> T:
        """Return what a call returns that runs in this namespace, in a thread of its own."""

        def entered() -> T:
            enter(self.namespace)
            return call()

        with ThreadPoolExecutor(1) as pool:
            return pool.submit(entered).result()

    def popen(self, argv: Sequence[str], **kwargs: Any) -> subprocess.Popen[Any]:
        """Start a process in this namespace; the network's end kills it and closes its pipes."""
        process: subprocess.Popen[Any] = self.inside(lambda: subprocess.Popen(argv, **kwargs))
        self.processes.append(process)
        return process

    def socket(
        self, kind: socket.SocketKind = socket.SOCK_STREAM, *, timeout_s: float = 10
    ) -> socket.socket:
        """Return an IPv4 socket of this namespace, which any thread of this process can use."""
        made = self.inside(lambda: socket.socket(socket.AF_INET, kind))
        made.settimeout(timeout_s)
        return made

    def overruns(self) -> int:
        """Return how many packets its device dropped, as the relay was too slow for them."""
        table = self.inside(lambda: Path("/proc/thread-self/net/dev").read_text())
        row = next(line for line in table.splitlines() if line.strip().startswith(f"{DEVICE}:"))
        return int(row.split(":")[1].split()[11])  # eight columns received, then sent: drops

    def end(self) -> None:
        """Kill what was started here."""
        for process in self.processes:
            process.kill()
            with contextlib.suppress(BrokenPipeError), process:  # waits, and closes its pipes
                pass
        self.processes.clear()

    def remove(self) -> None:
        """End everything here, and delete the namespace."""
        self.end()
        remove(self.namespace)
