"""`antecede chat`: a room for people, in the terminal and on a page of one's own browser."""

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
TOLD_ANYWAY: Final = ("disconnected", "unheard", "abandoned", "evicted", "store_failed")
"""Events that the room shows itself, or that end it."""
SLOW_S: Final = 1.0
"""Delay until a notice of calling, s."""
EVERYWHERE: Final = "0.0.0.0"
INSECURE = (
    "WITHOUT CERTIFICATES: names are believed, and whoever is on the way can read and change all "
    "that is said. `antecede keys` makes certificates"
)
OPEN = "THE PAGE IS OPEN TO OTHER MACHINES: who has its address reads and speaks as you"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede chat`."""
    add = parser.add_argument
    add("name", help="one's own name; with --keys the one in the certificate")
    add("--room", required=True, help="what the room is called: for all the same")
    add(
        "--join",
        metavar="HOST:PORT",
        help="a member of the room; without it a room begins here (or goes on, with --store)",
    )
    add(
        "--listen",
        metavar="[HOST]:PORT",
        help="where the others call (:PORT at every address of this machine; port 0: a free one); "
        "without it nobody can call, and one calls the others",
    )
    add(
        "--address", metavar="HOST:PORT", help="how the others reach it, where that is not --listen"
    )
    who = parser.add_mutually_exclusive_group()
    who.add_argument(
        "--keys", type=Path, metavar="FOLDER", help="certificates, as `antecede keys` makes them"
    )
    who.add_argument("--insecure", action="store_true", help="go without certificates")
    add(
        "--store",
        type=Path,
        metavar="FILE",
        help="survives crashes: one goes on later where one was. Without it (the default) nothing "
        "is kept, and one leaves the room when one ends",
    )
    add(
        "--history",
        type=int,
        default=HISTORY,
        metavar="N",
        help=f"how many of the newest messages one keeps, gives to newcomers, and takes when one "
        f"comes ({HISTORY})",
    )
    add(
        "--on-missing-parent",
        choices=ON_MISSING_PARENT,
        default=DELIVER,
        help="what becomes of an answer when what it answers is nobody's any more: shown so marked "
        "(deliver), set aside and said so (drop), held (hold); for all the same",
    )
    add(
        "--put-out",
        type=float,
        metavar="SECONDS",
        help="put members out for good whom nobody has heard for so long; default: only by "
        "/put-out",
    )
    _add_view_arguments(parser)


def _add_view_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--web",
        nargs="?",
        const=HERE,
        metavar="HOST:PORT",
        help=f"a page of the same for a browser on this machine ({HERE}: a free port)",
    )
    add(
        "--web-for-others",
        action="store_true",
        help="let --web listen where other machines reach it: whoever has the page's address reads "
        "and speaks as you, and the way there is not encrypted",
    )
    add("--ascii", action="store_true", help="draw with ASCII characters alone")
    add("--plain", action="store_true", help="lines alone, also at a terminal")


def run(args: argparse.Namespace) -> int:
    """Be in the room until /quit, the end of the input, or a signal."""
    peer = _peer(args)
    web = None if args.web is None else check_address(args.web, for_others=args.web_for_others)
    if args.web is None and args.web_for_others:
        raise LocalError("--web-for-others is about --web, which is not given")
    number = asyncio.run(_Running(args, peer, web).run())
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    if number is not None:
        raise Terminated
    return 0


def _peer(args: argparse.Namespace) -> Peer:
    if args.keys is None and not args.insecure:
        raise LocalError(
            "--keys FOLDER names the certificates (`antecede keys FOLDER NAME ...` makes them); "
            "--insecure goes without"
        )
    if not 0 <= args.history <= MOST_HISTORY:
        raise LocalError(f"--history is 0 to {MOST_HISTORY:,} messages, not {args.history}")
    if args.put_out is not None and not 1 <= args.put_out <= 1e8:
        raise LocalError(f"--put-out is 1 to 100,000,000 seconds, not {args.put_out:g}")
    if args.address is not None and args.listen is None:
        raise LocalError("--address says where --listen is reached, which is not given")
    if args.join is not None:
        split_address(args.join)
    if not args.room.strip():
        raise LocalError("--room is the name of the room, the same for all in it, and not empty")
    tls = None
    if args.keys is not None:
        tls = Tls(keys.member_path(args.keys, args.name), args.keys / keys.AUTHORITY)
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
        evict_after_s=args.put_out,
    )


class _Log(logging.Handler):
    """Log of the peer for people: refused members, failures."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.chat: Chat | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Tell the room, once there is one."""
        if self.chat is not None and getattr(record, "antecede_event", "") not in TOLD_ANYWAY:
            text = record.getMessage().removeprefix(f"{self.chat.peer.name}: ")
            self.chat.notify(Notice(one_line(text)))


class _Running:
    def __init__(self, args: argparse.Namespace, peer: Peer, web: tuple[str, int] | None) -> None:
        self._args, self._peer, self._web = args, peer, web
        self._person = not args.plain and terminal.is_interactive(sys.stdin, sys.stdout)
        self._ascii = args.ascii or terminal.is_ascii_only(sys.stdout)
        self._log = _Log()
        self._signal: int | None = None
        self._ended = asyncio.Event()

    async def run(self) -> int | None:
        """Return the number of the signal that ended it; None: it ended by itself."""
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            with contextlib.suppress(NotImplementedError, ValueError):
                loop.add_signal_handler(number, self._signalled, number)
        if self._args.insecure:
            self._note(INSECURE)
        if self._web is not None and self._args.web_for_others:
            self._note(OPEN)
        logging.getLogger("antecede.live").addHandler(self._log)
        try:
            async with self._peer:
                knew = await self._unless_ended(self._begin())
                if not self._ended.is_set():
                    await self._talk(bool(knew))
        except PeerError as error:  # in it may be words of others
            raise PeerError(one_line(str(error))) from error
        finally:
            logging.getLogger("antecede.live").removeHandler(self._log)
            for number in SIGNALS:
                with contextlib.suppress(NotImplementedError, ValueError):
                    loop.remove_signal_handler(number)
        return self._signal

    def _note(self, text: str) -> None:
        print(f"antecede: {text}", file=sys.stderr, flush=True)

    def _signalled(self, number: int) -> None:
        self._signal = self._signal or number
        self._ended.set()

    async def _unless_ended(self, work: Any) -> Any:
        """Return the result of `work`, or None if a signal comes before."""
        task = asyncio.ensure_future(work)
        ended = asyncio.ensure_future(self._ended.wait())
        await asyncio.wait([task, ended], return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if not task.done():
            task.cancel()
            return None
        return task.result()

    async def _begin(self) -> bool:
        """Join or found the room; return whether the store knew it already."""
        peer, args = self._peer, self._args
        if peer.members:
            return True
        if args.join is not None:
            told = f"calling {args.join} ..."
            calling = asyncio.get_running_loop().call_later(SLOW_S, self._note, told)
            try:
                await peer.join(args.join)
            finally:
                calling.cancel()
        elif args.listen is None:
            raise LocalError(
                "a room that begins here needs --listen HOST:PORT, so that others can come; "
                "--join HOST:PORT goes to one that is there"
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
            self._say_where(screen, room, knew, page)
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
                    with contextlib.suppress(BrokenPipeError):  # nobody reads it: that is the end
                        task.result()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    def _say_where(self, screen: Screen, room: Room, knew: bool, page: Page | None) -> None:
        args, peer = self._args, self._peer
        screen.note(f"{name_of(peer.name)} in room {one_line(room.name)}: {summary(room)}")
        if knew and args.join is not None:
            screen.note(f"{args.store} knows the room, so nobody at {args.join} was asked to join")
        screen.note(
            f"the others reach you at {peer.address}"
            if peer.address
            else "nobody can call you: without --listen it is you who call the others"
        )
        if args.store is None:
            screen.note("nothing is kept: when you end, you leave the room (--store FILE keeps)")
        else:
            screen.note(f"kept in {args.store}: when you end, you go on there later")
        if page is not None:
            screen.note(f"the page, for you alone: {page.url}")
        screen.note("/help lists what can be typed")

    async def _read(self, view: Terminal) -> None:
        """Do what is typed; the end of the input ends the chat, unless a page is there."""
        try:
            lines = (
                terminal.read_prompt() if self._person else terminal.read_pipe(sys.stdin.fileno())
            )
            async for line in lines:
                end = await view.run_line(line)
                if not end:
                    continue
                if end == LEAVE and self._args.store is not None:
                    try:  # the room ends with it, and what reads here is cancelled
                        await self._peer.leave()
                    finally:
                        if self._peer.node.left:
                            self._note(f"{self._args.store} is of no more use: its member has left")
                return
        except KeyboardInterrupt:  # of the prompt, which takes Ctrl-C as a key
            self._signalled(signal.SIGINT)
            return
        if self._web is not None and not sys.stdin.isatty():
            await self._ended.wait()
