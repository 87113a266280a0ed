"""`antecede keys`: certificates for a live group, an authority of its own and a member each."""

from __future__ import annotations

import argparse
from pathlib import Path

from antecede.errors import InputError
from antecede.formatting import counted
from antecede.live import keys

DAYS = f"how long the certificates of members hold ({keys.DAYS}); the authority's: ten times that"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede keys`."""
    add = parser.add_argument
    add("folder", type=Path, help="where they go; an authority there is used")
    add("names", nargs="+", metavar="NAME", help="members: what each is called")
    add(
        "--hosts",
        default="",
        metavar="HOST,...",
        help="names or addresses where they listen, for tools that look at them; members do not",
    )
    add("--days", type=int, default=keys.DAYS, help=DAYS)
    add(
        "--force", action="store_true", help="replace certificates of members (not the authority's)"
    )


def run(args: argparse.Namespace) -> int:
    """Make what is missing, and say what was made."""
    folder: Path = args.folder
    hosts = [host.strip() for host in args.hosts.split(",") if host.strip()]
    paths = [keys.member_path(folder, name) for name in args.names]
    # Refuse before anything is made, rather than after a half.
    if twice := {str(path) for path in paths if paths.count(path) > 1}:
        raise InputError("is named twice", path=min(twice))
    there = [str(path) for path in paths if path.exists()]
    if there and not args.force:
        raise InputError("is there already; --force replaces it", path=there[0])
    if not (folder / keys.AUTHORITY).exists() and not (folder / keys.AUTHORITY_KEY).exists():
        authority, secret = keys.make_authority(folder, days=10 * args.days)
        print(f"{authority}  the authority: every member needs it")
        print(f"{secret}  its key: who has it can let anybody in; keep it, members do not need it")
    for name in args.names:
        path = keys.make_member(folder, name, hosts=hosts, days=args.days, force=args.force)
        print(f"{path}  certificate and key of {name}: for {name} alone")
    first = paths[0]
    print(f"{counted(len(paths), 'member')} for {counted(args.days, 'day')}. In a program:")
    print(f'  Peer({args.names[0]!r}, tls=Tls("{first}", "{folder / keys.AUTHORITY}"), ...)')
    return 0
