"""The pages on live groups: what they show is what happens, and what they name is there."""

from __future__ import annotations

import asyncio
import configparser
import dataclasses
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from prometheus_client.parser import text_string_to_metric_families

from antecede.live import keys
from antecede.live.diary import EVENTS
from antecede.live.metrics import exposition
from antecede.live.peer import Peer
from antecede.live.settings import Settings
from antecede.live.status import MemberStatus
from antecede.live.tls import Tls
from tests.live.observation import observe
from tests.live.peer_control import check_certificates_at
from tests.live.test_processes import free_ports
from tests.live.test_status import held_up

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/live/running.md").read_text()
FIRST = (ROOT / "docs/live/index.md").read_text()
FILES = ROOT / "examples/live/running"
COMMON, *RECIPES = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", PAGE, re.DOTALL)
HEADINGS = [
    re.findall(r"^## (.*)$", PAGE[: PAGE.index(recipe)], re.MULTILINE)[-1] for recipe, _ in RECIPES
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    keys.make_authority(tmp_path / "keys")
    for name in ("alice", "bob", "carol"):
        keys.make_member(tmp_path / "keys", name)
    (tmp_path / "common.py").write_text(COMMON[0])
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(("recipe", "shown"), RECIPES, ids=HEADINGS)
def test_a_recipe_prints_what_the_page_shows(recipe: str, shown: str, folder: Path) -> None:
    assert shown
    (folder / "recipe.py").write_text(recipe)
    done = subprocess.run(
        [sys.executable, "recipe.py"], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.returncode) == (shown, 0), done.stderr
    assert "Traceback" not in done.stderr


def started(folder: Path, *words: str, **more: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-u", *words], cwd=folder, stdout=subprocess.PIPE, text=True, **more
    )


@pytest.mark.slow
def test_a_dozen_lines_work(folder: Path) -> None:
    [program] = re.findall(r"```python\n(.*?)```", FIRST, re.DOTALL)
    (folder / "talk.py").write_text(program)
    one, two = (f"127.0.0.1:{port}" for port in free_ports(2))
    running = [
        started(folder, "talk.py", "bob", one),
        started(folder, "talk.py", "alice", two, one),
    ]
    try:
        for process, line in zip(running, ("alice says lunch?", "bob says yes"), strict=True):
            assert process.stdout is not None
            assert process.stdout.readline() == f"{line}\n"
            assert f"`{line}`" in FIRST
    finally:
        end(running)


def end(running: list[subprocess.Popen[str]]) -> None:
    for process in running:
        process.kill()
        process.communicate()


def test_the_pages_agree_with_the_code() -> None:
    settings = Settings()
    assert f"`heartbeat_s`, {settings.heartbeat_ns / 1e9:g} s" in PAGE
    assert f"`failure_timeout_s` ({settings.failure_timeout_ns / 1e9:g} s" in PAGE
    assert f"`repair_delay_s`, {settings.repair_delay_ns / 1e9:g} s" in PAGE
    assert f"`max_memory_bytes` ({settings.max_memory_bytes >> 20} MiB)" in PAGE
    assert f"`max_disk_bytes` ({settings.max_disk_bytes >> 30} GiB)" in PAGE
    assert f"up to {settings.max_message_bytes >> 20} MiB (`max_message_bytes=`)" in FIRST
    assert settings.evict_after_ns is None
    said = re.search(r"^Events: (.*)\.$", PAGE, re.MULTILINE)
    assert said is not None
    assert set(re.findall(r"`(\w+)`", said[1])) == set(EVENTS)
    for order in re.findall(r'^\| `"(\w+)"`', FIRST, re.MULTILINE):
        assert Settings(order=order).group("a~00000000") is not None


async def test_newcomers_do_not_hear_an_expired_member_as_the_page_says(folder: Path) -> None:
    assert "joining members reject the batches of its owner" in PAGE
    keys.make_member(folder / "keys", "alice", days=1, force=True)

    def member(name: str) -> Peer:
        tls = Tls(folder / "keys" / f"{name}.pem", folder / "keys" / "ca.pem")
        return Peer(name, listen="127.0.0.1:0", tls=tls)

    async with member("alice") as alice, member("bob") as bob, member("carol") as carol:
        await bob.bootstrap()
        await alice.join(bob.address)
        for peer in (bob, carol):  # two days later; the links that stand go on
            check_certificates_at(peer, lambda: time.time() + 2 * 86400)
        await bob.send(b"to alice")
        async for message in alice:
            assert message.payload == b"to alice"
            break
        await carol.join(bob.address, timeout_s=10)
        assert "certificate is valid from" in carol.status().last_rejection
        await bob.send(b"to carol")
        async for message in carol:
            assert message.payload == b"to carol"
            break
        assert alice.status().sender_id not in observe(carol).connected


# -- monitoring ------------------------------------------------------------------------------------


def exported() -> dict[str, set[str]]:
    """Return the samples that a peer shows, with their labels."""
    status = dataclasses.replace(
        held_up().status("c"), certificate_expires_in_s=5.0, rejected={"certificate": 1}
    )
    assert isinstance(status.members[0], MemberStatus)
    return {
        sample.name: set(sample.labels)
        for family in text_string_to_metric_families(exposition(status).decode())
        for sample in family.samples
    }


def test_alerts_and_page_name_the_metrics_that_there_are() -> None:
    there = exported()
    rules = yaml.safe_load((FILES / "alerts.yml").read_text())["groups"][0]["rules"]
    name = re.compile(r"\bantecede_live_[a-z_]+")
    for rule in rules:
        named = set(name.findall(rule["expr"]))
        assert named <= set(there), rule["alert"]
        words = " ".join(rule["annotations"].values())
        labels = {label for one in named for label in there[one]} | {"instance"}
        assert set(re.findall(r"\$labels\.(\w+)", words)) <= labels, rule["alert"]
    assert set(name.findall(PAGE)) == set(there)
    tested = yaml.safe_load((FILES / "alerts_test.yml").read_text())["tests"][0]
    fired = [t["alertname"] for t in tested["alert_rule_test"] if "exp_alerts" in t]
    silent = [t["alertname"] for t in tested["alert_rule_test"] if "exp_alerts" not in t]
    assert sorted(fired) == sorted(silent) == sorted(rule["alert"] for rule in rules)
    assert len(rules) == 14, "as the page says"


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
@pytest.mark.parametrize(
    "words",
    [
        ("check", "config", "prometheus.yml"),
        ("check", "rules", "alerts.yml"),
        ("test", "rules", "alerts_test.yml"),
    ],
)
def test_promtool_takes_the_files_and_the_alerts_fire(words: tuple[str, ...]) -> None:
    done = subprocess.run(["promtool", *words], cwd=FILES, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


# -- the service -----------------------------------------------------------------------------------


def test_the_unit_is_one_and_starts_nothing_again_that_is_out(tmp_path: Path) -> None:
    unit = configparser.ConfigParser(strict=True)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(FILES / "antecede-peer.service")
    assert set(unit) == {"DEFAULT", "Unit", "Service", "Install"}
    from examples.live.service import OUT_OF_THE_GROUP

    assert unit["Service"]["RestartPreventExitStatus"] == str(OUT_OF_THE_GROUP)
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed: the unit was parsed, and not judged")
    copy = tmp_path / "antecede-peer.service"
    copy.write_text((FILES / "antecede-peer.service").read_text())
    done = subprocess.run([analyze, "verify", str(copy)], capture_output=True, text=True)
    assert "antecede-peer.service" not in done.stderr, done.stderr


@pytest.fixture
def services(folder: Path) -> Iterator[Any]:
    ports = dict(zip(("alice", "bob"), free_ports(2), strict=True))
    running: list[subprocess.Popen[str]] = []
    example = (FILES / "alice.toml").read_text()

    def start(name: str) -> subprocess.Popen[str]:
        config = re.sub(
            r"^listen = .*$", f'listen = "127.0.0.1:{ports[name]}"', example, flags=re.M
        )
        config = re.sub(r"^address = .*\n", "", config, flags=re.M)
        config = re.sub(r"^status = .*$", 'status = "127.0.0.1:0"', config, flags=re.M)
        config = config.replace("/var/lib/antecede", str(folder))
        config = config.replace("/etc/antecede", str(folder / "keys")).replace("alice", name)
        join = f'join = "127.0.0.1:{ports["bob"]}"' if name == "alice" else ""
        config = re.sub(r"^join = .*$", join, config, flags=re.M)
        (folder / f"{name}.toml").write_text(config)
        where = os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))
        words = "-m", "examples.live.service", f"{name}.toml"
        process = started(
            folder, *words, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": where}
        )
        running.append(process)
        return process

    yield start
    end(running)


def line_with(process: subprocess.Popen[str], event: str) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if f'"event": "{event}"' in line:
            return line
    raise AssertionError(f"it ended without {event}")


@pytest.mark.slow
def test_a_service_ends_when_asked_and_goes_on(services: Any, folder: Path) -> None:
    bob, alice = services("bob"), services("alice")
    assert '"member": "alice"' in line_with(bob, "connected")
    alice.send_signal(signal.SIGTERM)
    assert alice.wait(15) == 0
    assert '"member": "alice"' in line_with(bob, "disconnected"), "away, and not gone"
    again = services("alice")
    assert '"member": "bob"' in line_with(again, "connected")
    again.kill()
    again.wait()
    for file in folder.glob("alice.db*"):
        file.unlink()
    third = services("alice")
    assert '"member": "bob"' in line_with(third, "connected"), "a new life, with an empty store"
    with closing(sqlite3.connect(folder / "alice.table")) as table:
        assert table.execute("SELECT count(*) FROM messages").fetchall() == [(0,)]


@pytest.mark.slow
async def test_a_service_that_is_out_says_so_by_its_exit_code(services: Any, folder: Path) -> None:
    bob, alice = services("bob"), services("alice")
    line_with(bob, "connected")
    line_with(alice, "connected")
    config = tomllib.loads((folder / "bob.toml").read_text())
    tls = Tls(folder / "keys/carol.pem", folder / "keys/ca.pem")
    async with Peer("carol", group_name="design", listen="127.0.0.1:0", tls=tls) as carol:
        await carol.join(config["peer"]["listen"])
        carol.evict("alice", "a test")
        await asyncio.to_thread(alice.wait, 30)
    assert alice.returncode == 3
    assert services("alice").wait(30) == 3, "and a restart does not mend it"
