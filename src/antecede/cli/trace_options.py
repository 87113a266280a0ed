"""Options of the readers, shared by all commands that read traces."""

from __future__ import annotations

import argparse

from antecede.errors import InputError
from antecede.tables.trace import SEQ, ReadOptions, names

_COLUMNS = {
    "id": ("id", "id of the event; repeat for the parts of an id"),
    "after": ("causes", "causes of the event; repeat for further columns, or parts as with --id"),
    "member": ("member", "member of the event (its sender)"),
    "seq": ("seq", "sequence number of the event at its member"),
    "time": ("send_time", "send time"),
    "arrival": ("arrival", "arrival time"),
    "clock": ("clock", "vector clock: a map, JSON or m:1,n:2"),
    "topic": ("topics", "topic of the event; repeat for further columns"),
    "run": ("run", "run (execution), where ids repeat across runs"),
    "text": ("text", "text of the event"),
}
GROUP = "group"
"""Option of commands that order or count by group; the other commands have `--run` only."""
_SEVERAL = ("id", "after", "topic")


def add_read_arguments(
    parser: argparse.ArgumentParser, *, text: bool = False, group: bool = False
) -> None:
    """Declare PATH..., --format and the options of the readers.

    `text`: the command shows texts of events; `group`: the command separates groups.
    """
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="file, folder, git repository or glob"
    )
    parser.add_argument(
        "--format", metavar="FORMAT", help=f"{', '.join(names())} (default: auto-detected)"
    )
    clocks = parser.add_argument_group("vector-clock logs (shiviz)")
    clocks.add_argument(
        "--regex", metavar="REGEX", help="pattern with the groups host, clock and event"
    )
    clocks.add_argument(
        "--run-delimiter",
        metavar="REGEX",
        help="pattern between runs; its group trace is the name of a run",
    )
    table = parser.add_argument_group(
        "columns of tables (default: by their usual names)",
        "COLUMN is a name, or a JMESPath expression on a row, such as \"tags[?[0]=='e'][1]\".",
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
            help="group: rows of different groups never wait for each other; like --run, but rows "
            "without a group are quarantined",
        )
    table.add_argument(
        "--time-unit",
        choices=("s", "ms", "us", "ns"),
        help="unit of numeric times (default: guessed by their size)",
    )
    table.add_argument(
        "--list-separator", metavar="TEXT", help="text between the causes in one cell"
    )


def column_words(args: argparse.Namespace) -> list[str]:
    """Return the given options for tables, for a further command on the same columns."""
    found: list[str] = []
    for option in (*_COLUMNS, "time_unit", "list_separator"):
        given = getattr(args, option, None)  # not all commands have all
        several = given if isinstance(given, list) else [] if given is None else [given]
        # One word each: a name may begin with a dash.
        found += [f"--{option.replace('_', '-')}={value}" for value in several]
    if getattr(args, GROUP, None) is not None:
        found.append(f"--run={args.group}")  # other commands have no --group
    if getattr(args, "by", None) == SEQ:
        found.append(f"--causality={SEQ}")
    return found


def check_one_source(options: ReadOptions) -> ReadOptions:
    """Return the options. Raise InputError if they name both causes and clocks."""
    if {"clock", "causes"} <= options.columns.keys():
        raise InputError("--after and --clock exclude each other: omit one of them")
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
            raise InputError("--group and --run exclude each other: omit one of them")
        columns["run"] = (group,)
    return ReadOptions(
        regex=args.regex,
        delimiter=args.run_delimiter,
        columns=columns,
        time_unit=args.time_unit,
        separator=args.list_separator,
        needs_run=group is not None,
    )
