"""Global snapshots of the runs of `antecede simulate`, as lines and plain values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from antecede.core.oracle import Witness
from antecede.formatting import pluralize
from antecede.lab.simulate.outputs import RecordedState, Result

MOST: Final = 3


def snapshot_lines(results: Sequence[Result]) -> Iterator[tuple[str, str]]:
    """Yield a line for all runs, and for a single run a line per snapshot."""
    plan = results[0].config.snapshots
    if plan is None:
        return
    states = [one for result in results for one in result.snapshots]
    whole = [one for one in states if one.is_complete]
    checked = [one for one in states if one.contradictions is not None]
    wrong = sum(bool(one.contradictions) for one in checked)
    words = f"{plan.algorithm}: {len(whole):,} of {pluralize(len(states), 'snapshot')} complete"
    if checked:
        words += f", {wrong:,} of {len(checked):,} checked inconsistent"
    markers, size = sum(one.markers for one in states), sum(one.marker_bytes for one in states)
    words += f"; {pluralize(markers, 'copy', 'copies')} of markers, {size:,} B"
    stamps = sum(int(result.figures.get("snapshots.stamp_bytes", 0)) for result in results)
    yield "snapshots", words + (f", and {stamps:,} B on copies of messages" if stamps else "")
    if len(results) == 1:
        yield from (("", _describe_snapshot(one)) for one in states)


def _describe_snapshot(one: RecordedState) -> str:
    by = f"by {_some(one.initiators)} " if one.initiators else ""
    head = f"{one.number}: {by}at {one.started_s:g} s, "
    if one.completed_s is not None:
        kept = sum(map(len, one.channels.values()))
        content = pluralize(kept, "message") if kept else "nothing"
        span_ms = (one.completed_s - one.started_s) * 1000
        head += f"complete after {span_ms:,.1f} ms, {content} in channels"
    else:
        head += "incomplete" + _describe_reasons(one)
    return f"{head}; {_describe_verdict(one)}"


def _describe_reasons(one: RecordedState) -> str:
    reasons = []
    if one.unrecorded:
        reasons.append(f"no state of {_some(one.unrecorded)}")
    if one.rejected_markers:
        reasons.append(
            f"{pluralize(one.rejected_markers, 'marker')} out of order, or after a lost one"
        )
    if one.waiting:
        pairs = [f"{at} for {_some(others)}" for at, others in one.waiting.items()]
        reasons.append(f"still waiting {_some(pairs, '; ')}")
    return f" ({', '.join(reasons)})" if reasons else ""


def _describe_verdict(one: RecordedState) -> str:
    if one.contradictions is None:
        return "not checked"
    if not one.contradictions:
        return "consistent" if one.is_complete else "the recorded states are consistent"
    first = _some([_describe_witness(each) for each in one.contradictions], "; ")
    return f"inconsistent: {first}"


def _describe_witness(of: Witness) -> str:
    ends = " to ".join(one for one in (of.source, of.target) if one)
    return f"{of.id} ({ends}) {of.what}"


def _some(names: Sequence[str], between: str = ", ") -> str:
    more = f"{between}{len(names) - MOST:,} more" if len(names) > MOST else ""
    return between.join(names[:MOST]) + more


def plain_state(one: RecordedState) -> dict[str, Any]:
    """Return a snapshot as JSON values."""
    return {
        **{
            name: value
            for name, value in one._asdict().items()
            if name not in ("channels", "contradictions", "cut", "waiting")
        },
        "complete": one.is_complete,
        "cut": dict(one.cut),
        "waiting": {name: list(others) for name, others in one.waiting.items()},
        "channels": [
            {"from": ends.source, "to": ends.target, "messages": list(kept)}
            for ends, kept in one.channels.items()
        ],
        "consistent": None if one.contradictions is None else not one.contradictions,
        "contradictions": None
        if one.contradictions is None
        else [each._asdict() for each in one.contradictions],
    }
