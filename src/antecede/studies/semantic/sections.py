"""Parts of the study of Bhavanasi and Iyer: ordering lists, real threads, and the statements of the
text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from antecede.formatting import counted
from antecede.report.values import Claim, Plot, Row, Section, Series
from antecede.studies.frame.claims import Asked, Quantity, claim, lines, means, rows, table
from antecede.studies.frame.compare_paper import listed
from antecede.studies.frame.results import Results
from antecede.studies.frame.study import Run
from antecede.studies.semantic.grid import LABELS, TRACE_DELAY, USUAL

MOST_PLOTS = 6
HOW = (
    "Left out: the package has no data of others. `antecede study semantic --traces FILE ...` "
    "takes mailboxes (mbox), archives of mailing lists as JSON lines, and chat logs with annotated "
    "replies, and adds them to what is here."
)


# -- ordering lists ------------------------------------------------------------------------------


def list_section(results: Results) -> Section:
    """Return nodes of the ordering lists for the arrivals of VI.D.2, and for drawn ones."""
    extremes = results.of(kind="lists")
    members = results.along("members", kind="threads", **USUAL).by("members")
    asked = [
        *(one for run in extremes.runs for one in _extreme(run, extremes.figures(run))),
        *(one for n, at in members for one in means(at, DRAWN, f"drawn threads, {n} members")),
    ]
    plot = Plot(
        "semantic-nodes",
        "Nodes of the ordering lists while messages come",
        "messages received",
        "nodes, all lists",
        _node_lines(results),
        "29 senders (drawn threads: 30 members). Lines of the same figures lie on each other.",
        y_log=True,
    )
    excess = [(n, mean) for n, at in members if (mean := at.mean("nodes.excess")) is not None]
    said = listed([f"{mean:,.1f} with {n} members" for n, mean in excess])
    found = rows(asked)
    return Section(
        "Ordering lists and the store of held messages",
        f"Under drawn arrivals the lists go beyond a node a sender by at most {said}."
        if said
        else "",
        found,
        [plot],
        about="A node at best has 8 bytes a member, where a vector clock has 4.",
        reads=("nodes.excess",),
        claims=[_bound(row) for row in found if row.paper is not None],
    )


def _node_lines(results: Results) -> list[Series]:
    """Return the nodes of extreme arrivals, and of drawn threads at an observer."""
    found = {
        run.parameters["arrivals"]: results.figures(run)
        for run in results.where(kind="lists")
        if run.parameters["arrivals"] != "root last"  # nothing is delivered before the end
    }
    drawn = [
        Series(label, one["curve.received"], one["curve.nodes"]) for label, one in found.items()
    ]
    for run in results.where(kind="threads", **USUAL)[:1]:
        one, label = results.figures(run), "drawn threads, at an observer"
        drawn += above_zero([Series(label, one["curve.received"], one["curve.nodes"])])
    return drawn


BOUNDS = {
    "nodes, best case": ("a node a member at best", ("nodes.most",)),
    "nodes, worst case": ("a node a message at worst", ("nodes.half", "received.half")),
    "rows of the store, worst case": ("a store of all but the missing message", ("rows.most",)),
}


def _bound(row: Row) -> Claim:
    """Hold a bound of the text against the arrivals that reach it."""
    statement, reads = BOUNDS[row.quantity]
    return claim(
        f"the ordering lists have {statement}",
        row.figure,
        reads,
        (
            f"{row.ours:,.0f} {row.unit}, where the text's bound is {row.paper:,.0f}",
            row.ours == row.paper,
        ),
    )


DRAWN = (
    Quantity("nodes, most", "nodes.most", "nodes"),
    Quantity("nodes beyond one a sender, most", "nodes.excess", "nodes"),
    Quantity("rows of the store, most", "rows.most", "rows"),
    Quantity("S_b storage, mean", "storage_bytes", "bytes"),
)


def _extreme(run: Run, found: Mapping[str, Any]) -> list[Asked]:
    """Ask what the text bounds for these arrivals, and how much is stored."""
    arrivals, senders, each = (run.parameters[name] for name in ("arrivals", "senders", "each"))
    at = f"{arrivals}, {senders} senders, {each} messages each"
    most, held, half = (found[name] for name in ("nodes.most", "rows.most", "received.half"))
    early = f"after {half:,.0f} messages: one node each; {found['nodes.end']:,.0f} at the end"
    late = "all but the one that is missing; the text: bounded by the room only"
    bounded = {
        "in order": (
            Asked("nodes, best case", at, most, "nodes", float(senders)),
            Asked("rows of the store, best case", at, held, "rows", note="0 in the text"),
        ),
        "every second first": (
            Asked("nodes, worst case", at, found["nodes.half"], "nodes", half, note=early),
        ),
        "root last": (
            Asked(
                "rows of the store, worst case", at, held, "rows", senders * each - 1.0, note=late
            ),
        ),
    }
    own = [one._replace(where="VI.D.2") for one in bounded.get(arrivals, ())]
    stored = Asked("S_b storage, most", at, found["storage_bytes.most"], "bytes")
    return [*(own or [Asked("nodes, most", at, most, "nodes")]), stored]


# -- real threads --------------------------------------------------------------------------------


TRACE_COLUMNS = {
    "trace": "{0[trace]}",
    "median gap": "{0[gap]}",
    "messages": "{0[sent]:,.0f}",
    "authors": "{0[members]:,.0f}",
    "answers": "{0[answers]:.0%}",
    "to oneself": "{0[answers.own]:.0%}",
    "under way": "{0[under_way]:,.1f}",
    "held: S_b": "{0[sb.waited]:.1%}",
    "causal": "{0[causal.waited]:.1%}",
    "total": "{0[total.waited]:.1%}",
    "causal: longer than replies ask for": "{0[causal.longer]:.1%}",
    "nodes beyond one an author": "{0[nodes.excess]:,.0f}",
    "bytes: IDR": "{0[idr.bytes]:,.0f}",
    "bytes: BSS": "{0[bss.bytes]:,.0f}",
}


def trace_section(results: Results) -> Section:
    """Return waits and lists of real traces; without any, how to get them."""
    runs = [r for r in results.where(kind="trace") if "sb.wait_ms.mean" in results.figures(r)]
    if not runs:
        return Section("Real threads", "", about=HOW)
    found = [
        {**results.figures(r), "trace": _short(r.parameters["trace"]), "gap": _gap(r)} for r in runs
    ]
    asked = [
        Asked(
            f"{order} wait {name}",
            f"{one['trace']}, median gap {one['gap']}",
            one[f"{order}.wait_ms.{name}"],
            "ms",
        )
        for one in found
        for order in LABELS
        for name in ("mean", "p99")
    ]
    names = list(dict.fromkeys(run.parameters["trace"] for run in runs))[:MOST_PLOTS]
    plots = [_trace_plot(results, name, number) for number, name in enumerate(names)]
    return Section(
        "Real threads",
        _trace_finding(results, found),
        rows(asked),
        [plot for plot in plots if plot.series],
        **table(TRACE_COLUMNS, found),
        about="A series of patches leaves in the moment of the mail that it answers.",
        reads=("sb.wait_ms.mean", "causal.wait_ms.mean", "answers.own", "pairs.replies",
               "pairs.causal", "sb.bytes", "idr.bytes"),
    )  # fmt: skip


def _trace_finding(results: Results, found: Sequence[Mapping[str, Any]]) -> str:
    parts = parts_of_causal(found)
    if not parts:
        return "Nothing overlaps: no order waits."
    drawn = parts_of_causal(
        [results.figures(run) for run in results.where(kind="threads", **USUAL)]
    )
    beside = f" (drawn threads: {min(drawn):.1%})" if drawn else ""
    own, sb = [one["answers.own"] for one in found], [one["sb.bytes"] for one in found]
    less = sum(one["idr.bytes"] + 8 < one["sb.bytes"] for one in found)
    return (
        f"Where messages overlap, S_b waits {min(parts):.0%} to {max(parts):.0%} of what causal "
        f"order waits{beside}. Of the answers, {min(own):.0%} to {max(own):.0%} are to a message "
        f"of one's own. {_part(found, 'pairs.replies', 'pairs.causal'):.2%} of the causal pairs "
        f"are replies, direct or not. S_b carries {min(sb):.0f} to {max(sb):.0f} bytes a message; "
        f"IDR, its own id (8 bytes) counted, less than S_b in {less} of "
        f"{counted(len(found), 'case')}."
    )


def parts_of_causal(found: Iterable[Mapping[str, Any]]) -> list[float]:
    """Return by run which part of causal order's mean wait S_b has; none where nothing waits."""
    named = [(one.get("sb.wait_ms.mean"), one.get("causal.wait_ms.mean")) for one in found]
    return [sb / causal for sb, causal in named if sb is not None and causal]


def _short(name: str) -> str:
    """Return the name of a trace without what its kind of file is called."""
    return re.sub(r"\.(jsonl|mbox|annotation|ascii|raw|txt|gz)(?=\.|$| )", "", name)


def _gap(run: Run) -> str:
    ms = run.parameters["gap_ms"]
    return f"{ms / 1000:g} s" if ms >= 1000 else f"{ms:g} ms"


def _trace_plot(results: Results, name: str, number: int) -> Plot:
    drawn = [Quantity(label, f"{order}.wait_ms.mean") for order, label in LABELS.items()]
    return Plot(
        f"semantic-trace-{number + 1}",
        f"Mean wait, {_short(name)}",
        "median gap between messages, ms",
        "mean wait, ms",
        above_zero(lines(results.of(kind="trace", trace=name), "gap_ms", drawn)),
        f"Delays {TRACE_DELAY}. Logarithmic; what never waits has no point.",
        x_log=True,
        y_log=True,
    )


def above_zero(drawn: Sequence[Series]) -> list[Series]:
    """Return the lines with the points that a logarithmic axis has room for."""
    kept = [[at for at, value in enumerate(line.y) if value > 0] for line in drawn]
    return [
        line._replace(
            x=[line.x[k] for k in there],
            y=[line.y[k] for k in there],
            spread=[line.spread[k] for k in there] if line.spread else (),
        )
        for line, there in zip(drawn, kept, strict=True)
        if there
    ]


# -- statements ----------------------------------------------------------------------------------


HELD_BACK = {
    "copies that S_b holds back": "sb.waited",
    "copies that causal order holds back": "causal.waited",
    "copies that total order holds back": "total.waited",
    "replies that a sequencer numbers before what they answer": "sequencer.inverted",
}
SPAN = {"figure": "{0[0]}", "least": "{0[1]:.2%}", "most": "{0[2]:.2%}"}


def said_section(results: Results) -> Section | None:
    """Return what the text says of costs, and what the runs say to it."""
    runs = [*results.where(kind="threads"), *results.where(kind="trace")]
    found = [one for run in runs if "sb.wait_ms.mean" in (one := results.figures(run))]
    if not found:
        return None
    values = {words: [one[name] for one in found] for words, name in HELD_BACK.items()}
    inverted = max(one["sequencer.inverted"] for one in found)
    return Section(
        "What Bhavanasi and Iyer state",
        "",
        **table(SPAN, [(words, min(of), max(of)) for words, of in values.items()]),
        about="The text proves and bounds, and measures nothing.",
        claims=[
            _unrelated(results.values("sb.waited", answers=0.0)),
            _less(found),
            _subset(found),
            claim(
                "total order is inadequate for threads (here: one that numbers by arrival puts "
                "replies before what they answer)",
                "II",
                ("sequencer.inverted",),
                (f"up to {inverted:.1%} of a run's replies", inverted > 0),
            ),
        ],
    )


def _unrelated(never: Sequence[float]) -> Claim:
    """Hold that what answers nothing waits for nothing."""
    return claim(
        "a later message is not blocked by an earlier one that it is unrelated to",
        "abstract, I",
        ("sb.waited",),
        (f"without answers S_b holds back up to {max(never):.2%} of the copies", not any(never))
        if never
        else None,
    )


def _less(found: Sequence[Mapping[str, Any]]) -> Claim:
    names = [f"{order}.wait_ms.mean" for order in ("sb", "causal", "total")]
    order = sum(one[names[0]] <= one[names[1]] <= one[names[2]] for one in found)
    return claim(
        "the delivery delay is less than under causal and total order (here: no longer)",
        "abstract, I",
        names,
        (f"so in {order:,} of {counted(len(found), 'run')}, in the mean", order == len(found)),
    )


def _subset(found: Sequence[Mapping[str, Any]]) -> Claim:
    """Hold that replies are causal pairs: fewer of them in every run; the converse does not."""
    kept = sum(one["pairs.replies"] <= one["pairs.causal"] for one in found)
    said = (
        f"no more pairs in {kept:,} of {counted(len(found), 'run')}; "
        f"{_part(found, 'pairs.replies', 'pairs.causal'):.2%} of the causal pairs of all runs are "
        "replies, direct or not"
    )
    return claim(
        "what is before by S_b is before by happened-before",
        "III.B.1",
        ("pairs.replies", "pairs.causal"),
        (said, kept == len(found)),
    )


def _part(found: Sequence[Mapping[str, Any]], above: str, below: str) -> float:
    total = sum(one[below] for one in found)
    return sum(one[above] for one in found) / total if total else 0.0
