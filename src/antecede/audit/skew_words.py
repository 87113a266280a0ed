"""What the clocks of processes allow, in words: see `antecede.audit.skew`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from antecede.audit.skew import STARTS
from antecede.words import table

SHOWN_PAIRS = 8
SHOWN_SHIFTS = 4
SHOWN_BOUNDS = 4
_UNITS = ((10**3, 1, "ns"), (10**6, 10**3, "µs"), (10**10, 10**6, "ms"), (None, 10**9, "s"))


def findings(skew: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the clocks, and what it means."""
    pairs = skew["pairs"]
    wrong = [pair for pair in pairs if pair["violations"]]
    if wrong:
        count = sum(pair["violations"] for pair in wrong)
        what = (
            f"the clocks of {len(wrong):,} of {len(pairs):,} connected pairs of processes differ: "
            f"{count:,} {'span lies' if count == 1 else 'spans lie'} outside what the cause allows"
        )
        if skew["consistent"]:
            yield (
                f"{what}; {_shifts(skew)}",
                "time stamps stay as they are: order by cause, not by them",
            )
        else:
            yield f"{what}; no constant shifts explain them all", _contradiction(skew)
    if count := skew["violations_within_a_process"]:
        yield (
            f"{count:,} {'span starts' if count == 1 else 'spans start'} before a parent in the "
            "same process: no shift of clocks explains that",
            "a clock that steps back, or a time that was taken late",
        )


def pair_table(skew: Mapping[str, Any]) -> str | None:
    """Return the pairs that need a shift, in a table; None if no two processes are connected."""
    pairs: Sequence[Mapping[str, Any]] = skew["pairs"]
    if not pairs:
        return None
    chosen = [pair for pair in pairs if pair["violations"]]
    if not chosen:
        of = "1 pair" if len(pairs) == 1 else f"{len(pairs):,} pairs"
        return f"Clocks: {of} of processes connected, no shift needed (bounds in --json)"
    rows = [
        (
            f"{pair['of']} against {pair['against']}",
            "none" if pair["least_shift_ns"] is None else offset(pair["least_shift_ns"]),
            offset(pair["lower_ns"]),
            offset(pair["upper_ns"]),
            f"{pair['violations']:,} of {pair['edges']:,}",
        )
        for pair in chosen[:SHOWN_PAIRS]
    ]
    header = ("Clocks: a shift of", "least", "from", "to", "violated")
    more = len(pairs) - len(rows)
    rest = f"\n{more:,} more {'pair' if more == 1 else 'pairs'} in --json" if more else ""
    return table(header, rows, indent="") + rest


def offset(time_ns: int | None) -> str:
    """Return a signed time with at most three digits after the point, as in "+65.441 ms"."""
    if time_ns is None:
        return "any"
    if time_ns == 0:
        return "0"
    _, size, unit = next(u for u in _UNITS if u[0] is None or abs(time_ns) < u[0])
    return f"{time_ns / size:+,.3f}".rstrip("0").rstrip(".") + f" {unit}"


def _shifts(skew: Mapping[str, Any]) -> str:
    shifts = sorted(skew["shifts_ns"].items(), key=lambda item: (-abs(item[1]), item[0]))
    if len(shifts) > SHOWN_SHIFTS:
        return (
            f"shifts of {len(shifts):,} processes by at most {offset(abs(shifts[0][1]))[1:]} "
            "explain them all"
        )
    shown = ", ".join(f"{name} by {offset(shift)}" for name, shift in shifts)
    return f"shifting {shown} explains all of it"


def _contradiction(skew: Mapping[str, Any]) -> str:
    bounds = skew["contradiction"]
    shown = [
        f"{bound['of']} {'at least' if bound['rule'] == STARTS else 'at most'} "
        f"{offset(bound.get('least_ns', bound.get('most_ns')))} against {bound['against']} "
        f"({bound['child']})"
        for bound in bounds[:SHOWN_BOUNDS]
    ]
    more = len(bounds) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "") + ": drift, or a step?"
