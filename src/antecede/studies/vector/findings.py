"""What the runs of the study of Sahai et al. 2020 show."""

from __future__ import annotations

import math

from antecede.formatting import counted
from antecede.report.values import Claim, Findings, Plot, Section, Series, filled
from antecede.studies.frame.claims import (
    Quantity,
    all_of,
    as_power,
    claim,
    figure_or_dash,
    lines,
    means,
    page,
    rows,
)
from antecede.studies.frame.compare_paper import deliveries, listed, undelivered
from antecede.studies.frame.results import Results

OVERHEAD = "peer.overhead_bytes"
FIGURES = (
    Quantity("overhead", "overhead_bytes", "bytes a message"),
    Quantity("encoded overhead", "encoded_bytes", "bytes a message"),
    Quantity("storage", "storage_bytes", "bytes a member"),
)
"""Of each role of a protocol."""
READING = (
    "bytes are those of each source's accounting: 4 an integer, 8 a pair, a bit vector its span; "
    "encoded bytes are the control information as it goes over the wire",
    "`sent` is causal unicast by a matrix of message counts (Raynal, Schiper, Toueg), broadcast "
    "here; `ses` carries a vector for each destination that it knows of",
    "waits are from arrival to delivery; all protocols get the same arrivals, and the "
    "hierarchical one goes over one more hop",
)


def findings(results: Results, quick: bool) -> Findings:
    """Return the page of the study."""
    members = results.of(kind="members")
    sections = filled(
        (
            _size_section(members),
            _wait_section(members),
            _fanout_section(results.of(kind="addressees")),
            _loss_section(results.of(kind="loss")),
        )
    )
    return page(
        _finding(members),
        (OVERHEAD,),
        otherwise="Too few runs gave figures.",
        reading=READING,
        conditions=[
            "full mesh (hierarchical: one internal and one external group of half the members "
            "each); every member sends every N(80, 5) ms; delays N(150, 50) ms clipped to 50 "
            "to 250",
            f"{results.seeds()}; figures count from 1 s on"
            + (" (this quick run takes a few sizes)" if quick else ""),
        ],
        sections=sections,
    )


def _finding(results: Results) -> str:
    sizes = results.places("members")
    if len(sizes) < 2:
        return ""
    ends = sizes[0], sizes[-1]
    words = [
        f"{name} from {found[0]:,.0f} to {found[1]:,.0f}"
        for name in ("bss", "idr", "sent")
        if (found := all_of(results.mean(OVERHEAD, protocol=name, members=n) for n in ends))
    ]
    if not words:
        return ""
    return f"From {sizes[0]} to {sizes[-1]} members a message carries, in bytes: {listed(words)}."


def _protocols(results: Results) -> list[tuple[str, Results]]:
    """Return the protocols in the order of the study, and the results of each."""
    names = dict.fromkeys(run.parameters["protocol"] for run in results.runs)
    return [(name, results.of(protocol=name)) for name in names]


def _roles(protocol: str) -> dict[str, str]:
    """Return label -> prefix of its figures; the hierarchical protocol has two roles."""
    if protocol == "hierarchical":
        return {f"{protocol}, {role}": role for role in ("internal", "external")}
    return {protocol: "peer"}


def _lines(results: Results, figure: str, over: str) -> list[Series]:
    """Return a line for each protocol that has points."""
    each = _protocols(results)
    return [line for name, own in each for line in lines(own, over, [Quantity(name, figure)])]


def _size_section(results: Results) -> Section:
    asked, plots = [], []
    for one in FIGURES:
        drawn: list[Series] = []
        for protocol, own in _protocols(results):
            for label, role in _roles(protocol).items():
                of = Quantity(f"{label} {one.name}", f"{role}.{one.figure}", one.unit)
                drawn += lines(own, "members", [of._replace(name=label)])
                for members, at in own.by("members"):
                    asked += means(at, [of], f"{members} members")
        key = f"vector-{one.name.replace(' ', '-')}"
        title = one.name.capitalize()
        plots.append(Plot(key, title, "members", one.unit, drawn, x_log=True, y_log=True))
    powers = {name: results.of(protocol=name).power(OVERHEAD, "members") for name in GROWING}
    words = [
        f"{name} as the power {power:.2f}" for name, power in powers.items() if power is not None
    ]
    return Section(
        "Bytes over the members",
        f"Over the members overhead grows: {listed(words)}." if words else "",
        rows(asked),
        plots,
        reads=(OVERHEAD,),
        claims=[
            claim(
                f"{statement} (here: as their power {low} to {high})",
                "ours",
                (OVERHEAD,),
                as_power(results.of(protocol=protocol), OVERHEAD, "members", low, high),
            )
            for protocol, statement, low, high in GROWTH
        ],
    )


GROWING = ("bss", "sent", "idr")
GROWTH = (
    ("bss", "a vector grows with the members", 0.9, 1.1),
    ("sent", "a matrix grows with their square", 1.8, 2.2),
)
"""(protocol, statement, least power, largest power)."""


def _wait_section(results: Results) -> Section:
    found = _lines(results, "wait_ms.mean", "members")
    alike = _waits_alike(results)
    said = listed([f"{line.label} {line.y[-1]:,.2f} ms" for line in found])
    return Section(
        "Waits over the members",
        f"Mean waits in the largest group that each was run with: {said}." if found else "",
        plots=[Plot("vector-wait", "Wait from arrival to delivery", "members", "ms, mean", found)],
        reads=("wait_ms.mean",),
        claims=[
            claim(
                "all flat protocols are exact: the same arrivals give the same waits",
                "ours",
                ("wait_ms.mean",),
                (ALIKE[alike], alike),
            )
        ],
    )


ALIKE = {
    True: "the same means in every scenario and seed",
    False: "means differ, which is a defect",
    None: "too few runs to compare",
}


def _waits_alike(results: Results) -> bool | None:
    """Tell whether flat protocols waited alike in every scenario and seed; None: nothing to tell.

    A mean is a sum over members in an engine's own order, so its last digits are not compared.
    """
    waits: dict[tuple[int, int], list[float]] = {}
    for run in results.runs:
        wait = results.figures(run).get("wait_ms.mean")
        if run.parameters["protocol"] != "hierarchical" and wait is not None:
            waits.setdefault((run.parameters["members"], run.seed), []).append(wait)
    several = [found for found in waits.values() if len(found) > 1]
    if not several:
        return None
    return all(math.isclose(min(found), max(found), rel_tol=1e-9) for found in several)


def _fanout_section(results: Results) -> Section:
    found = _lines(results, OVERHEAD, "addressees")
    said = [
        f"{one.label} from {one.y[0]:,.0f} ({one.x[0]:g} addressed) to {one.y[-1]:,.0f} "
        f"({one.x[-1]:g})"
        for one in found
        if len(one.y) > 1
    ]
    unit = "bytes a message, as counted"
    return Section(
        "Addressees",
        f"In bytes a message: {listed(said)}." if said else "",
        plots=[Plot("vector-addressees", "Overhead over addressees", "addressees", unit, found)],
        about="Messages to some of 16 members.",
        reads=(OVERHEAD,),
    )


def _loss_section(results: Results) -> Section:
    return Section(
        "One lost message",
        _loss_finding(results),
        columns=(
            "lost",
            "protocol",
            "copies lost",
            "deliveries that never happened",
            "part of all",
            "delivered before a cause, by causality",
            "against its own promise",
        ),
        table=[
            _loss_line(own, protocol, copies)
            for copies in COPIES
            for protocol, own in _protocols(results.of(copies=copies))
        ],
        about="One copy of a message is lost after a second, or all of its copies, and nothing "
        "else in four seconds. Nobody else's messages can depend on one that nobody has.",
        reads=("undelivered",),
        claims=[_stops(results), _keeps(results), _recovers(results)],
    )


COPIES = {"one": "one copy", "all": "all copies"}
BLOCKING = ("bss", "idr", "hierarchical", "ses", "sent")
"""Causal protocols that recover nothing."""


def _never(results: Results, copies: str) -> dict[str, float]:
    """Return protocol -> deliveries that never happened beyond the copies that were lost."""
    each = _protocols(results.of(copies=copies))
    return {protocol: sum(own.values("undelivered")) for protocol, own in each}


def _loss_finding(results: Results) -> str:
    words = []
    for copies, lost in COPIES.items():
        never = _never(results, copies)
        if never:
            least, most = min(never, key=never.__getitem__), max(never, key=never.__getitem__)
            words.append(
                f"{lost} of a message lost, {never[least]:,.0f} ({least}) to {never[most]:,.0f} "
                f"({most}) deliveries never happen"
            )
    return f"With {listed(words)}." if words else ""


def _stops(results: Results) -> Claim:
    one, every = (_never(results, copies) for copies in COPIES)
    both = [name for name in BLOCKING if name in one and name in every]
    said = listed([f"{name} {one[name]:,.0f} and {every[name]:,.0f}" for name in both])
    stopped = (one[n] > len(results.where(protocol=n, copies="one")) for n in both)
    return claim(
        "who lacks one copy stops at whatever depends on it: a copy that one member lacks costs a "
        "causal protocol more deliveries than only that one",
        "ours",
        ("undelivered",),
        (
            f"deliveries that never happened with one copy and with all copies lost: {said}",
            all(stopped),
        )
        if both
        else None,
    )


def _keeps(results: Results) -> Claim:
    never = _never(results, "one").get("unordered")
    runs = len(results.where(protocol="unordered", copies="one"))
    return claim(
        "without an order only the lost copy itself is missing",
        "ours",
        ("undelivered",),
        None
        if never is None
        else (f"{deliveries(never)} never happened in {counted(runs, 'run')}", never == runs),
    )


def _recovers(results: Results) -> Claim:
    never = results.total("undelivered", protocol="matrix/recovering")
    return claim(
        "the recovering matrix protocol delivers everything",
        "ours",
        ("undelivered",),
        None if never is None else (f"{deliveries(never)} never happened", not never),
    )


def _loss_line(results: Results, protocol: str, copies: str) -> tuple[str, ...]:
    return (
        f"{copies} cop{'y' if copies == 'one' else 'ies'}",
        protocol,
        f"{sum(results.values('lost')):,.0f}",
        *undelivered(results),
        figure_or_dash(results.total("early.by_delivery")),
        f"{sum(results.values('violations')):,.0f}",
    )
