"""`antecede status`: how a live peer is doing, asked of the address that it serves."""

from __future__ import annotations

import argparse
import json
import sys
import time
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, build_opener

from antecede.errors import InputError, LocalError
from antecede.live import Status, format_status, status_from_json
from antecede.live.drivers import split_address

TIMEOUT_S: Final = 5.0
MOST: Final = 16 << 20
"""Bytes of an answer: a thousand members are a quarter of a megabyte."""
CLEAR: Final = "\x1b[H\x1b[2J"
_DIRECT = build_opener(ProxyHandler({}))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede status`."""
    add = parser.add_argument
    add("address", help='HOST:PORT, what `Peer(status="HOST:PORT")` serves')
    add("--json", action="store_true", help="what the peer says, as it says it")
    add("--watch", type=float, metavar="SECONDS", help="again and again, until interrupted")


def run(args: argparse.Namespace) -> int:
    """Ask and print; 1 when the peer is not well."""
    split_address(args.address)
    if args.watch is not None and not 0.1 <= args.watch <= 86_400:
        raise LocalError(f"--watch takes 0.1 to 86,400 seconds, not {args.watch:g}")
    while True:
        plain = _asked(args.address)
        status = _read(plain, args.address)
        if args.watch is not None and not args.json and sys.stdout.isatty():
            print(CLEAR, end="")
        text = json.dumps(plain, ensure_ascii=False) if args.json else format_status(status)
        print(text, flush=True)
        if args.watch is None:
            return 0 if status.is_healthy else 1
        time.sleep(args.watch)


def _asked(address: str) -> Any:
    try:
        with _DIRECT.open(f"http://{address}/status", timeout=TIMEOUT_S) as answer:
            return json.loads(answer.read(MOST))
    except HTTPError as error:
        raise InputError(
            f"answers {error.code} {error.reason}: is a peer's status served there?", path=address
        ) from error
    except (URLError, TimeoutError, ConnectionError, HTTPException) as error:
        why = getattr(error, "reason", error)
        raise InputError(
            f'does not answer: {why}. A peer serves it with Peer(status="{address}")', path=address
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError("answers, but not with a peer's status", path=address) from error


def _read(plain: Any, address: str) -> Status:
    try:
        status = status_from_json(plain)
        format_status(status)  # what is of another type than it should be shows itself here
        return status
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(
            "answers, but not with a status of this version of antecede", path=address
        ) from error
