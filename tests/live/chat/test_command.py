"""`antecede chat` in processes of its own: through pipes, at a terminal, and with bad input."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from antecede.cli import main
from antecede.errors import PeerError
from antecede.live import keys
from antecede.live.peer import Peer

WAIT_S = 60.0
NAMES = ("alice", "bob", "carol")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("keys")
    keys.make_authority(made)
    for name in NAMES:
        keys.make_member(made, name)
    return made


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def sit_at_terminal() -> None:
    """Make standard input the terminal whose Ctrl-C is a signal to this process, in the child."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Process:
    """A chat whose lines are read and written as they come."""

    program: tuple[str, ...] = ("-m", "antecede", "chat")

    def __init__(self, *arguments: str, terminal: bool = False, **environment: str) -> None:
        command = [sys.executable, *self.program, *arguments]
        env = {**os.environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "100", **environment}
        self.seen = ""
        self.at = 0
        if terminal:
            self._reads, slave = pty.openpty()
            self._writes = self._reads
            self.process = subprocess.Popen(
                *(command,),
                stdin=slave,
                stdout=slave,
                stderr=slave,
                env=env,
                start_new_session=True,
                preexec_fn=sit_at_terminal,
            )
            os.close(slave)
        else:
            self.process = subprocess.Popen(
                *(command,),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=env,
            )
            assert self.process.stdin is not None
            assert self.process.stdout is not None
            self._writes, self._reads = self.process.stdin.fileno(), self.process.stdout.fileno()

    def write(self, text: str) -> None:
        os.write(self._writes, text.encode())

    def until(self, pattern: str) -> re.Match[str]:
        """Read on until this has come, behind what was looked for before."""
        end = time.monotonic() + WAIT_S
        while (found := re.compile(pattern).search(self.seen, self.at)) is None:
            assert time.monotonic() < end, f"no {pattern!r} in {self.seen[self.at :]!r}"
            if select.select([self._reads], [], [], 0.2)[0]:
                data = b""
                with contextlib.suppress(OSError):  # a terminal nobody is at any more
                    data = os.read(self._reads, 1 << 16)
                assert data, f"it ended before {pattern!r}: {self.seen[self.at :]!r}"
                self.seen += data.decode(errors="replace")
        self.at = found.end()
        return found

    def ends(self, code: int) -> None:
        assert self.process.wait(WAIT_S) == code, self.seen

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        if self.process.stdin is None:
            os.close(self._reads)


class Started:
    """The processes of a test."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port
        self.running: list[Process] = []

    def chat(self, name: str, *more: str, terminal: bool = False, **environment: str) -> Process:
        where = ["--join", f"127.0.0.1:{self.port}"]
        if not self.running:
            where = ["--listen", f"127.0.0.1:{self.port}"]
        given = (name, "--room", "design", *where, "--certs", str(self.folder), *more)
        self.running.append(Process(*given, terminal=terminal, **environment))
        return self.running[-1]


@pytest.fixture
def started(folder: Path, port: int) -> Iterator[Started]:
    made = Started(folder, port)
    try:
        yield made
    finally:
        for one in made.running:
            one.close()


@pytest.mark.slow
def test_two_people_talk_through_pipes(started: Started) -> None:
    alice = started.chat("alice")
    alice.until(r"alice in room design: 1 here")
    alice.until(rf"reach you at 127\.0\.0\.1:{started.port}")
    alice.until(r"nothing is stored")
    alice.write("lunch?\n")
    alice.until(r"1  alice: lunch\?\n")
    bob = started.chat("bob", "--listen", "127.0.0.1:0")
    alice.until(r"bob joined")
    bob.until(r"earlier messages:\n   1  alice: lunch\?\n")
    bob.write("1: yes\n/reply 1 at \x1b[31mnoon\n")
    alice.until(r"2  bob ↳ 1 alice “lunch\?”: yes\n   3  bob ↳ 1 .*: at ␛\[31mnoon\n")
    alice.write("/reply 2 good\n/thread 1\n")
    alice.until(r"   1  alice: lunch\?\n")
    alice.until(r"   2  ├── bob: yes\n   4  │   └── alice: good\n   3  └── bob: at ␛\[31mnoon\n")
    alice.write("/who\n/held\n/ask\n9: x\n/else\n" + "x" * 70_000 + "\n")
    alice.until(r"alice  \(you\)\n.*bob  \(here\)")
    alice.until(r"no reply is held\n")
    alice.until(r"no message is missing")
    alice.until(r"no message 9; there are 1 to 4")
    alice.until(r"unknown command /else; /help")
    alice.until(r"70,000 bytes was not sent; the limit is 65,536")
    bob.write("/quit\n")
    bob.ends(0)
    alice.until(r"bob left")
    assert alice.process.stdin is not None
    alice.process.stdin.close()
    alice.ends(0)
    assert "\x1b" not in alice.seen
    assert "Traceback" not in alice.seen + bob.seen


@pytest.mark.slow
@pytest.mark.parametrize("plain", [False, True])
def test_at_a_terminal_the_line_that_is_typed_stays(started: Started, plain: bool) -> None:
    more = ("--plain", "--ascii") if plain else ()
    alice = started.chat("alice", *more, terminal=True, TERM="xterm", PROMPT_TOOLKIT_NO_CPR="1")
    alice.until(r"/help lists")
    bob = started.chat("bob")
    alice.until(r"bob joined")
    alice.write("half a sen")
    bob.until(r"/help lists")
    bob.write("hello\n")
    alice.until(r"1  bob: hello")
    if not plain:  # it is drawn again below what came
        alice.until(r"half a sen")
    alice.write("tence\r")
    bob.until(r"2  alice: half a sentence\n")
    bob.write("2: a whole one\n")
    alice.until(r'-> 2 alice "half' if plain else "↳ 2 alice “half")
    alice.write("/thread 2\r")
    alice.until(r"3  `-- bob" if plain else "3  └── bob")
    alice.write("\x03" if not plain else "\x04")
    alice.ends(130 if not plain else 0)
    bob.until(r"alice left")
    assert "Traceback" not in alice.seen


BUSY = """
import asyncio, signal
from antecede.live.chat.terminal import read_prompt

async def work():
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, ended.set)
    async for line in read_prompt():
        print("busy with", line)
        await ended.wait()
        print("asked to end")
        return

asyncio.run(work())
"""


class Busy(Process):
    """Reads a line, and is busy with it until a signal comes."""

    program = ("-c", BUSY)


@pytest.mark.slow
def test_ctrl_c_while_no_line_is_read_is_the_signal_that_it_is() -> None:
    busy = Busy(terminal=True, TERM="xterm", PROMPT_TOOLKIT_NO_CPR="1")
    try:
        busy.until(">")
        busy.write("a line\r")
        busy.until("busy with a line")
        busy.write("\x03")
        busy.until("asked to end")
        busy.ends(0)
    finally:
        busy.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 143)]
)
def test_who_is_asked_to_end_leaves(started: Started, number: int, code: int) -> None:
    alice, bob = started.chat("alice"), None
    alice.until(r"/help lists")
    bob = started.chat("bob")
    alice.until(r"bob joined")
    bob.until(r"/help lists")
    bob.process.send_signal(number)
    bob.ends(code)
    alice.until(r"bob left")


@pytest.mark.slow
def test_a_store_survives_a_kill(started: Started, tmp_path: Path) -> None:
    store = "--store", str(tmp_path / "bob.db"), "--listen", "127.0.0.1:0"
    alice = started.chat("alice")
    alice.until(r"/help lists")
    bob = started.chat("bob", *store)
    bob.until(r"stored in .*bob\.db")
    bob.write("before\n")
    alice.until(r"1  bob: before")
    alice.write("1: seen\n")
    bob.until(r"2  alice ↳ 1 bob “before”: seen")
    bob.process.kill()
    bob.process.wait()
    alice.until(r"bob is disconnected")
    alice.write("2: are you there?\n")
    bob = started.chat("bob", *store)
    bob.until(r"bob\.db contains the room, so --join 127\.0\.0\.1:\d+ was not used")
    bob.until(r"earlier messages:\n   1  bob: before\n")
    bob.until(r"2  .*alice.*: seen\n")  # before or, where it was not written yet, again
    bob.until(r"3  alice ↳ 2 alice “seen”: are you there\?")
    bob.write("3: yes, again\n")
    alice.until(r"bob is connected")
    alice.until(r"bob ↳ 3 alice “are you there\?”: yes, again")
    bob.write("/leave\n")
    bob.until(r"bob\.db cannot be used again: its member has left")
    bob.ends(0)
    alice.until(r"bob left")


@pytest.mark.slow
def test_who_is_not_read_any_more_leaves(started: Started) -> None:
    alice = started.chat("alice")
    alice.until(r"/help lists")
    bob = started.chat("bob")
    bob.until(r"/help lists")
    assert bob.process.stdout is not None
    bob.process.stdout.close()
    alice.write("are you there?\n")
    alice.until(r"bob left")
    bob.ends(0)


@pytest.mark.slow
def test_who_comes_again_under_the_same_name_takes_the_place_of_the_first(started: Started) -> None:
    alice = started.chat("alice")
    alice.until(r"/help lists")
    bob = started.chat("bob")
    bob.until(r"/help lists")
    again = started.chat("bob")
    again.until(r"bob in room design: 2 here")
    bob.until(r"antecede: bob is out of the group: another incarnation of bob has started")
    bob.ends(2)
    again.write("it is me\n")
    alice.until(r"bob: it is me")


@pytest.mark.slow
def test_a_page_goes_on_when_nothing_more_is_typed(started: Started) -> None:
    alice = started.chat("alice", "--web")
    url = alice.until(r"http://127\.0\.0\.1:\d+/\S+/")[0]
    assert alice.process.stdin is not None
    alice.process.stdin.close()
    parts = urlsplit(url)
    connection = HTTPConnection(parts.netloc, timeout=10)
    headers = {"origin": f"http://{parts.netloc}", "content-type": "application/json"}
    body = json.dumps({"text": "from the page"})
    connection.request("POST", f"{parts.path}say", body, headers)
    assert json.loads(connection.getresponse().read()) == {"number": 1}
    connection.close()
    alice.until(r"1  alice: from the page")
    alice.process.terminate()
    alice.ends(143)


@pytest.mark.slow
def test_without_certificates_it_says_so_loudly(started: Started) -> None:
    carol = Process("carol", "--room", "r", "--listen", "127.0.0.1:0", "--insecure")
    started.running.append(carol)
    carol.until(r"antecede: WITHOUT CERTIFICATES: names are not verified")
    carol.until(r"carol in room r: 1 here")
    carol.write("/quit\n")
    carol.ends(0)


@pytest.mark.slow
def test_who_cannot_come_is_told_why_in_a_sentence(
    started: Started, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    alice = started.chat("alice")
    alice.until(r"/help lists")
    keys.make_authority(tmp_path)
    keys.make_member(tmp_path, "bob")
    at, mine = f"127.0.0.1:{started.port}", str(started.folder)
    join = ["--room", "design", "--join", at]
    wrong = [
        (["--room", "other", "--join", at, "--certs", mine], "its group_name= differs"),
        ([*join, "--certs", str(tmp_path)], "its certificate is of another authority"),
        ([*join, "--certs", mine, "--on-missing-parent", "hold"], "its on_missing_parent= differs"),
        (["--room", "design", "--listen", at, "--certs", mine], f"bob cannot listen at {at}: "),
        ([*join, "--certs", mine, "--web", at], f"cannot serve the page at {at}"),
    ]
    for arguments, why in wrong:
        assert main(["chat", "bob", *arguments]) == 2
        error = capfd.readouterr().err
        assert why in error
        assert error.count("\n") == 1, error


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--join", "nonsense", "--insecure"], "invalid address 'nonsense'; expected HOST:PORT"),
        (["--listen", "nonsense", "--insecure"], "expected HOST:PORT"),
        (
            ["--listen", "100::1:1", "--insecure"],
            "invalid address '100::1:1'; expected HOST:PORT or [IPv6]:PORT",
        ),
        (["--listen", "::ffff:192.0.2.1:1", "--insecure"], "invalid address '::ffff:192.0.2.1:1'"),
        (["--join", "h:1"], "no certificates: give --certs FOLDER"),
        (["--join", "h:1", "--certs", "nowhere"], "ca.pem: cannot be read"),
        (["--insecure"], "a new room needs --listen"),
        (["--join", "h:1", "--insecure", "--room", ""], "--room: expected a name"),
        (
            ["--join", "h:1", "--insecure", "--room", " "],
            "--room: expected a name",
        ),
        (
            ["--join", "http://h:1", "--insecure"],
            "expected HOST:PORT without scheme and path: 'h:1'",
        ),
        (["--join", "h:1", "--insecure", "--history", "-1"], "--history -1: expected 0 to 100,000"),
        (
            ["--join", "h:1", "--insecure", "--evict-after", "nan"],
            "--evict-after nan: expected 1 to",
        ),
        (
            ["--join", "h:1", "--insecure", "--address", "h:2"],
            "--address has no effect without --listen",
        ),
        (
            ["--join", "h:1", "--insecure", "--web", "0.0.0.0:0"],
            "other machines could read and write as you",
        ),
        (["--join", "h:1", "--insecure", "--web", "x"], "expected HOST:PORT"),
        (
            ["--join", "h:1", "--insecure", "--web-public"],
            "--web-public has no effect without --web",
        ),
        (["--join", "h:1", "--insecure", "--store", "/nowhere/x"], "/nowhere/x cannot be opened"),
    ],
)
def test_a_wrong_call_is_a_sentence(
    arguments: list[str], why: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["chat", "bob", "--room", "r", *arguments]) == 2
    error = capfd.readouterr().err
    assert why in error
    said = [line for line in error.splitlines() if "WITHOUT CERTIFICATES" not in line]
    assert len(said) == 1, error


def test_words_of_others_reach_the_terminal_by_no_error(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def join(self: Peer, address: str) -> None:
        raise PeerError("not let in: \x1b[2J\nantecede: all is well")

    monkeypatch.setattr(Peer, "join", join)
    assert main(["chat", "bob", "--room", "r", "--join", "h:1", "--insecure"]) == 2
    assert "not let in: ␛[2J antecede: all is well\n" in capfd.readouterr().err


def test_what_cannot_go_together(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main(["chat", "bob", "--room", "r", "--insecure", "--certs", "x"])
    assert error.value.code == 2
    with pytest.raises(SystemExit):
        main(["chat", "bob"])
    assert "required: --room" in capfd.readouterr().err
