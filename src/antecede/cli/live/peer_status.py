"""`antecede peer-status`: status of a running peer, from the address that it serves."""

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
"""Limit of a response, bytes; 1,000 members need about 250,000."""
CLEAR: Final = "\x1b[H\x1b[2J"
_DIRECT = build_opener(ProxyHandler({}))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede peer-status`."""
    add = parser.add_argument
    add("address", metavar="HOST:PORT", help='address of Peer(status="HOST:PORT")')
    add("--json", action="store_true", help="print the response of the peer (JSON)")
    add(
        "--watch",
        type=float,
        metavar="SECONDS",
        help="interval of repetition until Ctrl-C (default: once)",
    )


def run(args: argparse.Namespace) -> int:
    """Fetch and print the status; return 1 if the peer is unhealthy."""
    split_address(args.address)
    if args.watch is not None and not 0.1 <= args.watch <= 86_400:
        raise LocalError(f"--watch {args.watch:g}: expected 0.1 to 86,400 seconds")
    while True:
        plain = _fetch(args.address)
        status = _read(plain, args.address)
        if args.watch is not None and not args.json and sys.stdout.isatty():
            print(CLEAR, end="")
        text = json.dumps(plain, ensure_ascii=False) if args.json else format_status(status)
        print(text, flush=True)
        if args.watch is None:
            return 0 if status.is_healthy else 1
        time.sleep(args.watch)


def _fetch(address: str) -> Any:
    try:
        with _DIRECT.open(f"http://{address}/status", timeout=TIMEOUT_S) as answer:
            return json.loads(answer.read(MOST))
    except HTTPError as error:
        raise InputError(
            f"HTTP {error.code} {error.reason}; check that a peer serves its status there",
            path=address,
        ) from error
    except (URLError, TimeoutError, ConnectionError, HTTPException) as error:
        why = getattr(error, "reason", error)
        raise InputError(
            f'no response: {why}; a peer serves its status with Peer(status="{address}")',
            path=address,
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError("the response is not the status of a peer", path=address) from error


def _read(plain: Any, address: str) -> Status:
    try:
        status = status_from_json(plain)
        format_status(status)  # raises for values of another type
        return status
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(
            "the response is not a status of this version of antecede", path=address
        ) from error
