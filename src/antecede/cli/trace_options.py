"""Options of the command line that say how input is read; shared by all commands that read."""

from __future__ import annotations

import argparse

from antecede.errors import InputError
from antecede.tables.trace import SEQ, ReadOptions, names

_COLUMNS = {
    "id": ("id", "identity of the event; several times: its parts"),
    "after": ("causes", "its causes; several times: further causes, or parts as of --id"),
    "member": ("member", "who sent it"),
    "seq": ("seq", "the member's own number for it"),
    "time": ("send_time", "when it was sent"),
    "arrival": ("arrival", "when it arrived"),
    "clock": ("clock", "its vector clock, as a map, JSON or m:1,n:2"),
    "topic": ("topics", "its topic; may be given several times"),
    "run": ("run", "execution, where ids repeat from run to run"),
    "text": ("text", "what it says: searched, shown and asked for"),
}
GROUP = "group"
"""Option of commands that order or count by group; elsewhere `--run` shows one of several."""
_SEVERAL = ("id", "after", "topic")


def add_read_arguments(
    parser: argparse.ArgumentParser, *, text: bool = False, group: bool = False
) -> None:
    """Declare PATH..., --format and the options of the readers.

    `text`: for commands that show texts of events; `group`: for those that keep groups apart.
    """
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="file, folder, repository or pattern"
    )
    parser.add_argument(
        "--format", metavar="F", help=f"{', '.join(names())}; told by looking if not given"
    )
    clocks = parser.add_argument_group("vector-clock logs (shiviz)")
    clocks.add_argument(
        "--regex", metavar="R", help="expression with the groups host, clock and event"
    )
    clocks.add_argument(
        "--delimiter", metavar="R", help="expression between executions; group trace names them"
    )
    table = parser.add_argument_group(
        "tables: which column holds what, where names do not tell",
        "COLUMN is a name, or an expression of JMESPath on a row, as in --after "
        "\"tags[?[0]=='e'][1]\"",
    )
    for option, (_, meaning) in _COLUMNS.items():
        if option == "text" and not text:
            continue
        several = option in _SEVERAL
        action = "append" if several else "store"
        table.add_argument(f"--{option}", metavar="COLUMN", help=meaning, action=action)
    if group:
        table.add_argument(
            f"--{GROUP}",
            metavar="COLUMN",
            help="groups: rows of different groups never wait for each other; as --run, but a row "
            "without a group is set aside",
        )
    table.add_argument(
        "--time-unit", choices=("s", "ms", "us", "ns"), help="of times given as numbers"
    )
    table.add_argument(
        "--separator", metavar="TEXT", help="between several causes in one text cell"
    )


def column_words(args: argparse.Namespace) -> list[str]:
    """Return the given options for tables: readers of rows with the same columns need them."""
    found: list[str] = []
    for option in (*_COLUMNS, "time_unit", "separator"):
        given = getattr(args, option, None)  # not every command has each
        several = given if isinstance(given, list) else [] if given is None else [given]
        # One word each, so that a name that begins with a dash is none of an option.
        found += [f"--{option.replace('_', '-')}={value}" for value in several]
    if getattr(args, GROUP, None) is not None:
        found.append(f"--run={args.group}")  # other commands have no --group
    if getattr(args, "by", None) == SEQ:
        found.append(f"--by={SEQ}")
    return found


def one_way(options: ReadOptions) -> ReadOptions:
    """Return the options; raise InputError if they name both causes and clocks."""
    if {"clock", "causes"} <= options.columns.keys():
        raise InputError(
            "--after and --clock both say what came before what: give the one to go by"
        )
    return options


def read_options(args: argparse.Namespace) -> ReadOptions:
    """Return the readers' options from parsed arguments."""
    columns: dict[str, tuple[str, ...]] = {}
    for option, (name, _) in _COLUMNS.items():
        given = getattr(args, option, None)
        if given is not None:
            columns[name] = tuple(given) if isinstance(given, list) else (given,)
    group = getattr(args, GROUP, None)
    if group is not None:
        if "run" in columns:
            raise InputError("--group and --run both keep rows apart: give one of them")
        columns["run"] = (group,)
    return ReadOptions(
        regex=args.regex,
        delimiter=args.delimiter,
        columns=columns,
        time_unit=args.time_unit,
        separator=args.separator,
        needs_run=group is not None,
    )
