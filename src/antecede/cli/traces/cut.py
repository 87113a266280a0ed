"""`antecede cut PATH A=300 B=310`: is this global state consistent, and what is under way in it."""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from antecede.cli.option_rules import excludes, needs
from antecede.cli.trace_options import add_read_arguments, read_options
from antecede.cli.traces.ask import WORDS
from antecede.errors import InputError
from antecede.formatting import counted
from antecede.tables import causality
from antecede.tables.trace import SOURCE, read

SHOWN: Final = 10

OPTION_RULES = (
    needs("most_states", "possibly", "definitely"),
    excludes("most", "json", why="JSON lists all"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede cut`."""
    add = parser.add_argument
    add_read_arguments(parser, text=True)
    add(
        "cut",
        nargs="*",
        metavar="MEMBER=POSITION",
        help="how many of a member's events are inside (vector clocks: its own entry); members "
        "that are not named have nothing inside",
    )
    add(
        "--by",
        choices=causality.WAYS,
        help="what tells what came before what; told by looking if not given",
    )
    add("--in-run", metavar="RUN", help="which run, where there are several")
    add(
        "--marked",
        metavar="TEXT",
        help="the cut behind each member's first event that says this, as `snapshot 1` in the "
        "trace of a simulated run; or contains it, where none says exactly this",
    )
    add(
        "--checkpoints",
        metavar="F",
        help="lines MEMBER,POSITION: where members saved their states. Tells where all can go on "
        "from, and who falls back for whom",
    )
    predicates = parser.add_argument_group("global states in which something holds (small traces)")
    predicates.add_argument(
        "--possibly",
        metavar="P",
        help="is there one? P as in: A >= 3 and 'granted' in B (the latest event of B says so)",
    )
    predicates.add_argument("--definitely", metavar="P", help="does every way pass one?")
    predicates.add_argument(
        "--most-states",
        type=int,
        default=causality.MOST_STATES,
        metavar="N",
        help=f"({causality.MOST_STATES:,})",
    )
    add("--most", type=int, default=SHOWN, metavar="N", help=f"things listed of a kind ({SHOWN})")
    add("--json", action="store_true", help="print all of it as JSON")


def run(args: argparse.Namespace) -> int:
    """Judge; 1 where the answer to one of the questions is no."""
    paths, positions = split_words([*args.paths, *args.cut])
    asked_for = (args.marked, args.checkpoints, args.possibly, args.definitely)
    if not positions and asked_for == (None, None, None, None):
        raise InputError("no cut: say MEMBER=POSITION for those that have something inside")
    if positions and args.marked is not None:
        raise InputError("--marked says where the cut is: leave out the positions, or it")
    if args.most < 1 or args.most_states < 1:
        raise InputError("--most and --most-states are 1 or more")
    asked = causality.Causality(read(paths, args.format, read_options(args)), by=args.by)
    states = causality.States(asked, args.in_run)
    answers: dict[str, Any] = {}
    if args.marked is not None:
        positions = states.find_marked_cut(args.marked)
        if silent := [name for name in states.members if name not in positions]:
            who = _list(silent, args.most)
            states.notes.append(f"never marked, so nothing of them is inside: {who}")
    if positions:
        answers["cut"] = states.cut(positions)
    if args.checkpoints is not None:
        answers["recovery"] = states.recovery(_checkpoints(Path(args.checkpoints)))
    for name, ask in (("possibly", causality.possibly), ("definitely", causality.definitely)):
        if (text := getattr(args, name)) is not None:
            answers[name] = ask(states, text, max_states=args.most_states)
    if args.json:
        print(json.dumps(_plain(states, asked, answers), indent=2, ensure_ascii=False))
    else:
        _print(args, states, asked, answers)
    verdict = answers.get("cut")
    no = (verdict is not None and not verdict.consistent) or any(
        isinstance(one, causality.PredicateResult) and not one.holds for one in answers.values()
    )
    return 1 if no else 0


def split_words(words: Sequence[str]) -> tuple[list[str], dict[str, int]]:
    """Return paths and positions. Raises InputError for a position that is no number, or two."""
    paths, cut = [words[0]], dict[str, int]()
    for word in words[1:]:
        member, sign, position = word.rpartition("=")
        if not sign or Path(word).exists():
            paths.append(word)
            continue
        if not position.isascii() or not position.isdecimal():
            raise InputError(f"{word}: a position is a whole number, 0 or more")
        if member in cut:
            raise InputError(f"{member} is given two positions")
        cut[member] = int(position)
    return paths, cut


def _checkpoints(path: Path) -> dict[str, list[int]]:
    """Read lines MEMBER,POSITION. Raises InputError with the line of what is none."""
    found: dict[str, list[int]] = {}
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            for number, row in enumerate(csv.reader(file), 1):
                if not row or (number == 1 and row[-1].strip().lower() == "position"):
                    continue
                position = row[-1].strip()
                if len(row) != 2 or not (position.isascii() and position.isdecimal()):
                    raise InputError("a checkpoint is MEMBER,POSITION", path=str(path), line=number)
                found.setdefault(row[0].strip(), []).append(int(position))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot be read: {error}", path=str(path)) from error
    return found


# -- in words ----------------------------------------------------------------------------------


def _print(
    args: argparse.Namespace,
    states: causality.States,
    asked: causality.Causality,
    answers: dict[str, Any],
) -> None:
    lines: dict[str, Callable[[Any], Iterator[str]]] = {
        "cut": lambda verdict: _of_cut(verdict, args.most, asked),
        "recovery": lambda found: _of_recovery(found, args.most),
        "possibly": lambda found: _of_predicate("possibly", args.possibly, found),
        "definitely": lambda found: _of_predicate("definitely", args.definitely, found),
    }
    for name, answer in answers.items():
        for line in lines[name](answer):
            print("".join(one if one.isprintable() else " " for one in line))
    if "cut" not in answers:
        print(f"Causality by {WORDS[asked.by]}")
    for note in states.notes:
        print(f"Note: {note}")


def _of_cut(verdict: causality.CutVerdict, most: int, asked: causality.Causality) -> Iterator[str]:
    word = "consistent" if verdict.consistent else "not consistent"
    yield f"{_state(verdict.cut)} is {word}, by {WORDS[asked.by]}"
    if verdict.proof:
        yield "  inside, and what came before it is outside:"
        yield from _some(
            [f"    {one.effect} follows {one.cause}" for one in verdict.proof], most, "    "
        )
        yield f"  the greatest consistent state at or below it: {_state(verdict.greatest)}"
        yield f"  the least at or above it: {_state(verdict.least)}"
    what = "sent inside, arriving outside" if asked.by != causality.CLOCKS else "known outside next"
    under_way = sum(len(one.ids) for one in verdict.channels)
    yield f"  in the channels, {what}: {counted(under_way, 'message') if under_way else 'nothing'}"
    yield from _some(
        [f"    {one.source} to {one.target}: {_list(one.ids, most)}" for one in verdict.channels],
        most,
        "    ",
    )
    if verdict.nowhere:
        lost = counted(verdict.nowhere, "message")
        yield f"  sent inside, and no arrival at another member is told: {lost}"


def _of_recovery(found: causality.Recovery, most: int) -> Iterator[str]:
    yield f"The last checkpoints: {_state(found.begin)}"
    if not found.steps:
        yield "  are a consistent state: all can go on from there"
        return
    yield from _some(
        [
            f"  {one.member} falls back from {one.start:,} to {one.end:,}: {one.why.effect} "
            f"follows {one.why.cause}, which is lost"
            for one in found.steps
        ],
        most,
        "  ",
    )
    yield f"  all can go on from {_state(found.line)}"
    lost = ", ".join(
        f"{name} {counted(count, 'checkpoint')}" for name, count in found.domino.items()
    )
    yield f"  lost on the way: {lost}"


def _of_predicate(name: str, text: str, found: causality.PredicateResult) -> Iterator[str]:
    looked = counted(found.states, "global state")
    if name == "definitely":
        word = "yes, every way passes one" if found.holds else "no, some way through avoids it"
        yield f"definitely {text}: {word} ({looked} looked at)"
    elif found.witness is not None:
        yield f"possibly {text}: yes, at {_state(found.witness)} ({looked} looked at)"
    else:
        yield f"possibly {text}: no, in none of {looked}"


def _state(cut: dict[str, int]) -> str:
    inside = [f"{name}={position:,}" for name, position in cut.items() if position]
    if not inside:
        return "the beginning (nothing inside)"
    rest = len(cut) - len(inside)
    more = f" ({counted(rest, 'other member')} at 0)" if rest else ""
    return " ".join(inside) + more


def _some(lines: Sequence[str], most: int, indent: str) -> Iterator[str]:
    yield from lines[:most]
    if len(lines) > most:
        yield f"{indent}... {len(lines) - most:,} more (--most, --json)"


def _list(ids: Sequence[str], most: int) -> str:
    more = f", ... ({len(ids):,} in all)" if len(ids) > most else ""
    return ", ".join(ids[:most]) + more


# -- as JSON -----------------------------------------------------------------------------------


def _plain(
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
