"""Kafka broker of one node in KRaft mode, from Maven artifacts.

Maven downloads its jars, and those of Spark for Kafka and Delta, once, by the two files under
`pipeline/maven`.
"""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from antecede.errors import SetupError
from antecede.spark import use_java

MAVEN = Path(__file__).with_name("maven")
RESOLVED = ".resolved"
DEADLINE_S = 60
RESOLVE_S = 600

_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs={logs}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""


def resolve(cache: Path) -> tuple[Path, Path]:
    """Return the jar folders of the broker and of Spark; Maven downloads missing ones.

    Raises SetupError with the reason without Maven, or if it fails.
    """
    folders = []
    for part in ("broker", "spark"):
        pom = MAVEN / part / "pom.xml"
        folder = cache / part
        mark = folder / RESOLVED
        if not mark.exists() or mark.read_text() != pom.read_text():
            _resolve(pom, folder)
            mark.write_text(pom.read_text())
        folders.append(folder)
    return folders[0], folders[1]


def _resolve(pom: Path, folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise SetupError("Maven (mvn) is not installed")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    words = ["-q", "-B", "-f", str(pom), "dependency:copy-dependencies", "-DincludeScope=runtime"]
    try:
        done = subprocess.run(
            [maven, *words, f"-DoutputDirectory={folder.resolve()}"],
            capture_output=True,
            text=True,
            timeout=RESOLVE_S,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        raise SetupError(f"Maven did not finish within {RESOLVE_S} s") from error
    if done.returncode or not any(folder.glob("*.jar")):
        errors = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line]
        raise SetupError(f"Maven failed for {pom.parent.name}: {' '.join(errors[:1]) or 'no jar'}")


@contextlib.contextmanager
def broker(jars: Path, folder: Path) -> Iterator[str]:
    """Run a broker on loopback; yield its address, and stop it at the end.

    Raises SetupError with the end of its log if it does not answer in time.
    """
    environ = dict(os.environ)
    use_java(environ)
    java = [str(Path(environ["JAVA_HOME"], "bin", "java")), "-Xmx384m", "-XX:+UseSerialGC"]
    java += ["-XX:TieredStopAtLevel=1", "-cp", f"{jars.resolve()}/*"]
    port, controller = _find_free_ports(2)
    folder.mkdir()
    settings = folder / "server.properties"
    logs = (folder / "logs").resolve()
    settings.write_text(_SETTINGS.format(port=port, controller=controller, logs=logs))
    name = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    form = ["kafka.tools.StorageTool", "format", "-t", name, "-c", str(settings), "--standalone"]
    done = subprocess.run([*java, *form], capture_output=True, text=True, env=environ)
    if done.returncode:
        raise SetupError(f"cannot format the broker's storage: {done.stderr.strip()[-300:]}")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*java, "kafka.Kafka", str(settings)], stdout=log, stderr=log, env=environ
        )
    try:
        _wait_for_broker(process, port, folder / "log")
        yield f"kafka:127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(15)


def _wait_for_broker(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise SetupError(f"the broker does not answer: {log.read_text(errors='replace')[-500:]}")


def _find_free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(count):
            sock = stack.enter_context(socket.socket())
            sock.bind(("127.0.0.1", 0))
            found.append(int(sock.getsockname()[1]))
        return found
