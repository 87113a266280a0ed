"""What the runs of the study of Bhavanasi and Iyer show."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from antecede.studies.frame.compare_paper import listed, unmet
from antecede.studies.frame.findings import Claim, Findings, Plot, Row, Section, Series
from antecede.studies.frame.results import Results, growth
from antecede.studies.semantic.grid import OF_TRACE, QUICK_OF_TRACE, TRACE_DELAY, USUAL
from antecede.studies.semantic.sections import (
    above_zero,
    list_section,
    parts_of_causal,
    said_section,
    trace_section,
)

LABELS = {
    "sb": "S_b",
    "causal": "causal order",
    "total": "total order",
    "sequencer": "total order, by a sequencer",
}
AXES = {
    "answers": ("Share of messages that answer another", "part that answers", False),
    "members": ("Members, each sending as often", "members", False),
    "rate_hz": ("Messages a second and member", "messages a second and member", True),
    "recent": ("How old what is answered is", "one of the last so many delivered", True),
}
READING = (
    "the three orders are held against each other over the SAME sendings and arrivals: the "
    "application acts on what causal order has delivered, which S_b has delivered, too",
    "S_b: a message waits for what it answers (Bhavanasi and Iyer, IV.C). Causal: for "
    "what had been delivered at "
    "its sender (BSS and IDR, exact). Total: for everything that was sent before it, by true time, "
    "and it is known for nothing that no more is under way: the least any such order can wait",
    "total order by a sequencer: one member numbers messages as they reach it, the number travels "
    "like a message; a message waits for its number and all lower ones",
    "wait: from arrival to delivery, Bhavanasi and Iyer's delivery delay (abstract), "
    "at members but the sender",
    "bytes: Bhavanasi and Iyer's message has two ids (IV.B.2), 16 bytes with 4-byte "
    "integers, one of them its "
    "own; BSS: 4 bytes a member, the own number among them; IDR: 8 bytes an immediate dependency, "
    "its own id, 8 bytes, not counted",
    "messages of a trace may answer several; S_b then waits for all of them (`several_parents`)",
)


def findings(results: Results, quick: bool) -> Findings:
    """Return the page of the study."""
    found = [
        _wait_section(results),
        _held_section(results),
        _pair_section(results),
        _byte_section(results),
        list_section(results),
        trace_section(results),
        said_section(results),
    ]
    sections = [section for section in found if section is not None]
    finding = _finding(results)
    return Findings(
        study="semantic",
        title="Semantic order beside causal and total order",
        source="Bhavanasi and Iyer; the source has no evaluation: this one is ours",
        finding=finding or "No run gave figures.",
        reading=READING,
        conditions=_conditions(results, quick),
        sections=sections,
        not_reached=unmet(sections),
        reads=(
            *(f"{order}.wait_ms.mean" for order in LABELS),
            *(f"{order}.waited" for order in ("sb", "causal", "total")),
        )
        if finding
        else (),
    )


def usual(but: str | None = None) -> dict[str, Any]:
    """Return the conditions of the drawn threads' usual point, one parameter left out."""
    return {"kind": "threads", **{name: v for name, v in USUAL.items() if name != but}}


def _finding(results: Results) -> str:
    mean = {order: results.spread(f"{order}.wait_ms.mean", **usual()) for order in LABELS}
    waited = {order: results.spread(f"{order}.waited", **usual()) for order in LABELS}
    if any(found is None for found in (*mean.values(), *waited.values())):
        return ""
    part = {order: found.mean for order, found in waited.items() if found}
    ms = {order: found.mean for order, found in mean.items() if found}
    return (
        f"S_b holds back {part['sb']:.2%} of the copies, causal order {part['causal']:.1%} and "
        f"total order {part['total']:.1%} of the same ones; the mean wait is {ms['sb']:.2f}, "
        f"{ms['causal']:.1f} and {ms['total']:.1f} ms, {ms['sequencer']:.0f} ms with a sequencer "
        f"({_usual_text()}).{_real(results)}"
    )


def _real(results: Results) -> str:
    runs = results.where(kind="trace")
    parts = parts_of_causal(results.figures(run) for run in runs)
    if not parts:
        return ""
    return (
        f" On real threads S_b waits {min(parts):.0%} to {max(parts):.0%} of what causal order "
        "does."
    )


def _usual_text() -> str:
    return (
        f"{USUAL['members']} members, {USUAL['rate_hz']:g} messages a second each, delays "
        f"{USUAL['delay']}, {USUAL['answers']:.0%} answer one of the last {USUAL['recent']}"
    )


def _conditions(results: Results, quick: bool) -> list[str]:
    seeds = sorted({run.seed for run in results.where(kind="threads")})
    return [
        f"drawn threads: {_usual_text()}, unless a row or an axis says otherwise; Poisson sendings "
        "to everybody, delays normal and clipped (20-2000 ms: lognormal; 50-50 ms: constant), "
        "nothing lost, channels not FIFO; "
        f"about {600 if quick else 3000:,} messages after twice the longest delay; seeds "
        + ", ".join(map(str, seeds)),
        f"real threads: the first {QUICK_OF_TRACE if quick else OF_TRACE:,} messages of a trace at "
        f"most, its authors are the members, delays {TRACE_DELAY}; its time is pressed evenly "
        "until the median gap between messages is what the row says; a reply that would leave "
        "before its author has what it answers leaves when it is there",
        "messages held at most, early deliveries, lists and the sequencer: at 32 members at most, "
        "drawn; waits: at all",
    ]


# -- waits ---------------------------------------------------------------------------------------


def _wait_section(results: Results) -> Section | None:
    rows = list(_wait_rows(results))
    if not rows:
        return None
    return Section(
        "Wait for delivery, drawn threads",
        "",
        rows,
        [_plot(results, name, *AXES[name]) for name in AXES],
        about="S_b waits where a reply overtakes what it answers, causal order where anything of a "
        "message's causal past is behind it, total order for whatever is under way.",
        claims=[
            _seldom(results),
            *(_longer(results, order) for order in ("causal", "total")),
            _at_most(results),
        ],
    )


SELDOM = 0.05


def _seldom(results: Results) -> Claim:
    """Hold that few copies wait under S_b."""
    found = [one for run in results.where(kind="threads")
             if (one := results.figures(run).get("sb.waited")) is not None]  # fmt: skip
    return Claim(
        f"a reply seldom overtakes what it answers (here: S_b holds back at most {SELDOM:.0%} of "
        "the copies in every run)",
        "ours",
        f"{min(found):.2%} to {max(found):.2%} of the copies wait"
        if found
        else "no run gave figures",
        max(found) <= SELDOM if found else None,
        ("sb.waited",),
    )


def _longer(results: Results, order: str) -> Claim:
    """Hold that an order waits the longer the more members talk."""
    line = results.line("", f"{order}.wait_ms.mean", "members", **usual("members"))
    several = len(line.y) > 1
    return Claim(
        f"{LABELS[order]} waits the longer the more members talk at once",
        "ours",
        listed([f"{y:,.1f} ms with {x:g} members" for x, y in zip(line.x, line.y, strict=True)])
        if several
        else "no run gave figures",
        all(a < b for a, b in itertools.pairwise(line.y)) if several else None,
        (f"{order}.wait_ms.mean",),
    )


def _at_most(results: Results) -> Claim:
    """Hold that what S_b holds back causal order holds back as long, run by run."""
    found = [
        (one["sb.wait_ms.max"], one["causal.wait_ms.max"])
        for run in results.where(kind="threads")
        if "sb.wait_ms.max" in (one := results.figures(run))
    ]
    kept = sum(sb <= causal for sb, causal in found)
    return Claim(
        "no copy waits longer under S_b than the longest does under causal order",
        "ours",
        f"so in {kept} of {len(found)} runs" if found else "no run gave figures",
        kept == len(found) if found else None,
        ("sb.wait_ms.max", "causal.wait_ms.max"),
    )


def _wait_rows(results: Results) -> Iterator[Row]:
    point = f"{USUAL['members']} members, {USUAL['delay']}, {USUAL['answers']:.0%} answer"
    for order in LABELS:
        for name, words in (("mean", "mean"), ("p50", "p50"), ("p99", "p99"), ("max", "longest")):
            spread = results.spread(f"{order}.wait_ms.{name}", **usual())
            if spread is not None:
                yield Row("ours", f"{order} wait {words}", point, None, spread.mean, "ms")
    for delay in _values(results, "delay"):
        for order in LABELS:
            spread = results.spread(f"{order}.wait_ms.mean", **{**usual(), "delay": delay})
            if spread is not None and delay != USUAL["delay"]:
                where = f"{point}, but delays {delay}"
                yield Row("ours", f"{order} wait mean", where, None, spread.mean, "ms")


def _values(results: Results, name: str) -> list[Any]:
    found = [run.parameters[name] for run in results.where(**usual(but=name))]
    return sorted(set(found))


def _plot(results: Results, name: str, title: str, axis: str, log: bool) -> Plot:
    lines = [
        above_zero(
            results.line(label, f"{order}.wait_ms.mean", name, **usual(but=name)),
        )
        for order, label in LABELS.items()
    ]
    return Plot(
        f"semantic-wait-{name.replace('_', '-')}",
        f"Mean wait: {title[0].lower()}{title[1:]}",
        axis,
        "mean wait, ms",
        [line for line in lines if line.x],
        "Logarithmic; what never waits has no point.",
        x_log=log,
        y_log=True,
    )


# -- messages held, pairs, bytes -----------------------------------------------------------------


def _held_section(results: Results) -> Section | None:
    rows = [
        Row("ours", f"{order} held {words}", f"{members} members", None, spread.mean, "messages")
        for members in _values(results, "members")
        for order in list(LABELS)[:3]
        for name, words in (("held", "mean"), ("held_max", "most"))
        if (spread := results.spread(f"{order}.{name}", **{**usual(), "members": members}))
        is not None
    ]
    if not rows:
        return None
    lines = [
        above_zero(results.line(LABELS[order], f"{order}.held", "members", **usual("members")))
        for order in ("sb", "causal", "total")
    ]
    return Section(
        "Messages held back",
        _held_finding(results),
        rows,
        [
            Plot(
                "semantic-held",
                "Messages that a member holds, mean over time",
                "members",
                "messages held",
                [line for line in lines if line.x],
                y_log=True,
            )
        ],
        about="What a member holds is what its store must have room for (Bhavanasi and Iyer's "
        "OSMS, IV.B.3; its size is left open there, VI.C).",
        reads=tuple(f"{order}.held_max" for order in list(LABELS)[:3])
        if _held_finding(results)
        else (),
    )


def _held_finding(results: Results) -> str:
    """Tell how many messages a member holds at most in the usual case."""
    words = [
        f"{LABELS[order]} {most.mean:,.1f}"
        for order in list(LABELS)[:3]
        if (most := results.spread(f"{order}.held_max", **usual())) is not None
    ]
    return (
        f"Messages that a member holds at most, with {USUAL['members']} members: {listed(words)}."
        if words
        else ""
    )


def _pair_section(results: Results) -> Section | None:
    lines = [line for value in _values(results, "answers") if (line := _pairs(results, value))]
    if not lines:
        return None
    return Section(
        "What is ordered, and what is not",
        _pair_finding(results),
        about="The copies that causal order holds longer than replies ask for are those that S_b "
        "delivers before something of their causal past. A sequencer here numbers by arrival.",
        reads=PAIRS if _pair_finding(results) else (),
        columns=(
            "part that answers",
            "pairs that S_b orders, of the causal ones",
            "pairs that causal order orders, of all",
            "causal: copies held longer than replies ask for; S_b: delivered before a cause",
            "total: copies held longer than replies ask for",
            "sequencer: replies numbered before what they answer",
        ),
        table=lines,
    )


PAIRS = ("pairs.replies", "pairs.causal", "pairs", "causal.longer", "total.longer")


def _pair_finding(results: Results) -> str:
    """Tell how many pairs the orders order in the usual case, and what they hold for the rest."""
    found = {name: results.spread(name, **usual()) for name in PAIRS}
    mean = {name: one.mean for name, one in found.items() if one is not None}
    if len(mean) < len(PAIRS) or not (mean["pairs.causal"] and mean["pairs"]):
        return ""
    return (
        f"Where {USUAL['answers']:.0%} answer, S_b orders "
        f"{mean['pairs.replies'] / mean['pairs.causal']:.2%} of the causal pairs, and causal order "
        f"{mean['pairs.causal'] / mean['pairs']:.1%} of all; causal order holds "
        f"{mean['causal.longer']:.1%} of the copies longer than replies ask for, total order "
        f"{mean['total.longer']:.1%}."
    )


def _pairs(results: Results, answers: float) -> tuple[str, ...] | None:
    where = {**usual(), "answers": answers}
    names = ("pairs.replies", "pairs.causal", "pairs", "causal.longer", "total.longer")
    found = {
        name: spread.mean
        for name in (*names, "sequencer.inverted")
        if (spread := results.spread(name, **where)) is not None
    }
    if len(found) < len(names) + 1 or not found["pairs"]:
        return None
    return (
        f"{answers:.0%}",
        f"{found['pairs.replies'] / found['pairs.causal']:.2%}" if found["pairs.causal"] else "-",
        f"{found['pairs.causal'] / found['pairs']:.1%}",
        *(f"{found[name]:.2%}" for name in names[3:]),
        f"{found['sequencer.inverted']:.2%}" if answers else "-",
    )


def _byte_section(results: Results) -> Section | None:
    carried: Mapping[str, str] = {"S_b": "sb", "causal, IDR": "idr", "causal, BSS": "bss"}
    rows = [
        Row(
            "IV.B.2" if name == "sb" else "ours",
            f"{label} control information",
            f"{members} members",
            None,
            spread.mean,
            "bytes a message",
        )
        for members in _values(results, "members")
        for label, name in carried.items()
        if (spread := results.spread(f"{name}.bytes", **{**usual(), "members": members}))
        is not None
    ]
    if not rows:
        return None
    lines: Sequence[Series] = [
        results.line(label, f"{name}.bytes", "members", **usual("members"))
        for label, name in carried.items()
    ]
    plot = Plot(
        "semantic-bytes",
        "Control information of a message",
        "members",
        "bytes a message",
        [line for line in lines if line.x],
    )
    return Section(
        "Control information",
        "",
        rows,
        [plot],
        claims=[
            _size(results, "sb", "S_b carries the same however large the group is", -0.05, 0.05),
            _size(results, "bss", "a vector grows with the members", 0.9, 1.1),
        ],
    )


def _size(results: Results, name: str, statement: str, low: float, high: float) -> Claim:
    """Hold how a control information's size grows with the members."""
    line = results.line("", f"{name}.bytes", "members", **usual("members"))
    power = growth(list(zip(line.x, line.y, strict=True)))
    return Claim(
        f"{statement} (here: as the power {low:g} to {high:g} of the members)",
        "ours",
        "no run gave figures"
        if power is None
        else f"from {line.y[0]:,.1f} bytes to {line.y[-1]:,.1f}, as the power {power:.2f}",
        None if power is None else low <= power <= high,
        (f"{name}.bytes",),
    )
