"""What the runs of the study of Bhavanasi and Iyer show."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from antecede.formatting import counted
from antecede.report.values import Claim, Findings, Plot, Row, Section, filled
from antecede.studies.frame.claims import (
    Asked,
    Quantity,
    all_of,
    as_power,
    claim,
    figure_or_dash,
    lines,
    means,
    page,
    rows,
    table,
)
from antecede.studies.frame.compare_paper import listed
from antecede.studies.frame.results import Results
from antecede.studies.semantic.grid import (
    LABELS,
    OF_TRACE,
    QUICK_OF_TRACE,
    TRACE_DELAY,
    USUAL,
)
from antecede.studies.semantic.sections import (
    above_zero,
    list_section,
    parts_of_causal,
    said_section,
    trace_section,
)

ORDERS = list(LABELS)[:3]
"""S_b, causal and total order."""
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
    threads = results.of(kind="threads")
    members = threads.along("members", **USUAL)
    sections = [
        *filled(
            (
                _wait_section(threads),
                _held_section(members),
                _pair_section(threads.along("answers", **USUAL)),
                _byte_section(members),
                list_section(results),
            )
        ),
        trace_section(results),
        *filled([said_section(results)]),
    ]
    return page(
        _finding(results),
        [
            *(f"{order}.wait_ms.mean" for order in LABELS),
            *(f"{order}.waited" for order in ORDERS),
        ],
        reading=READING,
        conditions=_conditions(results, quick),
        sections=sections,
    )


def _finding(results: Results) -> str:
    there = results.of(kind="threads", **USUAL)
    ms = {order: there.mean(f"{order}.wait_ms.mean") for order in LABELS}
    part = {order: there.mean(f"{order}.waited") for order in LABELS}
    if any(found is None for found in (*ms.values(), *part.values())):
        return ""
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


def _wait_section(threads: Results) -> Section | None:
    found = rows(_wait_asked(threads))
    if not found:
        return None
    return Section(
        "Wait for delivery, drawn threads",
        "",
        found,
        [_plot(threads.along(name, **USUAL), name, *AXES[name]) for name in AXES],
        about="S_b waits where a reply overtakes what it answers, causal order where anything of a "
        "message's causal past is behind it, total order for whatever is under way.",
        claims=[
            _seldom(threads),
            *(_longer(threads.along("members", **USUAL), order) for order in ("causal", "total")),
            _at_most(threads),
        ],
    )


SELDOM = 0.05


def _seldom(threads: Results) -> Claim:
    """Hold that few copies wait under S_b."""
    found = threads.values("sb.waited")
    return claim(
        f"a reply seldom overtakes what it answers (here: S_b holds back at most {SELDOM:.0%} of "
        "the copies in every run)",
        "ours",
        ("sb.waited",),
        (f"{min(found):.2%} to {max(found):.2%} of the copies wait", max(found) <= SELDOM)
        if found
        else None,
    )


def _longer(members: Results, order: str) -> Claim:
    """Hold that an order waits the longer the more members talk."""
    line = members.line("", f"{order}.wait_ms.mean", "members")
    said = listed([f"{y:,.1f} ms with {x:g} members" for x, y in line.points])
    return claim(
        f"{LABELS[order]} waits the longer the more members talk at once",
        "ours",
        (f"{order}.wait_ms.mean",),
        (said, all(a < b for a, b in itertools.pairwise(line.y))) if len(line.y) > 1 else None,
    )


def _at_most(threads: Results) -> Claim:
    """Hold that what S_b holds back causal order holds back as long, run by run."""
    names = ("sb.wait_ms.max", "causal.wait_ms.max")
    found = list(zip(*(threads.values(name) for name in names), strict=True))
    kept = sum(sb <= causal for sb, causal in found)
    return claim(
        "no copy waits longer under S_b than the longest does under causal order",
        "ours",
        names,
        (f"so in {kept} of {counted(len(found), 'run')}", kept == len(found)) if found else None,
    )


WAITS = {"mean": "mean", "p50": "p50", "p99": "p99", "max": "longest"}
WAITED = [
    Quantity(f"{order} wait {words}", f"{order}.wait_ms.{name}", "ms")
    for order in LABELS
    for name, words in WAITS.items()
]


def _wait_asked(threads: Results) -> list[Asked]:
    """Ask for all waits of the usual case, and for the mean ones under other delays."""
    point = f"{USUAL['members']} members, {USUAL['delay']}, {USUAL['answers']:.0%} answer"
    asked = means(threads.of(**USUAL), WAITED, point)
    for delay, there in threads.along("delay", **USUAL).by("delay"):
        if delay != USUAL["delay"]:
            asked += means(there, WAITED[:: len(WAITS)], f"{point}, but delays {delay}")
    return asked


def _plot(results: Results, name: str, title: str, axis: str, log: bool) -> Plot:
    drawn = [Quantity(label, f"{order}.wait_ms.mean") for order, label in LABELS.items()]
    return Plot(
        f"semantic-wait-{name.replace('_', '-')}",
        f"Mean wait: {title[0].lower()}{title[1:]}",
        axis,
        "mean wait, ms",
        above_zero(lines(results, name, drawn)),
        "Logarithmic; what never waits has no point.",
        x_log=log,
        y_log=True,
    )


# -- messages held, pairs, bytes -----------------------------------------------------------------


HELD = [
    Quantity(f"{order} held {words}", f"{order}.{name}", "messages")
    for order in ORDERS
    for name, words in (("held", "mean"), ("held_max", "most"))
]


def _held_section(members: Results) -> Section:
    drawn = [Quantity(LABELS[order], f"{order}.held") for order in ORDERS]
    return Section(
        "Messages held back",
        _held_finding(members.of(**USUAL)),
        _over_members(members, HELD),
        [
            Plot(
                "semantic-held",
                "Messages that a member holds, mean over time",
                "members",
                "messages held",
                above_zero(lines(members, "members", drawn)),
                y_log=True,
            )
        ],
        about="What a member holds is what its store must have room for (Bhavanasi and Iyer's "
        "OSMS, IV.B.3; its size is left open there, VI.C).",
        reads=tuple(f"{order}.held_max" for order in ORDERS),
    )


def _over_members(members: Results, quantities: Sequence[Quantity]) -> list[Row]:
    each = members.by("members")
    return rows(one for n, there in each for one in means(there, quantities, f"{n} members"))


def _held_finding(there: Results) -> str:
    """Tell how many messages a member holds at most in the usual case."""
    words = [
        f"{LABELS[order]} {most:,.1f}"
        for order in ORDERS
        if (most := there.mean(f"{order}.held_max")) is not None
    ]
    return (
        f"Messages that a member holds at most, with {USUAL['members']} members: {listed(words)}."
        if words
        else ""
    )


PAIRS = ("pairs.replies", "pairs.causal", "pairs", "causal.longer", "total.longer")
PAIR_COLUMNS = {
    "part that answers": "{0[answers]:.0%}",
    "pairs that S_b orders, of the causal ones": "{0[replies]}",
    "pairs that causal order orders, of all": "{0[causal]:.1%}",
    "causal: copies held longer than replies ask for; S_b: delivered before a cause": (
        "{0[causal.longer]:.2%}"
    ),
    "total: copies held longer than replies ask for": "{0[total.longer]:.2%}",
    "sequencer: replies numbered before what they answer": "{0[inverted]}",
}


def _pair_section(by_answers: Results) -> Section:
    each = by_answers.by("answers")
    return Section(
        "What is ordered, and what is not",
        _pair_finding(by_answers.of(**USUAL)),
        about="The copies that causal order holds longer than replies ask for are those that S_b "
        "delivers before something of their causal past. A sequencer here numbers by arrival.",
        reads=PAIRS,
        **table(PAIR_COLUMNS, [line for one in each if (line := _pairs(*one))]),
    )


def _means_of(there: Results, names: Sequence[str]) -> dict[str, float]:
    """Return the means of these figures; nothing where one is missing."""
    return dict(zip(names, all_of(map(there.mean, names)), strict=False))


def _pair_finding(there: Results) -> str:
    """Tell how many pairs the orders order in the usual case, and what they hold for the rest."""
    mean = _means_of(there, PAIRS)
    if not (mean and mean["pairs.causal"] and mean["pairs"]):
        return ""
    return (
        f"Where {USUAL['answers']:.0%} answer, S_b orders "
        f"{mean['pairs.replies'] / mean['pairs.causal']:.2%} of the causal pairs, and causal order "
        f"{mean['pairs.causal'] / mean['pairs']:.1%} of all; causal order holds "
        f"{mean['causal.longer']:.1%} of the copies longer than replies ask for, total order "
        f"{mean['total.longer']:.1%}."
    )


def _pairs(answers: float, there: Results) -> dict[str, Any] | None:
    """Return what `PAIR_COLUMNS` show where this part answers."""
    mean = _means_of(there, (*PAIRS, "sequencer.inverted"))
    if not (mean and mean["pairs"]):
        return None
    causal = mean["pairs.causal"]
    return {
        **mean,
        "answers": answers,
        "replies": figure_or_dash(mean["pairs.replies"] / causal if causal else None, ".2%"),
        "causal": causal / mean["pairs"],
        "inverted": figure_or_dash(mean["sequencer.inverted"] if answers else None, ".2%"),
    }


CARRIED = {"S_b": "sb", "causal, IDR": "idr", "causal, BSS": "bss"}


def _byte_section(members: Results) -> Section:
    asked = [
        Asked(
            f"{label} control information",
            f"{n} members",
            there.mean(f"{name}.bytes"),
            "bytes a message",
            where="IV.B.2" if name == "sb" else "ours",
        )
        for n, there in members.by("members")
        for label, name in CARRIED.items()
    ]
    drawn = [Quantity(label, f"{name}.bytes") for label, name in CARRIED.items()]
    return Section(
        "Control information",
        "",
        rows(asked),
        [
            Plot(
                "semantic-bytes",
                "Control information of a message",
                "members",
                "bytes a message",
                lines(members, "members", drawn),
            )
        ],
        claims=[
            _size(members, "sb", "S_b carries the same however large the group is", -0.05, 0.05),
            _size(members, "bss", "a vector grows with the members", 0.9, 1.1),
        ],
    )


def _size(members: Results, name: str, statement: str, low: float, high: float) -> Claim:
    """Hold how a control information's size grows with the members."""
    return claim(
        f"{statement} (here: as the power {low:g} to {high:g} of the members)",
        "ours",
        (f"{name}.bytes",),
        as_power(members, f"{name}.bytes", "members", low, high, unit=" bytes"),
    )
