"""Parts of the study of Bhavanasi and Iyer: ordering lists, real threads, and the statements of the
text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from antecede.studies.frame.compare_paper import listed
from antecede.studies.frame.findings import Claim, Plot, Row, Section, Series
from antecede.studies.frame.results import Results
from antecede.studies.frame.study import Run
from antecede.studies.semantic.grid import TRACE_DELAY, USUAL

MOST_PLOTS = 6
HOW = (
    "Left out: the package has no data of others. `antecede study semantic --traces FILE ...` "
    "takes mailboxes (mbox), archives of mailing lists as JSON lines, and chat logs with annotated "
    "replies, and adds them to what is here."
)


# -- ordering lists ------------------------------------------------------------------------------


def list_section(results: Results) -> Section | None:
    """Return nodes of the ordering lists for the arrivals of VI.D.2, and for drawn ones."""
    rows = list(_list_rows(results))
    if not rows:
        return None
    lines = [
        Series(
            run.parameters["arrivals"],
            results.figures(run)["curve.received"],
            results.figures(run)["curve.nodes"],
        )
        for run in results.where(kind="lists")
        if run.parameters["arrivals"] != "root last"  # nothing is delivered before the end
    ]
    usual = results.where(kind="threads", **USUAL)
    if usual:
        figures = results.figures(usual[0])
        received, nodes = figures["curve.received"], figures["curve.nodes"]
        there = [at for at, value in enumerate(nodes) if value > 0]
        label = "drawn threads, at an observer"
        lines.append(Series(label, [received[k] for k in there], [nodes[k] for k in there]))
    plot = Plot(
        "semantic-nodes",
        "Nodes of the ordering lists while messages come",
        "messages received",
        "nodes, all lists",
        lines,
        "29 senders (drawn threads: 30 members). Lines of the same figures lie on each other.",
        y_log=True,
    )
    return Section(
        "Ordering lists and the store of held messages",
        _list_finding(results),
        rows,
        [plot],
        about="A node at best has 8 bytes a member, where a vector clock has 4.",
        reads=("nodes.excess",) if _list_finding(results) else (),
        claims=[_bound(row) for row in rows if row.paper is not None],
    )


BOUNDS = {
    "nodes, best case": ("a node a member at best", ("nodes.most",)),
    "nodes, worst case": ("a node a message at worst", ("nodes.half", "received.half")),
    "rows of the store, worst case": ("a store of all but the missing message", ("rows.most",)),
}


def _bound(row: Row) -> Claim:
    """Hold a bound of the text against the arrivals that reach it."""
    statement, reads = BOUNDS[row.quantity]
    return Claim(
        f"the ordering lists have {statement}",
        row.figure,
        f"{row.ours:,.0f} {row.unit}, where the text's bound is {row.paper:,.0f}",
        row.ours == row.paper,
        reads,
    )


def _list_finding(results: Results) -> str:
    """Tell how far lists of drawn threads go beyond a node a sender."""
    found = [
        (members, spread.mean)
        for members in sorted({run.parameters["members"] for run in _by_members(results)})
        if (spread := results.spread(
            "nodes.excess", **{"kind": "threads", **USUAL, "members": members}))
    ]  # fmt: skip
    if not found:
        return ""
    words = [f"{excess:,.1f} with {members} members" for members, excess in found]
    return f"Under drawn arrivals the lists go beyond a node a sender by at most {listed(words)}."


def _list_rows(results: Results) -> Iterator[Row]:
    text = "VI.D.2"
    for run in results.where(kind="lists"):
        found, arrivals = results.figures(run), run.parameters["arrivals"]
        senders, each = run.parameters["senders"], run.parameters["each"]
        where = f"{arrivals}, {senders} senders, {each} messages each"
        best = float(senders)
        if arrivals == "in order":
            yield Row(text, "nodes, best case", where, best, found["nodes.most"], "nodes")
            yield Row(text, "rows of the store, best case", where, None, found["rows.most"], "rows",
                      "0 in the text")  # fmt: skip
        elif arrivals == "every second first":
            half = found["received.half"]
            note = (
                f"after {half:,.0f} messages: one node each; {found['nodes.end']:,.0f} at the end"
            )
            yield Row(text, "nodes, worst case", where, half, found["nodes.half"], "nodes", note)
        elif arrivals == "root last":
            note = "all but the one that is missing; the text: bounded by the room only"
            yield Row(text, "rows of the store, worst case", where, float(senders * each - 1),
                      found["rows.most"], "rows", note)  # fmt: skip
        else:
            yield Row("ours", "nodes, most", where, None, found["nodes.most"], "nodes")
        yield Row("ours", "S_b storage, most", where, None, found["storage_bytes.most"], "bytes")
    yield from _drawn_rows(results)


def _drawn_rows(results: Results) -> Iterator[Row]:
    names = (
        ("nodes, most", "nodes.most", "nodes"),
        ("nodes beyond one a sender, most", "nodes.excess", "nodes"),
        ("rows of the store, most", "rows.most", "rows"),
        ("S_b storage, mean", "storage_bytes", "bytes"),
    )
    for members in sorted({run.parameters["members"] for run in _by_members(results)}):
        for quantity, name, unit in names:
            spread = results.spread(name, **{"kind": "threads", **USUAL, "members": members})
            if spread is not None:
                where = f"drawn threads, {members} members"
                yield Row("ours", quantity, where, None, spread.mean, unit)


def _by_members(results: Results) -> list[Run]:
    return results.where(kind="threads", **{k: v for k, v in USUAL.items() if k != "members"})


# -- real threads --------------------------------------------------------------------------------


def trace_section(results: Results) -> Section:
    """Return waits and lists of real traces; without any, how to get them."""
    runs = [r for r in results.where(kind="trace") if "sb.wait_ms.mean" in results.figures(r)]
    if not runs:
        return Section("Real threads", "", about=HOW)
    rows = [row for run in runs for row in _trace_rows(results, run)]
    names = list(dict.fromkeys(run.parameters["trace"] for run in runs))
    plots = [_trace_plot(results, name, number) for number, name in enumerate(names[:MOST_PLOTS])]
    return Section(
        "Real threads",
        _trace_finding(results, runs),
        rows,
        [plot for plot in plots if plot.series],
        columns=(
            "trace",
            "median gap",
            "messages",
            "authors",
            "answers",
            "to oneself",
            "under way",
            "held: S_b",
            "causal",
            "total",
            "causal: longer than replies ask for",
            "nodes beyond one an author",
            "bytes: IDR",
            "bytes: BSS",
        ),
        table=[_trace_line(results, run) for run in runs],
        about="A series of patches leaves in the moment of the mail that it answers.",
        reads=("sb.wait_ms.mean", "causal.wait_ms.mean", "answers.own", "pairs.replies",
               "pairs.causal", "sb.bytes", "idr.bytes"),
    )  # fmt: skip


def _trace_finding(results: Results, runs: list[Run]) -> str:
    found = [results.figures(run) for run in runs]
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
        f"IDR, its own id (8 bytes) counted, less than S_b in {less} of {len(found)} cases."
    )


def parts_of_causal(found: Iterable[Mapping[str, Any]]) -> list[float]:
    """Return by run which part of causal order's mean wait S_b has; none where nothing waits."""
    named = [(one.get("sb.wait_ms.mean"), one.get("causal.wait_ms.mean")) for one in found]
    return [sb / causal for sb, causal in named if sb is not None and causal]


def _trace_rows(results: Results, run: Run) -> Iterator[Row]:
    found = results.figures(run)
    where = f"{_short(run.parameters['trace'])}, median gap {_gap(run)}"
    for order in ("sb", "causal", "total", "sequencer"):
        for name in ("mean", "p99"):
            value = found[f"{order}.wait_ms.{name}"]
            yield Row("ours", f"{order} wait {name}", where, None, value, "ms")


def _trace_line(results: Results, run: Run) -> tuple[str, ...]:
    found = results.figures(run)
    return (
        _short(run.parameters["trace"]),
        _gap(run),
        f"{found['sent']:,.0f}",
        f"{found['members']:,.0f}",
        f"{found['answers']:.0%}",
        f"{found['answers.own']:.0%}",
        f"{found['under_way']:,.1f}",
        *(f"{found[f'{order}.waited']:.1%}" for order in ("sb", "causal", "total")),
        f"{found['causal.longer']:.1%}",
        f"{found['nodes.excess']:,.0f}",
        f"{found['idr.bytes']:,.0f}",
        f"{found['bss.bytes']:,.0f}",
    )


def _short(name: str) -> str:
    """Return the name of a trace without what its kind of file is called."""
    return re.sub(r"\.(jsonl|mbox|annotation|ascii|raw|txt|gz)(?=\.|$| )", "", name)


def _gap(run: Run) -> str:
    ms = run.parameters["gap_ms"]
    return f"{ms / 1000:g} s" if ms >= 1000 else f"{ms:g} ms"


def _trace_plot(results: Results, name: str, number: int) -> Plot:
    lines = [
        above_zero(results.line(label, f"{order}.wait_ms.mean", "gap_ms", kind="trace", trace=name))
        for order, label in (
            ("sb", "S_b"),
            ("causal", "causal order"),
            ("total", "total order"),
            ("sequencer", "total order, by a sequencer"),
        )
    ]
    return Plot(
        f"semantic-trace-{number + 1}",
        f"Mean wait, {_short(name)}",
        "median gap between messages, ms",
        "mean wait, ms",
        [line for line in lines if line.x],
        f"Delays {TRACE_DELAY}. Logarithmic; what never waits has no point.",
        x_log=True,
        y_log=True,
    )


def above_zero(line: Series) -> Series:
    """Return the points that a logarithmic axis has room for."""
    kept = [at for at, value in enumerate(line.y) if value > 0]
    spread = [line.spread[at] for at in kept] if line.spread else ()
    return line._replace(
        x=[line.x[at] for at in kept], y=[line.y[at] for at in kept], spread=spread
    )


# -- statements ----------------------------------------------------------------------------------


def said_section(results: Results) -> Section | None:
    """Return what the text says of costs, and what the runs say to it."""
    runs = [*results.where(kind="threads"), *results.where(kind="trace")]
    found = [one for run in runs if "sb.wait_ms.mean" in (one := results.figures(run))]
    if not found:
        return None
    return Section(
        "What Bhavanasi and Iyer state",
        "",
        columns=("figure", "least", "most"),
        table=[
            (words, f"{min(values):.2%}", f"{max(values):.2%}")
            for words, name in (
                ("copies that S_b holds back", "sb.waited"),
                ("copies that causal order holds back", "causal.waited"),
                ("copies that total order holds back", "total.waited"),
                ("replies that a sequencer numbers before what they answer", "sequencer.inverted"),
            )
            for values in [[one[name] for one in found]]
        ],
        about="The text proves and bounds, and measures nothing.",
        claims=[
            _unrelated(results, runs),
            _less(found),
            _subset(found),
            Claim(
                "total order is inadequate for threads (here: one that numbers by arrival puts "
                "replies before what they answer)",
                "II",
                f"up to {max(one['sequencer.inverted'] for one in found):.1%} of a run's replies",
                any(one["sequencer.inverted"] > 0 for one in found),
                ("sequencer.inverted",),
            ),
        ],
    )


def _unrelated(results: Results, runs: list[Run]) -> Claim:
    """Hold that what answers nothing waits for nothing."""
    alone = [run for run in runs if run.parameters.get("answers") == 0.0]
    never = [results.figures(run)["sb.waited"] for run in alone]
    return Claim(
        "a later message is not blocked by an earlier one that it is unrelated to",
        "abstract, I",
        f"without answers S_b holds back up to {max(never):.2%} of the copies"
        if never
        else "no run gave figures",
        not any(never) if never else None,
        ("sb.waited",),
    )


def _less(found: list[Mapping[str, Any]]) -> Claim:
    names = [f"{order}.wait_ms.mean" for order in ("sb", "causal", "total")]
    order = sum(one[names[0]] <= one[names[1]] <= one[names[2]] for one in found)
    return Claim(
        "the delivery delay is less than under causal and total order (here: no longer)",
        "abstract, I",
        f"so in {order:,} of {len(found):,} runs, in the mean",
        order == len(found),
        names,
    )


def _subset(found: list[Mapping[str, Any]]) -> Claim:
    """Hold that replies are causal pairs: fewer of them in every run; the converse does not."""
    kept = sum(one["pairs.replies"] <= one["pairs.causal"] for one in found)
    return Claim(
        "what is before by S_b is before by happened-before",
        "III.B.1",
        f"no more pairs in {kept:,} of {len(found):,} runs; "
        f"{_part(found, 'pairs.replies', 'pairs.causal'):.2%} of the causal pairs of all runs are "
        "replies, direct or not",
        kept == len(found),
        ("pairs.replies", "pairs.causal"),
    )


def _part(found: list[Mapping[str, Any]], above: str, below: str) -> float:
    total = sum(one[below] for one in found)
    return sum(one[above] for one in found) / total if total else 0.0
