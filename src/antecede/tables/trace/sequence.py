"""Program order by sequence numbers: number n - 1 of a member is the cause of number n.

The rule is that of `antecede.tables.order.spec.OrderSpec(sender=, seq=)`. Numbers start at 1 or 0.
An event after a gap has two causes: the last number before the gap and the missing number. Only
the first event of a number counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow
import pyarrow.compute

from antecede.errors import InputError
from antecede.formatting import pluralize
from antecede.tables.trace.arrow import Trace
from antecede.tables.trace.evidence import SEQUENCE, SOURCE
from antecede.tables.trace.rows import conform, refuse
from antecede.tables.trace.schema import DELIVER, RECEIVE

pa: Any = pyarrow  # its stubs know too few kinds of arrays
pc: Any = pyarrow.compute
Ints = npt.NDArray[np.int64]

SEQ: Final = "seq"
GAPS, MISSING, REPEATED, OUT_OF_ORDER = (
    "number_gaps",
    "missing_numbers",
    "repeated_numbers",
    "out_of_order_numbers",
)
"""Names of details: gaps, missing numbers, repeated numbers, numbers after a higher one."""
NO_NUMBER = "no member or no number"
NEGATIVE = "a negative number"
TAKEN = "another event of the member has this number"
UNTOLD = "no event has a member and a number; give --member COLUMN and --seq COLUMN"


def by_sequence(trace: Trace) -> Trace:
    """Return the trace with each event's predecessor at its member as its cause.

    Events without a usable number are quarantined; `details` gets the causality source and counts.
    Raise InputError if no event has a member and a number. O(rows log rows).
    """
    events: Any = conform(trace.events)
    second_hand = pc.is_in(events["kind"], pa.array([RECEIVE, DELIVER])).to_numpy(False)
    known = pc.and_(pc.is_valid(events["member"]), pc.is_valid(events["seq"])).to_numpy(False)
    seq: Ints = pc.fill_null(events["seq"], -1).to_numpy()
    usable = known & (seq >= 0) & ~second_hand
    if not usable.any():
        raise InputError(UNTOLD)
    rows = np.flatnonzero(usable)
    line = _encode_column(events, "run") * (len(events) + 1) + _encode_column(events, "member")
    place: Ints = events["file_order"].to_numpy()
    rows = rows[np.lexsort((place[rows], seq[rows], line[rows]))]
    same_line = _equals_previous(line[rows])
    first = ~(same_line & _equals_previous(seq[rows]))
    stands_for = rows[first][np.cumsum(first) - 1]
    ids: list[Any] = events["id"].to_pylist()
    taken = np.array([ids[a] != ids[b] for a, b in zip(rows, stands_for, strict=True)], np.bool_)
    reasons: dict[int, str] = dict.fromkeys(rows[taken].tolist(), TAKEN)
    for row in np.flatnonzero(~usable & ~second_hand).tolist():
        reasons[row] = NEGATIVE if known[row] else NO_NUMBER
    before, gap, missing = _find_predecessors(rows[first], line, seq)
    causes: list[list[str]] = [[] for _ in ids]
    members: list[Any] = events["member"].to_pylist()
    for row, event in zip(rows.tolist(), stands_for.tolist(), strict=True):
        if before[event] >= 0:
            causes[row].append(ids[before[event]])
        if gap[event]:
            causes[row].append(f"{members[event]}:{seq[event] - 1}")
    events = events.set_column(
        events.column_names.index("causes"),
        events.schema.field("causes"),
        pa.array(causes, events.schema.field("causes").type),
    )
    kept = np.ones(len(events), np.bool_)
    bad = sorted(reasons)
    kept[bad] = False
    aside = refuse(events.take(pa.array(bad, pa.int64())), [reasons[row] for row in bad])
    for name in ("clock_members", "clock_counts"):  # otherwise clocks could become the source
        field = events.schema.field(name)
        nothing = pa.nulls(len(events), field.type)
        events = events.set_column(events.column_names.index(name), field, nothing)
    own: Any = trace.own
    counts: dict[str, int | str] = {
        GAPS: int(gap.sum()),
        MISSING: missing,
        REPEATED: int(taken.sum()),
        OUT_OF_ORDER: _count_out_of_order(line[usable], seq[usable], place[usable]),
    }
    return replace(
        trace,
        events=events.filter(pa.array(kept)),
        format="table",
        quarantine=pa.concat_tables([trace.quarantine, aside]),
        details=trace.details | counts | {SOURCE: SEQUENCE},
        own=None if own is None else own.filter(pa.array(kept)),
    )


def notes(details: Mapping[str, Any]) -> list[str]:
    """Return texts on gaps, repeated numbers and numbers out of order."""
    found = []
    if gaps := details.get(GAPS):
        numbers = pluralize(details[MISSING], "number")
        found.append(f"{pluralize(gaps, 'gap')} in the numbers of members: {numbers} missing")
    if count := details.get(REPEATED):
        found.append(f"{pluralize(count, 'event')} with the number of another event of the member")
    if count := details.get(OUT_OF_ORDER):
        found.append(f"{pluralize(count, 'number')} out of order, after a higher one of its member")
    return found


def steps_back(events: Any) -> int:
    """Return how many numbers follow a higher one of their member in the file."""
    known: Any = events.filter(
        pc.and_(pc.is_valid(events["member"]), pc.greater_equal(events["seq"], 0))
    )
    if not len(known):
        return 0
    line = _encode_column(known, "run") * (len(known) + 1) + _encode_column(known, "member")
    return _count_out_of_order(line, known["seq"].to_numpy(), known["file_order"].to_numpy())


def _count_out_of_order(line: Ints, seq: Ints, place: Ints) -> int:
    order = np.lexsort((place, line))
    line, seq = line[order], seq[order]
    return int(np.count_nonzero(_equals_previous(line)[1:] & (seq[1:] < seq[:-1])))


def _find_predecessors(
    rows: Ints, line: Ints, seq: Ints
) -> tuple[Ints, npt.NDArray[np.bool_], int]:
    """Return each row's predecessor (-1: none), a mask of gaps, and the number of missing ones."""
    before = np.full(len(line), -1, np.int64)
    gap = np.zeros(len(line), np.bool_)
    same = _equals_previous(line[rows])
    before[rows[same]] = rows[:-1][same[1:]]
    last = np.where(same, np.roll(seq[rows], 1), 0)
    missing = np.maximum(seq[rows] - last - 1, 0)
    # Number 0 is allowed and not required.
    gap[rows] = missing > 0
    return before, gap, int(missing.sum())


def _equals_previous(values: Any) -> npt.NDArray[np.bool_]:
    found = np.zeros(len(values), np.bool_)
    found[1:] = values[1:] == values[:-1]
    return found


def _encode_column(events: Any, name: str) -> Ints:
    """Return codes of the values of a column; 0 for null."""
    indices = events[name].combine_chunks().dictionary_encode().indices
    codes: Ints = pc.fill_null(indices.cast(pa.int64()), -1).to_numpy(False).astype(np.int64) + 1
    return codes
