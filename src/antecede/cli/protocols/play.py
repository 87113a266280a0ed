"""`antecede play [SCENARIO]`: a bench on which a scene is moved by hand, in the browser."""

from __future__ import annotations

import argparse

from antecede.cli.files.browser import serve_until_interrupted
from antecede.cli.option_rules import excludes
from antecede.core.pages import LocalServer
from antecede.errors import InputError
from antecede.lab.check.scenario import script_file
from antecede.lab.play import Bench, Opened

OPTION_RULES = (excludes("script", "exercise", why="an exercise has its own scenario"),)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede play`."""
    add = parser.add_argument
    add("script", nargs="?", metavar="SCENARIO", help="scenario file to begin with (*.scenario)")
    add(
        "--protocol",
        metavar="NAME,...",
        help="show it under these, side by side; your own as FILE.py:CLASS",
    )
    add("--exercise", metavar="NAME", help="begin with this exercise")
    add("--port", type=int, default=0, help="of the server (any that is free)")
    add("--no-browser", action="store_true", help="print where the page is, and open nothing")


def run(args: argparse.Namespace) -> int:
    """Serve the bench until Ctrl-C; returns the exit code."""
    if not 0 <= args.port < 65_536:
        raise InputError(f"--port {args.port}: ports go from 0 (any) to 65535")
    names = [name.strip() for name in (args.protocol or "").split(",") if name.strip()]
    if args.protocol is not None and not names:
        raise InputError("--protocol names no protocol")
    if args.script is None:
        opened = Opened(protocols=names, exercise=args.exercise)
    else:
        opened = Opened(script_file(args.script), args.script, names)
    opened.try_protocols()
    site = Bench(opened)
    try:
        serving = LocalServer(site, args.port)
        serve_until_interrupted(serving, "The bench is", browser=not args.no_browser)
    finally:
        site.close()
    return 0
