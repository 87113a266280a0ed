"""`antecede chat`: a causally ordered room in the terminal, and on a page."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import signal
import sys
from pathlib import Path
from typing import Any, Final

from antecede.errors import LocalError, PeerError
from antecede.interrupts import Terminated
from antecede.live import DELIVER, ON_MISSING_PARENT, Peer, Tls, keys
from antecede.live.chat import (
    HERE,
    LEAVE,
    MAX_BYTES,
    Chat,
    Notice,
    Page,
    Room,
    Screen,
    Terminal,
    check_address,
    name_of,
    one_line,
    summary,
    terminal,
)
from antecede.live.drivers import split_address

HISTORY: Final = 200
MOST_HISTORY: Final = 100_000
SIGNALS: Final = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
SHOWN_BY_ROOM: Final = ("disconnected", "unheard", "abandoned", "evicted", "store_failed")
"""Logged events that the room shows itself, or that end it."""
SLOW_S: Final = 1.0
"""Delay of the notice of a connection attempt, s."""
EVERYWHERE: Final = "0.0.0.0"
INSECURE = (
    "WITHOUT CERTIFICATES: names are not verified, and the network can read and change all "
    "messages. `antecede certs` creates certificates"
)
OPEN = "THE PAGE IS OPEN TO OTHER MACHINES: anyone with its address reads and writes as you"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede chat`."""
    add = parser.add_argument
    add("name", metavar="NAME", help="your name; with --certs the name in the certificate")
    add("--room", required=True, metavar="NAME", help="name of the room, the same for all members")
    add(
        "--join",
        metavar="HOST:PORT",
        help="member to join (default: a new room, or the room in --store)",
    )
    add(
        "--listen",
        metavar="[HOST]:PORT",
        help="address for connections; :PORT on all interfaces, port 0 any free port (default: "
        "none, this member connects to the others)",
    )
    add(
        "--address",
        metavar="HOST:PORT",
        help="address for the other members (default: the address of --listen)",
    )
    identity = parser.add_mutually_exclusive_group()
    identity.add_argument(
        "--certs", type=Path, metavar="FOLDER", help="certificates from antecede certs"
    )
    identity.add_argument(
        "--insecure", action="store_true", help="use no certificates and no encryption"
    )
    add(
        "--store",
        type=Path,
        metavar="FILE",
        help="file to continue from after a restart (default: none, the end leaves the room)",
    )
    add(
        "--history",
        type=int,
        default=HISTORY,
        metavar="N",
        help=f"newest messages to keep, and to exchange with a joining member (default: {HISTORY})",
    )
    add(
        "--on-missing-parent",
        choices=ON_MISSING_PARENT,
        default=DELIVER,
        help="policy for replies whose parent is lost, the same for all members (default: "
        f"{DELIVER})",
    )
    add(
        "--evict-after",
        type=float,
        metavar="SECONDS",
        help="silence after which a member is evicted (default: never)",
    )
    _add_view_arguments(parser)


def _add_view_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--web",
        nargs="?",
        const=HERE,
        metavar="HOST:PORT",
        help=f"page for a browser on this machine (default without an address: {HERE})",
    )
    add(
        "--web-public",
        action="store_true",
        help="let --web listen to other machines, without encryption: anyone with the page's "
        "address reads and writes as you",
    )
    add("--ascii", action="store_true", help="print ASCII characters only")
    add("--plain", action="store_true", help="print plain lines, also on a terminal")


def run(args: argparse.Namespace) -> int:
    """Chat until /quit, the end of the input, or a signal."""
    peer = _build_peer(args)
    web = None if args.web is None else check_address(args.web, for_others=args.web_public)
    if args.web is None and args.web_public:
        raise LocalError("--web-public has no effect without --web: omit --web-public")
    number = asyncio.run(_ChatSession(args, peer, web).run())
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    if number is not None:
        raise Terminated
    return 0


def _build_peer(args: argparse.Namespace) -> Peer:
    if args.certs is None and not args.insecure:
        raise LocalError(
            "no certificates: give --certs FOLDER (`antecede certs FOLDER NAME ...` creates it) or "
            "--insecure"
        )
    if not 0 <= args.history <= MOST_HISTORY:
        raise LocalError(f"--history {args.history}: expected 0 to {MOST_HISTORY:,} messages")
    if args.evict_after is not None and not 1 <= args.evict_after <= 1e8:
        raise LocalError(f"--evict-after {args.evict_after:g}: expected 1 to 100,000,000 seconds")
    if args.address is not None and args.listen is None:
        raise LocalError("--address has no effect without --listen: omit --address")
    if args.join is not None:
        split_address(args.join)
    if not args.room.strip():
        raise LocalError("--room: expected a name that is not empty")
    tls = None
    if args.certs is not None:
        tls = Tls(keys.member_path(args.certs, args.name), args.certs / keys.AUTHORITY)
    listen = args.listen
    if listen is not None and listen.startswith(":") and listen.count(":") == 1:
        listen = EVERYWHERE + listen
    return Peer(
        args.name,
        group_name=args.room,
        order="reply",
        listen=listen,
        address=args.address,
        tls=tls,
        insecure=args.insecure,
        store=args.store,
        history=args.history,
        max_message_bytes=MAX_BYTES,
        on_missing_parent=args.on_missing_parent,
        evict_after_s=args.evict_after,
    )


class _Log(logging.Handler):
    """Log messages of the peer, as notices in the room."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.chat: Chat | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Show the message in the room, if there is one."""
        if self.chat is not None and getattr(record, "antecede_event", "") not in SHOWN_BY_ROOM:
            text = record.getMessage().removeprefix(f"{self.chat.peer.name}: ")
            self.chat.notify(Notice(one_line(text)))


class _ChatSession:
    def __init__(self, args: argparse.Namespace, peer: Peer, web: tuple[str, int] | None) -> None:
        self._args, self._peer, self._web = args, peer, web
        self._person = not args.plain and terminal.is_interactive(sys.stdin, sys.stdout)
        self._ascii = args.ascii or terminal.is_ascii_only(sys.stdout)
        self._log = _Log()
        self._signal: int | None = None
        self._ended = asyncio.Event()

    async def run(self) -> int | None:
        """Return the number of the signal that ended the chat, or None."""
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            with contextlib.suppress(NotImplementedError, ValueError):
                loop.add_signal_handler(number, self._on_signal, number)
        if self._args.insecure:
            self._note(INSECURE)
        if self._web is not None and self._args.web_public:
            self._note(OPEN)
        logging.getLogger("antecede.live").addHandler(self._log)
        try:
            async with self._peer:
                knew = await self._unless_ended(self._begin())
                if not self._ended.is_set():
                    await self._talk(bool(knew))
        except PeerError as error:  # may contain text of other members
            raise PeerError(one_line(str(error))) from error
        finally:
            logging.getLogger("antecede.live").removeHandler(self._log)
            for number in SIGNALS:
                with contextlib.suppress(NotImplementedError, ValueError):
                    loop.remove_signal_handler(number)
        return self._signal

    def _note(self, text: str) -> None:
        print(f"antecede: {text}", file=sys.stderr, flush=True)

    def _on_signal(self, number: int) -> None:
        self._signal = self._signal or number
        self._ended.set()

    async def _unless_ended(self, work: Any) -> Any:
        """Return the result of `work`, or None after a signal."""
        task = asyncio.ensure_future(work)
        ended = asyncio.ensure_future(self._ended.wait())
        await asyncio.wait([task, ended], return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if not task.done():
            task.cancel()
            return None
        return task.result()

    async def _begin(self) -> bool:
        """Join or start the room; return whether the store contains it."""
        peer, args = self._peer, self._args
        if peer.members:
            return True
        if args.join is not None:
            text = f"connecting to {args.join} ..."
            notice = asyncio.get_running_loop().call_later(SLOW_S, self._note, text)
            try:
                await peer.join(args.join)
            finally:
                notice.cancel()
        elif args.listen is None:
            raise LocalError(
                "a new room needs --listen HOST:PORT; an existing room needs --join HOST:PORT"
            )
        else:
            await peer.bootstrap()
        return False

    async def _talk(self, knew: bool) -> None:
        peer = self._peer
        room = Room(self._args.room, peer.name)
        screen = Screen(lambda: sys.stdout, ascii=self._ascii)
        chat = Chat(peer, room)
        view = Terminal(chat, screen)
        chat.begin()
        async with contextlib.AsyncExitStack() as stack:
            page = None
            if self._web is not None:
                page = await stack.enter_async_context(Page(chat, *self._web))
            self._print_addresses(screen, room, knew, page)
            view.earlier()
            chat.attach(view.news)
            self._log.chat = chat
            tasks = [
                asyncio.ensure_future(chat.run()),
                asyncio.ensure_future(self._read(view)),
                asyncio.ensure_future(self._ended.wait()),
            ]
            try:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    with contextlib.suppress(BrokenPipeError):  # the reader has closed it
                        task.result()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    def _print_addresses(self, screen: Screen, room: Room, knew: bool, page: Page | None) -> None:
        args, peer = self._args, self._peer
        screen.note(f"{name_of(peer.name)} in room {one_line(room.name)}: {summary(room)}")
        if knew and args.join is not None:
            screen.note(f"{args.store} contains the room, so --join {args.join} was not used")
        screen.note(
            f"the other members reach you at {peer.address}"
            if peer.address
            else "without --listen no member can connect to you; you connect to the others"
        )
        if args.store is None:
            screen.note(
                "nothing is stored: at the end you leave the room (--store FILE continues later)"
            )
        else:
            screen.note(f"stored in {args.store}: you can continue later")
        if page is not None:
            screen.note(f"your page: {page.url}")
        screen.note("/help lists the commands")

    async def _read(self, view: Terminal) -> None:
        """Process typed lines; the end of the input ends the chat, unless there is a page."""
        try:
            lines = (
                terminal.read_prompt() if self._person else terminal.read_pipe(sys.stdin.fileno())
            )
            async for line in lines:
                end = await view.run_line(line)
                if not end:
                    continue
                if end == LEAVE and self._args.store is not None:
                    try:  # ends the room, which cancels this task
                        await self._peer.leave()
                    finally:
                        if self._peer.node.left:
                            self._note(
                                f"{self._args.store} cannot be used again: its member has left"
                            )
                return
        except KeyboardInterrupt:  # the prompt reads Ctrl-C as a key
            self._on_signal(signal.SIGINT)
            return
        if self._web is not None and not sys.stdin.isatty():
            await self._ended.wait()
