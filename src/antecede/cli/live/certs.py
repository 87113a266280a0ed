"""`antecede certs`: an authority and certificates of members, for a live group."""

from __future__ import annotations

import argparse
from pathlib import Path

from antecede.errors import InputError
from antecede.formatting import pluralize
from antecede.live import keys

DAYS = f"days of validity, ten times as many for the authority (default: {keys.DAYS})"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede certs`."""
    add = parser.add_argument
    add("folder", type=Path, metavar="FOLDER", help="folder of the files; its authority is reused")
    add("names", nargs="+", metavar="NAME", help="names of members")
    add(
        "--hosts",
        default="",
        metavar="HOST,...",
        help="host names or addresses in the certificates; peers ignore them",
    )
    add("--days", type=int, default=keys.DAYS, metavar="DAYS", help=DAYS)
    add(
        "--force",
        action="store_true",
        help="overwrite certificates of members (not the authority's)",
    )


def run(args: argparse.Namespace) -> int:
    """Create the missing files and print their names."""
    folder: Path = args.folder
    hosts = [host.strip() for host in args.hosts.split(",") if host.strip()]
    paths = [keys.member_path(folder, name) for name in args.names]
    # Check all names before a file is created.
    if twice := {str(path) for path in paths if paths.count(path) > 1}:
        raise InputError("two members have this file; give different names", path=min(twice))
    there = [str(path) for path in paths if path.exists()]
    if there and not args.force:
        raise InputError("exists; --force replaces it", path=there[0])
    if not (folder / keys.AUTHORITY).exists() and not (folder / keys.AUTHORITY_KEY).exists():
        authority, secret = keys.make_authority(folder, days=10 * args.days)
        print(f"{authority}  certificate of the authority: all members need it")
        print(f"{secret}  key of the authority: admits members; keep it secret")
    for name in args.names:
        path = keys.make_member(folder, name, hosts=hosts, days=args.days, force=args.force)
        print(f"{path}  certificate and key of {name}: only for {name}")
    first = paths[0]
    print(f"{pluralize(len(paths), 'member')} for {pluralize(args.days, 'day')}. In a program:")
    print(f'  Peer({args.names[0]!r}, tls=Tls("{first}", "{folder / keys.AUTHORITY}"), ...)')
    return 0
