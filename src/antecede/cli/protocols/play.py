"""`antecede play [SCENARIO]`: playground in the browser for scenarios and protocols."""

from __future__ import annotations

import argparse

from antecede.cli.files.browser import serve_until_interrupted
from antecede.cli.option_rules import excludes
from antecede.core.pages import LocalServer
from antecede.errors import InputError
from antecede.lab.check.scenario import read_scenario_file
from antecede.lab.play import Bench, Opened

OPTION_RULES = (excludes("scenario", "exercise", why="an exercise has its own scenario"),)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede play`."""
    add = parser.add_argument
    add("scenario", nargs="?", metavar="SCENARIO", help="scenario file (.scenario)")
    add(
        "--protocol",
        metavar="NAME,...",
        help="protocols side by side; your own as FILE.py:CLASS",
    )
    add("--exercise", metavar="NAME", help="exercise to start with")
    add("--port", type=int, default=0, metavar="PORT", help="port of the server (default: any)")
    add("--no-browser", action="store_true", help="print the address and open no browser")


def run(args: argparse.Namespace) -> int:
    """Serve the playground until Ctrl-C; return the exit code."""
    if not 0 <= args.port < 65_536:
        raise InputError(f"--port {args.port}: expected 0 (any free port) to 65535")
    names = [name.strip() for name in (args.protocol or "").split(",") if name.strip()]
    if args.protocol is not None and not names:
        raise InputError("--protocol: expected NAME,...")
    if args.scenario is None:
        opened = Opened(protocols=names, exercise=args.exercise)
    else:
        opened = Opened(read_scenario_file(args.scenario), args.scenario, names)
    opened.try_protocols()
    site = Bench(opened)
    try:
        serving = LocalServer(site, args.port)
        serve_until_interrupted(serving, "Playground", browser=not args.no_browser)
    finally:
        site.close()
    return 0
