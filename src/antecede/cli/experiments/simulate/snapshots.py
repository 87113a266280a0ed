"""Snapshots of the runs of `antecede simulate`, in lines and as plain values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from antecede.core.oracle import Witness
from antecede.formatting import counted
from antecede.lab.simulate.outputs import RecordedState, Result

MOST: Final = 3


def snapshot_lines(results: Sequence[Result]) -> Iterator[tuple[str, str]]:
    """Yield a line over all runs, and of a single run one for each of its snapshots."""
    plan = results[0].scenario.snapshots
    if plan is None:
        return
    states = [one for result in results for one in result.snapshots]
    whole = [one for one in states if one.is_complete]
    judged = [one for one in states if one.contradictions is not None]
    wrong = sum(bool(one.contradictions) for one in judged)
    words = f"{plan.algorithm}: {len(whole):,} of {counted(len(states), 'snapshot')} complete"
    if judged:
        words += f", {wrong:,} of {len(judged):,} that could be judged not consistent"
    markers, size = sum(one.markers for one in states), sum(one.marker_bytes for one in states)
    words += f"; {counted(markers, 'copy', 'copies')} of markers, {size:,} B"
    stamps = sum(int(result.figures.get("snapshots.stamp_bytes", 0)) for result in results)
    yield "snapshots", words + (f", and {stamps:,} B on copies of messages" if stamps else "")
    if len(results) == 1:
        yield from (("", _of(one)) for one in states)


def _of(one: RecordedState) -> str:
    by = f"by {_some(one.initiators)} " if one.initiators else ""
    head = f"{one.number}: {by}at {one.started_s:g} s, "
    if one.completed_s is not None:
        kept = sum(map(len, one.channels.values()))
        content = counted(kept, "message") if kept else "nothing"
        span_ms = (one.completed_s - one.started_s) * 1000
        head += f"complete after {span_ms:,.1f} ms, {content} under way"
    else:
        head += "never complete" + _why(one)
    return f"{head}; {_verdict(one)}"


def _why(one: RecordedState) -> str:
    said = []
    if one.unrecorded:
        said.append(f"no state of {_some(one.unrecorded)}")
    if one.rejected_markers:
        said.append(f"{counted(one.rejected_markers, 'marker')} out of order, or behind a lost one")
    if one.waiting:
        pairs = [f"{at} for {_some(others)}" for at, others in one.waiting.items()]
        said.append(f"still waiting {_some(pairs, '; ')}")
    return f" ({', '.join(said)})" if said else ""


def _verdict(one: RecordedState) -> str:
    if one.contradictions is None:
        return "not judged"
    if not one.contradictions:
        return "consistent" if one.is_complete else "the states alone are consistent"
    first = _some([_witness(each) for each in one.contradictions], "; ")
    return f"not consistent: {first}"


def _witness(of: Witness) -> str:
    ends = " to ".join(one for one in (of.source, of.target) if one)
    return f"{of.id} ({ends}) {of.what}"


def _some(names: Sequence[str], between: str = ", ") -> str:
    more = f"{between}{len(names) - MOST:,} more" if len(names) > MOST else ""
    return between.join(names[:MOST]) + more


def plain_state(one: RecordedState) -> dict[str, Any]:
    """Return a snapshot for JSON."""
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
