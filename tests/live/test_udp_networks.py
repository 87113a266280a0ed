"""Peers over UDP in network namespaces, whose links lose, delay, repeat and part."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from antecede.live.keys import make_authority, make_member
from tests.live.networks import Link, Network
from tests.live.networks.needs import needs_namespaces

pytestmark = [needs_namespaces, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
PORT, MESSAGES, NAMES = 7000, 100, "abc"
PATIENCE_S = 90.0
MEMBER = f"""
import asyncio, sys
from antecede.live import Message, Peer, Tls

async def main(folder, name, address, join):
    options = {{"recovering": True, "heartbeat_s": 0.1, "retry_s": 0.15}}
    tls = Tls(f"{{folder}}/{{name}}.pem", f"{{folder}}/ca.pem")
    async with Peer(name, transport="udp", order="matrix", options=options, room="lossy", tls=tls,
                    listen=f"{{address}}:{PORT}") as peer:
        if join == "-":
            await peer.found()
        else:
            await peer.join(f"{{join}}:{PORT}", timeout_s=30)
        while len(peer.members) < {len(NAMES)}:
            await asyncio.sleep(0.02)
        print("there", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        async def talk():
            for k in range({MESSAGES}):
                await peer.send(b"%s%d" % (name.encode(), k))
                await asyncio.sleep(0.01)
        async def listen():
            found = []
            async for message in peer:
                found.append(message.payload.decode())
                if len(found) == {MESSAGES * (len(NAMES) - 1)}:
                    return found
        _, found = await asyncio.gather(talk(), listen())
        print(" ".join(found), flush=True)
        await asyncio.to_thread(sys.stdin.readline)

asyncio.run(main(*sys.argv[1:]))
"""


def test_matrix_recovers_what_a_network_loses(tmp_path: Path) -> None:
    make_authority(tmp_path)
    for name in NAMES:
        make_member(tmp_path, name)
    with Network([*NAMES], seed=7) as network:
        network.set_all(Link(delay_ms=5, jitter_ms=5, loss=0.1, duplicate=0.02, reorder=0.05))
        members: dict[str, subprocess.Popen[str]] = {}
        late = threading.Timer(PATIENCE_S, lambda: end(members))
        late.start()
        try:
            for name in NAMES:
                join = "-" if name == "a" else network["a"].address
                argv = [sys.executable, "-c", MEMBER, str(tmp_path), name]
                members[name] = network[name].popen(
                    [*argv, network[name].address, join],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    cwd=ROOT,
                )
            for one in members.values():
                assert said(one) == "there"
            tell(members)
            for name, one in members.items():
                found = said(one).split()
                for other in NAMES:
                    own = [text for text in found if text[0] == other]
                    wanted = [f"{other}{k}" for k in range(MESSAGES)]
                    assert own == (wanted if other != name else [])
            tell(members)
            assert all(one.wait(20) == 0 for one in members.values())
            counts = network.stats()["a", "b"]
            assert counts.lost > 10
        finally:
            late.cancel()
            for one in members.values():
                one.kill()
                one.communicate()


def said(member: subprocess.Popen[str]) -> str:
    assert member.stdout is not None
    return member.stdout.readline().strip()


def end(members: dict[str, subprocess.Popen[str]]) -> None:
    for one in members.values():
        one.kill()


def tell(members: dict[str, subprocess.Popen[str]]) -> None:
    for one in members.values():
        assert one.stdin is not None
        one.stdin.write("\n")
        one.stdin.flush()
