"""Peer as a service: settings from a file, logs in JSON, ended by SIGTERM.

    python -m examples.live.service alice.toml

It records each message in its own table (`exactly_once.py`) before the acknowledgement. Exit codes:
0 ended by a signal; 1 an error that a restart may fix; 3 the peer has left the group for good and
needs an operator (`running/antecede-peer.service` does not restart it).
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sqlite3
import sys
import tomllib
from pathlib import Path
from typing import Any

from antecede.errors import PeerError
from antecede.live import Peer, Tls

OUT_OF_THE_GROUP = 3


class AsJson(logging.Formatter):
    """Log record as one line of JSON, with the fields of the peer's log without prefix."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        known = {"time": self.formatTime(record), "level": record.levelname}
        prefix = "antecede_"
        fields = {
            k.removeprefix(prefix): v for k, v in vars(record).items() if k.startswith(prefix)
        }
        return json.dumps({**known, "text": record.getMessage(), **fields})


async def handle(peer: Peer, table: sqlite3.Connection) -> None:
    """Record each message in a transaction, then acknowledge it."""
    async for message in peer:
        row = str(message.id), message.sender, message.payload
        with table:
            table.execute("INSERT OR IGNORE INTO messages VALUES (?, ?, ?)", row)
        peer.acknowledge(message)


async def serve(config: dict[str, Any]) -> int:
    """Run the peer until SIGTERM or SIGINT; return the exit code."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    table = sqlite3.connect(config["table"])
    table.execute("CREATE TABLE IF NOT EXISTS messages (id TEXT PRIMARY KEY, sender, payload)")
    try:
        async with Peer(
            config["name"], tls=Tls(**config["tls"]), acknowledge="explicit", **config["peer"]
        ) as peer:
            await (
                peer.join(config["join"], timeout_s=60) if "join" in config else peer.bootstrap()
            )
            tasks = [asyncio.ensure_future(one) for one in (handle(peer, table), stop.wait())]
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # raises the error
    except PeerError as error:
        logging.getLogger("antecede.live").error("%s", error)
        return OUT_OF_THE_GROUP if "out of the group" in str(error) else 1
    finally:
        table.close()
    return 0


def main() -> int:
    """Run the service."""
    handler = logging.StreamHandler()
    handler.setFormatter(AsJson())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    return asyncio.run(serve(tomllib.loads(Path(sys.argv[1]).read_text())))


if __name__ == "__main__":
    sys.exit(main())
