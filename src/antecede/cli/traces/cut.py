"""`antecede cut PATH A=300 B=310`: consistency of a cut, channel states, recovery lines."""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from antecede.cli.option_rules import excludes, needs
from antecede.cli.trace_options import add_read_arguments, read_options
from antecede.cli.traces.ask import CAUSALITY, SOURCE_TEXTS
from antecede.errors import InputError
from antecede.formatting import pluralize
from antecede.tables import causality
from antecede.tables.trace import SOURCE, read

SHOWN: Final = 10

OPTION_RULES = (
    needs("max_states", "possibly", "definitely"),
    excludes("limit", "json", why="JSON lists all"),
)
EPILOG = """\
A predicate compares positions and texts, such as "A >= 3 and 'granted' in B",
where 'granted' is in the text of B's latest event.
Example: antecede cut trace.csv A=300 B=310
Exit code: 1 if the cut is inconsistent or a predicate does not hold, else 0.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede cut`."""
    add = parser.add_argument
    add_read_arguments(parser, text=True)
    add(
        "cut",
        nargs="*",
        metavar="MEMBER=POSITION",
        help="number of a member's events inside the cut, or its vector clock entry (default: 0)",
    )
    add("--causality", choices=causality.WAYS, help=CAUSALITY)
    add("--run-id", metavar="RUN", help="run of the cut, if there are several")
    add(
        "--marker",
        metavar="TEXT",
        help="cut after each member's first event with this text, such as 'snapshot 1' in the "
        "trace of a simulation",
    )
    add(
        "--checkpoints",
        metavar="FILE",
        help="lines MEMBER,POSITION of saved states; the recovery line and rollbacks are printed",
    )
    predicates = parser.add_argument_group("predicates on global states (small traces)")
    predicates.add_argument(
        "--possibly", metavar="PREDICATE", help="predicate that holds in some global state"
    )
    predicates.add_argument(
        "--definitely", metavar="PREDICATE", help="predicate that holds on every path of states"
    )
    predicates.add_argument(
        "--max-states",
        type=int,
        default=causality.MOST_STATES,
        metavar="N",
        help=f"limit of the search, global states (default: {causality.MOST_STATES:,})",
    )
    add(
        "--limit",
        type=int,
        default=SHOWN,
        metavar="N",
        help=f"entries to print in each list (default: {SHOWN})",
    )
    add("--json", action="store_true", help="print all results as JSON")


def run(args: argparse.Namespace) -> int:
    """Print the results; return 1 if a cut is not consistent or a predicate does not hold."""
    paths, positions = split_words([*args.paths, *args.cut])
    requested = (args.marker, args.checkpoints, args.possibly, args.definitely)
    if not positions and requested == (None, None, None, None):
        raise InputError("no cut given: add MEMBER=POSITION, --marker or --checkpoints")
    if positions and args.marker is not None:
        raise InputError("--marker and MEMBER=POSITION exclude each other: omit one of them")
    for option, value in (("--limit", args.limit), ("--max-states", args.max_states)):
        if value < 1:
            raise InputError(f"{option} {value}: expected 1 or more")
    asked = causality.Causality(read(paths, args.format, read_options(args)), by=args.causality)
    states = causality.States(asked, args.run_id)
    answers: dict[str, Any] = {}
    if args.marker is not None:
        positions = states.find_marked_cut(args.marker)
        if unmarked := [name for name in states.members if name not in positions]:
            names = _list(unmarked, args.limit)
            states.notes.append(f"members without the marker, with no event inside: {names}")
    if positions:
        answers["cut"] = states.cut(positions)
    if args.checkpoints is not None:
        answers["recovery"] = states.recovery(_read_checkpoints(Path(args.checkpoints)))
    for name, ask in (("possibly", causality.possibly), ("definitely", causality.definitely)):
        if (text := getattr(args, name)) is not None:
            answers[name] = ask(states, text, max_states=args.max_states)
    if args.json:
        print(json.dumps(_to_values(states, asked, answers), indent=2, ensure_ascii=False))
    else:
        _print(args, states, asked, answers)
    verdict = answers.get("cut")
    is_no = (verdict is not None and not verdict.consistent) or any(
        isinstance(one, causality.PredicateResult) and not one.holds for one in answers.values()
    )
    return 1 if is_no else 0


def split_words(words: Sequence[str]) -> tuple[list[str], dict[str, int]]:
    """Return paths and positions. Raise InputError for an invalid or repeated position."""
    paths, cut = [words[0]], dict[str, int]()
    for word in words[1:]:
        member, sign, position = word.rpartition("=")
        if not sign or Path(word).exists():
            paths.append(word)
            continue
        if not position.isascii() or not position.isdecimal():
            raise InputError(f"{word}: expected MEMBER=POSITION with a whole number, 0 or more")
        if member in cut:
            raise InputError(f"{word}: second position of {member}; give one")
        cut[member] = int(position)
    return paths, cut


def _read_checkpoints(path: Path) -> dict[str, list[int]]:
    """Return the positions of each member in lines MEMBER,POSITION. Raise InputError."""
    found: dict[str, list[int]] = {}
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            for number, row in enumerate(csv.reader(file), 1):
                if not row or (number == 1 and row[-1].strip().lower() == "position"):
                    continue
                position = row[-1].strip()
                if len(row) != 2 or not (position.isascii() and position.isdecimal()):
                    message = "--checkpoints: expected MEMBER,POSITION"
                    raise InputError(message, path=str(path), line=number)
                found.setdefault(row[0].strip(), []).append(int(position))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"--checkpoints: cannot be read: {error}", path=str(path)) from error
    return found


# -- text --------------------------------------------------------------------------------------


def _print(
    args: argparse.Namespace,
    states: causality.States,
    asked: causality.Causality,
    answers: dict[str, Any],
) -> None:
    lines: dict[str, Callable[[Any], Iterator[str]]] = {
        "cut": lambda verdict: _describe_cut(verdict, args.limit, asked),
        "recovery": lambda found: _describe_recovery(found, args.limit),
        "possibly": lambda found: _describe_predicate("possibly", args.possibly, found),
        "definitely": lambda found: _describe_predicate("definitely", args.definitely, found),
    }
    for name, answer in answers.items():
        for line in lines[name](answer):
            print("".join(one if one.isprintable() else " " for one in line))
    if "cut" not in answers:
        print(f"Causality by {SOURCE_TEXTS[asked.by]}")
    for note in states.notes:
        print(f"Note: {note}")


def _describe_cut(
    verdict: causality.CutVerdict, most: int, asked: causality.Causality
) -> Iterator[str]:
    word = "consistent" if verdict.consistent else "not consistent"
    yield f"{_state(verdict.cut)} is {word}, by {SOURCE_TEXTS[asked.by]}"
    if verdict.proof:
        yield "  events inside whose cause is outside:"
        yield from _some(
            [f"    {one.effect} follows {one.cause}" for one in verdict.proof], most, "    "
        )
        yield f"  greatest consistent cut within it: {_state(verdict.greatest)}"
        yield f"  least consistent cut around it: {_state(verdict.least)}"
    what = "sent inside, received outside" if asked.by != causality.CLOCKS else "known outside next"
    in_transit = sum(len(one.ids) for one in verdict.channels)
    messages = pluralize(in_transit, "message") if in_transit else "nothing"
    yield f"  in the channels, {what}: {messages}"
    yield from _some(
        [f"    {one.source} to {one.target}: {_list(one.ids, most)}" for one in verdict.channels],
        most,
        "    ",
    )
    if verdict.nowhere:
        lost = pluralize(verdict.nowhere, "message")
        yield f"  sent inside, without an arrival in the trace: {lost}"


def _describe_recovery(found: causality.Recovery, most: int) -> Iterator[str]:
    yield f"Last checkpoints: {_state(found.begin)}"
    if not found.steps:
        yield "  they are consistent: no rollback is needed"
        return
    yield from _some(
        [
            f"  {one.member} rolls back from {one.start:,} to {one.end:,}: {one.why.effect} "
            f"follows {one.why.cause}, which is lost"
            for one in found.steps
        ],
        most,
        "  ",
    )
    yield f"  recovery line: {_state(found.line)}"
    lost = ", ".join(
        f"{name} {pluralize(count, 'checkpoint')}" for name, count in found.domino.items()
    )
    yield f"  lost by the domino effect: {lost}"


def _describe_predicate(name: str, text: str, found: causality.PredicateResult) -> Iterator[str]:
    looked = pluralize(found.states, "global state")
    if name == "definitely":
        word = "yes, on every path" if found.holds else "no, some path avoids it"
        yield f"definitely {text}: {word} ({looked} explored)"
    elif found.witness is not None:
        yield f"possibly {text}: yes, at {_state(found.witness)} ({looked} explored)"
    else:
        yield f"possibly {text}: no, in none of {looked}"


def _state(cut: dict[str, int]) -> str:
    inside = [f"{name}={position:,}" for name, position in cut.items() if position]
    if not inside:
        return "the beginning (nothing inside)"
    rest = len(cut) - len(inside)
    more = f" ({pluralize(rest, 'other member')} at 0)" if rest else ""
    return " ".join(inside) + more


def _some(lines: Sequence[str], most: int, indent: str) -> Iterator[str]:
    yield from lines[:most]
    if len(lines) > most:
        yield f"{indent}... {len(lines) - most:,} more (--limit, --json)"


def _list(ids: Sequence[str], most: int) -> str:
    more = f", ... ({len(ids):,} in all)" if len(ids) > most else ""
    return ", ".join(ids[:most]) + more


# -- JSON --------------------------------------------------------------------------------------


def _to_values(
    states: causality.States, asked: causality.Causality, answers: dict[str, Any]
) -> dict[str, Any]:
    found: dict[str, Any] = {"by": asked.by, SOURCE: asked.source, "last": states.length}
    for name, answer in answers.items():
        found[name] = _as_dict(answer)
    if (verdict := answers.get("cut")) is not None:
        found["cut"]["consistent"] = verdict.consistent
    return found | {"notes": states.notes}


def _as_dict(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {name: _as_dict(one) for name, one in value._asdict().items()}
    if isinstance(value, tuple | list):
        return [_as_dict(one) for one in value]
    return value
