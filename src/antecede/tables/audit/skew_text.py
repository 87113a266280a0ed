"""Text of clock skew; see `antecede.tables.audit.skew`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from antecede.formatting import pluralize, table
from antecede.tables.audit.skew import STARTS

SHOWN_PAIRS = 8
SHOWN_SHIFTS = 4
SHOWN_BOUNDS = 4
_UNITS = ((10**3, 1, "ns"), (10**6, 10**3, "µs"), (10**10, 10**6, "ms"), (None, 10**9, "s"))


def skew_findings(skew: Mapping[str, Any], events: str = "spans") -> Iterator[tuple[str, str]]:
    """Yield (what, advice) on wrong clocks; `events`: noun of events."""
    one = events.removesuffix("s")
    pairs = skew["pairs"]
    wrong = [pair for pair in pairs if pair["violations"]]
    if wrong:
        count = sum(pair["violations"] for pair in wrong)
        what = (
            f"the clocks of {len(wrong):,} of {len(pairs):,} connected pairs of processes differ: "
            f"{count:,} {f'{one} lies' if count == 1 else f'{events} lie'} outside the bounds of "
            f"causes{_describe_worst(skew.get('worst'))}"
        )
        if skew["consistent"]:
            yield (
                f"{what}; {_describe_shifts(skew)}",
                "timestamps are not changed: order by causes, not by timestamps",
            )
        else:
            yield f"{what}; no constant shifts explain them all", _describe_contradiction(skew)
    if count := skew["violations_within_a_process"]:
        yield (
            f"{count:,} {f'{one} precedes' if count == 1 else f'{events} precede'} a cause in "
            "the same process: no clock shift explains that",
            "a clock stepped back, or a time was taken late",
        )


def format_pairs(skew: Mapping[str, Any]) -> str | None:
    """Return the table of pairs that need a shift; None without connected processes."""
    pairs: Sequence[Mapping[str, Any]] = skew["pairs"]
    if not pairs:
        return None
    chosen = [pair for pair in pairs if pair["violations"]]
    if not chosen:
        of = pluralize(len(pairs), "pair")
        return f"Clocks: {of} of processes connected, no shift needed (bounds in --json)"
    rows = [
        (
            f"{pair['of']} against {pair['against']}",
            "none" if pair["least_shift_ns"] is None else format_offset(pair["least_shift_ns"]),
            format_offset(pair["lower_ns"]),
            format_offset(pair["upper_ns"]),
            f"{pair['violations']:,} of {pair['edges']:,}",
        )
        for pair in chosen[:SHOWN_PAIRS]
    ]
    header = ("Clocks: a shift of", "least", "from", "to", "violated")
    more = len(pairs) - len(rows)
    rest = f"\n{pluralize(more, 'more pair')} in --json" if more else ""
    return table(header, rows, indent="") + rest


def format_offset(time_ns: int | None) -> str:
    """Return a signed time with at most three decimals, as in "+65.441 ms"."""
    if time_ns is None:
        return "any"
    if time_ns == 0:
        return "0"
    _, size, unit = next(u for u in _UNITS if u[0] is None or abs(time_ns) < u[0])
    return f"{time_ns / size:+,.3f}".rstrip("0").rstrip(".") + f" {unit}"


def _describe_worst(worst: Mapping[str, Any] | None) -> str:
    if worst is None:
        return ""
    return (
        f" (at worst {worst['effect']} of {worst['of']}, {format_offset(worst['early_ns'])[1:]} "
        f"before its cause {worst['cause']} of {worst['against']})"
    )


def _describe_shifts(skew: Mapping[str, Any]) -> str:
    hosts = skew["hosts"]
    fewest = "the fewest that explain it" if skew["minimal"] else "not known to be the fewest"
    if len(hosts) > SHOWN_SHIFTS:
        return (
            f"shifts of {len(hosts):,} processes by at most "
            f"{format_offset(abs(hosts[0]['shift_ns']))[1:]} explain them all ({fewest})"
        )
    shown = ", ".join(
        f"{one['host']} by {format_offset(one['shift_ns'])}{_describe_range(one)}" for one in hosts
    )
    if not skew["minimal"]:
        return f"shifting {shown} explains all of it ({fewest})"
    if others := skew["other_choices"]:
        also = "so does another choice" if others == 1 else f"so do {others:,} other choices"
        return f"shifting {shown} explains all of it; {also} of as many processes"
    return f"shifting {shown} explains all of it"


def _describe_range(host: Mapping[str, Any]) -> str:
    low, high = host["from_ns"], host["to_ns"]
    if low == high:
        return ""
    if high is None:
        return (
            f" or more (at least {format_offset(low)})" if low != host["shift_ns"] else " or more"
        )
    if low is None:
        return (
            f" or less (at most {format_offset(high)})" if high != host["shift_ns"] else " or less"
        )
    return f" ({format_offset(low)} to {format_offset(high)})"


def _describe_contradiction(skew: Mapping[str, Any]) -> str:
    bounds = skew["contradiction"]
    shown = [
        f"{bound['of']} {'at least' if bound['rule'] == STARTS else 'at most'} "
        f"{format_offset(bound.get('least_ns', bound.get('most_ns')))} against {bound['against']} "
        f"({bound['child']})"
        for bound in bounds[:SHOWN_BOUNDS]
    ]
    more = len(bounds) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "") + ": drift, or a step?"
