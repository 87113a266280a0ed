"""Live peers, raw TCP and other group messaging in one run: 4 processes, 100 bytes.

    python -m bench.live_comparison [--seconds S] [--burst N] [KIND ...]

Every process sends to all others at full speed. Counted are deliveries to the programs, and the
processor time of all processes and of the server. The kinds give different guarantees, so a ratio
shows the cost of a guarantee (docs/live/comparison.md). Missing software is skipped with a reason.
Servers are started by this run and listen on loopback only.

    raw, peer ...   as in bench.live_rate
    nats            core NATS: at most once, no storage
    jetstream       a stream in files, acknowledged to the sender, read in order by all
    zenoh           peer to peer, blocks on full links; zenoh-advanced: with recovery
    corosync        closed process groups (CPG): total order by one daemon on this machine
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import ctypes.util
import multiprocessing
import os
import queue
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from importlib.util import find_spec
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any, NamedTuple

from bench.live_rate import MEMBERS, SIZE, find_free_ports, measure_mesh

WARM_S, REST_S = 0.5, 1.0
DEADLINE_S = 20.0
SBIN = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))


class ProcessResult(NamedTuple):
    """Counts of one process: during the measurement, and in total."""

    deliveries: int
    seconds: float
    cpu: float
    sent: int
    got: int


class Server(NamedTuple):
    """Address and process of a server; None for peer-to-peer kinds."""

    address: str
    process: subprocess.Popen[bytes] | None = None

    def cpu(self) -> float:
        """Return the used processor seconds."""
        if self.process is None:
            return 0.0
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class MessagingKind(NamedTuple):
    explain_missing: Callable[[], str]
    """Returns why it cannot be measured here; empty if it can."""
    serve: Callable[[Path], AbstractContextManager[Server]]
    member: Callable[[int, str, Any, int, float], ProcessResult]


class DeliveryMeter:
    """Counts deliveries and sends of one process."""

    def __init__(self) -> None:
        self.deliveries = self.outgoing = 0

    def measure(
        self, seconds: float, sleep: Callable[[float], None]
    ) -> Callable[..., ProcessResult]:
        """Measure for some seconds; return a function that builds the result after the last
        arrival.
        """
        sleep(WARM_S)
        before, start, cpu = self.deliveries, time.perf_counter(), time.process_time()
        sleep(seconds)
        during = self.deliveries - before
        took, used = time.perf_counter() - start, time.process_time() - cpu
        return lambda: ProcessResult(during, took, used, self.outgoing, self.deliveries)

    def wait_until_idle(self) -> None:
        before = -1
        while before != self.deliveries:
            before = self.deliveries
            time.sleep(REST_S)


def _explain_missing(*, module: str = "", program: str = "") -> str:
    if module and find_spec(module) is None:
        return f"the module {module} is not installed"
    if program and shutil.which(program, path=SBIN) is None:
        return f"{program} is not installed"
    return ""


@contextlib.contextmanager
def _run_server(words: list[str], ready: Callable[[], bool], log: Path) -> Iterator[Any]:
    with log.open("wb") as out:
        process = subprocess.Popen(words, stdout=out, stderr=out)
    try:
        end = time.monotonic() + DEADLINE_S
        while not ready():
            if process.poll() is not None or time.monotonic() > end:
                raise OSError(f"cannot start {words[0]}: {log.read_text()[-500:]}")
            time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        process.wait(10)


# -- NATS ------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _run_nats_server(folder: Path) -> Iterator[Server]:
    import socket

    server = shutil.which("nats-server", path=SBIN)
    assert server is not None
    [port] = find_free_ports(1)

    def ready() -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        return False

    words = [server, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder)]
    with _run_server(words, ready, folder / "log") as process:
        yield Server(f"nats://127.0.0.1:{port}", process)


async def _run_nats(
    me: int, address: str, ready: Any, burst: int, seconds: float, js: bool
) -> ProcessResult:
    import nats
    from nats.js.api import StorageType, StreamConfig

    client = await nats.connect(address, no_echo=not js)
    stream = client.jetstream(publish_async_max_pending=max(1000, burst))
    meter, mine = DeliveryMeter(), f"m.{me}"
    if js and me == 0:
        await stream.add_stream(StreamConfig(name="m", subjects=["m.*"], storage=StorageType.FILE))
    await asyncio.to_thread(ready.wait)

    async def took(message: Any) -> None:
        meter.deliveries += message.subject != mine

    if js:
        await stream.subscribe("m.*", cb=took, ordered_consumer=True)
    else:
        await client.subscribe("m.*", cb=took)
    await client.flush()
    await asyncio.to_thread(ready.wait)

    stop = False

    async def send() -> None:
        payload = b"x" * SIZE
        while not stop:
            for _ in range(burst):
                if js:
                    await stream.publish_async(mine, payload, wait_stall=30)
                else:
                    await client.publish(mine, payload)
                meter.outgoing += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(send())
    result = await asyncio.to_thread(meter.measure, seconds, time.sleep)
    stop = True
    await asyncio.wait_for(task, 60)
    if js:
        await asyncio.wait_for(stream.publish_async_completed(), 60)
    await client.flush()
    await asyncio.to_thread(meter.wait_until_idle)
    await asyncio.to_thread(ready.wait)
    await client.close()
    return result()


def _run_core_nats(me: int, address: str, ready: Any, burst: int, seconds: float) -> ProcessResult:
    return asyncio.run(_run_nats(me, address, ready, burst, seconds, js=False))


def _run_jetstream(me: int, address: str, ready: Any, burst: int, seconds: float) -> ProcessResult:
    return asyncio.run(_run_nats(me, address, ready, burst, seconds, js=True))


# -- Zenoh -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def _serve_ports(folder: Path) -> Iterator[Server]:
    yield Server(",".join(f"tcp/127.0.0.1:{port}" for port in find_free_ports(MEMBERS)))


def _run_zenoh(
    me: int, address: str, ready: Any, burst: int, seconds: float, *, advanced: bool = False
) -> ProcessResult:
    import json

    import zenoh

    meter, endpoints = DeliveryMeter(), address.split(",")
    config = zenoh.Config()
    for key, value in {
        "mode": "peer",
        "listen/endpoints": [endpoints[me]],
        "connect/endpoints": endpoints[:me],
        "scouting/multicast/enabled": False,
        "scouting/gossip/enabled": False,
        "timestamping/enabled": True,
    }.items():
        config.insert_json5(key, json.dumps(value))

    def took(sample: Any) -> None:
        meter.deliveries += 1

    blocking = {"congestion_control": zenoh.CongestionControl.BLOCK}
    with zenoh.open(config) as session:
        ready.wait()
        others = [f"m/{k}" for k in range(MEMBERS) if k != me]
        if advanced:
            import zenoh.ext as ext

            more = {"cache": ext.CacheConfig(1000), "publisher_detection": True}
            detect = ext.MissDetectionConfig(heartbeat=0.1)
            sender = ext.declare_advanced_publisher(
                *(session, f"m/{me}"), **more, sample_miss_detection=detect, **blocking
            )
            recover = ext.RecoveryConfig(heartbeat=True)
            kept = [
                ext.declare_advanced_subscriber(session, one, took, recovery=recover)
                for one in others
            ]
        else:
            sender = session.declare_publisher(f"m/{me}", **blocking)
            kept = [session.declare_subscriber(one, took) for one in others]
        time.sleep(1)  # declarations travel
        ready.wait()
        result = _send_in_thread(meter, lambda: sender.put(b"x" * SIZE), burst, seconds)
        meter.wait_until_idle()
        ready.wait()
        for one in kept:
            one.undeclare()
    return result()


def _run_zenoh_advanced(
    me: int, address: str, ready: Any, burst: int, seconds: float
) -> ProcessResult:
    return _run_zenoh(me, address, ready, burst, seconds, advanced=True)


def _send_in_thread(
    meter: DeliveryMeter, put: Callable[[], Any], burst: int, seconds: float
) -> Callable[..., ProcessResult]:
    stop = threading.Event()

    def send() -> None:
        while not stop.is_set():
            for _ in range(burst):
                put()
                meter.outgoing += 1

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    result = meter.measure(seconds, time.sleep)
    stop.set()
    thread.join(30)
    return result


# -- Corosync --------------------------------------------------------------------------------------

_COROSYNC = """\
totem {{
    version: 2
    cluster_name: bench
    transport: udpu
}}
nodelist {{
    node {{
        ring0_addr: 127.0.0.1
        nodeid: 1
        name: here
    }}
}}
logging {{
    to_stderr: yes
    to_syslog: no
}}
system {{
    state_dir: {state}
    sched_rr: no
    allow_knet_handle_fallback: yes
}}
"""
_TRY_AGAIN = 6


def _explain_no_corosync() -> str:
    if os.geteuid():
        return "corosync runs as root"
    if ctypes.util.find_library("cpg") is None and not os.environ.get("LIBCPG"):
        return "libcpg is not installed"
    return _explain_missing(program="corosync")


@contextlib.contextmanager
def _run_corosync(folder: Path) -> Iterator[Server]:
    program = shutil.which("corosync", path=SBIN)
    assert program is not None
    config = folder / "corosync.conf"
    config.write_text(_COROSYNC.format(state=folder))

    def ready() -> bool:
        with contextlib.suppress(OSError):
            handle = ctypes.c_uint64()
            if _cpg().cpg_initialize(ctypes.byref(handle), ctypes.byref(_Callbacks())) == 1:
                _cpg().cpg_finalize(handle)
                return True
        return False

    with _run_server([program, "-f", "-c", str(config)], ready, folder / "log") as process:
        yield Server("", process)


def _cpg() -> ctypes.CDLL:
    return ctypes.CDLL(os.environ.get("LIBCPG") or ctypes.util.find_library("cpg"))


_Delivered = ctypes.CFUNCTYPE(
    *(None, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32),
    *(ctypes.c_void_p, ctypes.c_size_t),
)


class _Callbacks(ctypes.Structure):
    _fields_ = [("deliver", _Delivered), ("changed", ctypes.c_void_p)]


class _Name(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint32), ("value", ctypes.c_char * 128)]


class _Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_char_p), ("length", ctypes.c_size_t)]


def _run_corosync_member(
    me: int, address: str, ready: Any, burst: int, seconds: float
) -> ProcessResult:
    library, handle, meter, mine = _cpg(), ctypes.c_uint64(), DeliveryMeter(), os.getpid()

    def took(_: Any, __: Any, node: int, pid: int, data: Any, length: int) -> None:
        meter.deliveries += pid != mine

    callbacks = _Callbacks(_Delivered(took), None)
    assert library.cpg_initialize(ctypes.byref(handle), ctypes.byref(callbacks)) == 1
    name = _Name(5, b"bench")
    assert library.cpg_join(handle, ctypes.byref(name)) == 1
    end = threading.Event()

    def receive() -> None:
        while not end.is_set():
            if library.cpg_dispatch(handle, 2) not in (1, _TRY_AGAIN):  # 2: all pending
                return
            time.sleep(0.0005)

    taking = threading.Thread(target=receive, daemon=True)
    taking.start()
    vector = _Vector(b"x" * SIZE, SIZE)

    def put() -> None:
        while library.cpg_mcast_joined(handle, 2, ctypes.byref(vector), 1) == _TRY_AGAIN:
            time.sleep(0.0005)

    ready.wait()
    time.sleep(1)
    ready.wait()
    result = _send_in_thread(meter, put, burst, seconds)
    meter.wait_until_idle()
    ready.wait()
    end.set()
    taking.join()
    library.cpg_finalize(handle)
    return result()


# -- all kinds -------------------------------------------------------------------------------------

KINDS = {
    "nats": MessagingKind(
        lambda: _explain_missing(module="nats", program="nats-server"),
        _run_nats_server,
        _run_core_nats,
    ),
    "jetstream": MessagingKind(
        lambda: _explain_missing(module="nats", program="nats-server"),
        _run_nats_server,
        _run_jetstream,
    ),
    "zenoh": MessagingKind(lambda: _explain_missing(module="zenoh"), _serve_ports, _run_zenoh),
    "zenoh-advanced": MessagingKind(
        lambda: _explain_missing(module="zenoh"), _serve_ports, _run_zenoh_advanced
    ),
    "corosync": MessagingKind(_explain_no_corosync, _run_corosync, _run_corosync_member),
}
OURS = ("raw", "peer", "peer tls", "peer tls store")


def _run_process(name: str, out: Queue[ProcessResult], *arguments: Any) -> None:
    out.put(KINDS[name].member(*arguments))


class KindRate(NamedTuple):
    per_s: float
    cpu_us: float
    """Processor time per delivery, server included."""
    lost: int
    """Deliveries still missing when no more messages arrive."""


def measure_kind(name: str, burst: int, seconds: float) -> KindRate:
    """Measure one of the other kinds. Raises OSError if its server does not start."""
    kind = KINDS[name]
    context = multiprocessing.get_context("spawn")
    out: Queue[ProcessResult] = context.Queue()
    ready = context.Barrier(MEMBERS)
    with tempfile.TemporaryDirectory() as folder, kind.serve(Path(folder)) as server:
        before = server.cpu()
        processes = [
            context.Process(
                target=_run_process, args=(name, out, me, server.address, ready, burst, seconds)
            )
            for me in range(MEMBERS)
        ]
        for one in processes:
            one.start()
        try:
            found = [out.get(timeout=90) for _ in processes]
            served = server.cpu() - before
        except queue.Empty as error:
            raise OSError("its processes did not finish") from error
        finally:
            for one in processes:
                one.join(5)
                one.kill()
    deliveries = sum(one.deliveries for one in found)
    # The server runs longer than the measurement, so its share is computed by deliveries.
    got = sum(one.got for one in found)
    cpu = sum(one.cpu for one in found) / max(1, deliveries) + served / max(1, got)
    owed = (MEMBERS - 1) * sum(one.sent for one in found)
    return KindRate(sum(one.deliveries / one.seconds for one in found), 1e6 * cpu, owed - got)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kinds", nargs="*", default=[*OURS, *KINDS])
    parser.add_argument("--burst", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=3.0)
    args = parser.parse_args()
    base: KindRate | None = None
    for name in args.kinds:
        if name not in KINDS:
            rate = KindRate(*measure_mesh(name, args.burst, args.seconds), 0)
        elif why := KINDS[name].explain_missing():
            print(f"{name:16} skipped: {why}", flush=True)
            continue
        else:
            try:
                rate = measure_kind(name, args.burst, args.seconds)
            except OSError as error:
                print(f"{name:16} skipped: {error}", flush=True)
                continue
        base = base or rate
        print(
            f"{name:16} {rate.per_s / 1e3:8.0f} k/s {rate.per_s / base.per_s:6.2f}   "
            f"{rate.cpu_us:7.2f} us a delivery {rate.cpu_us / base.cpu_us:6.2f}"
            + (f"   {rate.lost:,} not delivered" if name in KINDS else ""),
            flush=True,
        )


if __name__ == "__main__":
    main()
