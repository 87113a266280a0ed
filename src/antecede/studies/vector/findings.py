"""What the runs of the study of Sahai et al. 2020 show."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from antecede.studies.frame.compare_paper import listed, undelivered, unmet
from antecede.studies.frame.findings import Claim, Findings, Plot, Row, Section, Series, filled
from antecede.studies.frame.results import Results, growth

FIGURES = (
    ("overhead", "overhead_bytes", "bytes a message"),
    ("encoded overhead", "encoded_bytes", "bytes a message"),
    ("storage", "storage_bytes", "bytes a member"),
)
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
    sections = filled(
        (
            _size_section(results),
            _wait_section(results),
            _fanout_section(results),
            _loss_section(results),
        )
    )
    finding = _finding(results)
    return Findings(
        study="vector",
        title="Vectors, matrices and immediate dependencies over the members",
        source="Sahai et al. 2020; the source has no evaluation: this one is ours",
        finding=finding or "Too few runs gave figures.",
        reading=READING,
        conditions=[
            "full mesh (hierarchical: one internal and one external group of half the members "
            "each); every member sends every N(80, 5) ms; delays N(150, 50) ms clipped to 50 "
            "to 250",
            f"{results.seeds()}; figures count from 1 s on"
            + (" (this quick run takes a few sizes)" if quick else ""),
        ],
        sections=sections,
        not_reached=unmet(sections),
        reads=("peer.overhead_bytes",) if finding else (),
    )


def _finding(results: Results) -> str:
    sizes = _sizes(results)
    if len(sizes) < 2:
        return ""
    words = []
    for protocol in ("bss", "idr", "sent"):
        first = results.spread("peer.overhead_bytes", **_where(protocol, sizes[0]))
        last = results.spread("peer.overhead_bytes", **_where(protocol, sizes[-1]))
        if first and last:
            words.append(f"{protocol} from {first.mean:,.0f} to {last.mean:,.0f}")
    if not words:
        return ""
    return f"From {sizes[0]} to {sizes[-1]} members a message carries, in bytes: {listed(words)}."


def _where(protocol: str, members: int) -> dict[str, Any]:
    return {"kind": "members", "protocol": protocol, "members": members}


def _sizes(results: Results) -> list[int]:
    return results.places("members", kind="members")


def _protocols(results: Results, kind: str) -> list[str]:
    return list(dict.fromkeys(run.parameters["protocol"] for run in results.where(kind=kind)))


def _curves(results: Results, figure: str) -> Iterator[tuple[str, str]]:
    """Yield (label, figure) of every protocol; the hierarchical one has two roles."""
    for protocol in _protocols(results, "members"):
        if protocol == "hierarchical":
            yield protocol, f"internal.{figure}"
            yield protocol, f"external.{figure}"
        else:
            yield protocol, f"peer.{figure}"


def _label(protocol: str, figure: str) -> str:
    role = figure.partition(".")[0]
    return protocol if role == "peer" else f"{protocol}, {role}"


def _size_section(results: Results) -> Section:
    rows = [
        row for name, figure, unit in FIGURES for row in _size_rows(results, name, figure, unit)
    ]
    plots = [
        Plot(
            f"vector-{name.replace(' ', '-')}",
            name.capitalize(),
            "members",
            unit,
            [
                line
                for p, f in _curves(results, figure)
                if (line := results.line(_label(p, f), f, "members", kind="members", protocol=p)).x
            ],
            y_log=True,
            x_log=True,
        )
        for name, figure, unit in FIGURES
    ]
    powers = {
        protocol: power
        for protocol in ("bss", "sent", "idr")
        if (power := _power(results, protocol)) is not None
    }
    said = listed([f"{name} as the power {power:.2f}" for name, power in powers.items()])
    return Section(
        "Bytes over the members",
        f"Over the members overhead grows: {said}." if powers else "",
        rows,
        plots,
        reads=("peer.overhead_bytes",) if powers else (),
        claims=[
            _grows(powers.get("bss"), "a vector grows with the members", 0.9, 1.1),
            _grows(powers.get("sent"), "a matrix grows with their square", 1.8, 2.2),
        ],
    )


def _power(results: Results, protocol: str) -> float | None:
    """Return the power of the members as which a protocol's overhead grows."""
    line = results.line("", "peer.overhead_bytes", "members", kind="members", protocol=protocol)
    return growth(list(zip(line.x, line.y, strict=True)))


def _grows(power: float | None, statement: str, low: float, high: float) -> Claim:
    return Claim(
        f"{statement} (here: as their power {low} to {high})",
        "ours",
        "no run gave figures" if power is None else f"as the power {power:.2f}",
        None if power is None else low <= power <= high,
        ("peer.overhead_bytes",),
    )


def _size_rows(results: Results, name: str, figure: str, unit: str) -> Iterator[Row]:
    for protocol, of in _curves(results, figure):
        for members in _sizes(results):
            spread = results.spread(of, **_where(protocol, members))
            if spread is not None:
                what = f"{_label(protocol, of)} {name}"
                yield Row("ours", what, f"{members} members", None, spread.mean, unit)


def _wait_section(results: Results) -> Section | None:
    lines: list[Series] = [
        results.line(protocol, "wait_ms.mean", "members", kind="members", protocol=protocol)
        for protocol in _protocols(results, "members")
    ]
    if not any(line.x for line in lines):
        return None
    alike = _waits_alike(results)
    said = listed([f"{line.label} {line.y[-1]:,.2f} ms" for line in lines if line.y])
    return Section(
        "Waits over the members",
        f"Mean waits in the largest group that each was run with: {said}.",
        plots=[Plot("vector-wait", "Wait from arrival to delivery", "members", "ms, mean", lines)],
        reads=("wait_ms.mean",),
        claims=[
            Claim(
                "all flat protocols are exact: the same arrivals give the same waits",
                "ours",
                {
                    True: "the same means in every scenario and seed",
                    False: "means differ, which is a defect",
                    None: "too few runs to compare",
                }[alike],
                alike,
                ("wait_ms.mean",),
            )
        ],
    )


def _waits_alike(results: Results) -> bool | None:
    """Tell whether flat protocols waited alike in every scenario and seed; None: nothing to tell.

    A mean is a sum over members in an engine's own order, so its last digits are not compared.
    """
    waits: dict[tuple[int, int], list[float]] = {}
    for run in results.where(kind="members"):
        wait = results.figures(run).get("wait_ms.mean")
        if run.parameters["protocol"] != "hierarchical" and wait is not None:
            waits.setdefault((run.parameters["members"], run.seed), []).append(wait)
    several = [found for found in waits.values() if len(found) > 1]
    if not several:
        return None
    return all(math.isclose(min(found), max(found), rel_tol=1e-9) for found in several)


def _fanout_section(results: Results) -> Section | None:
    lines = [
        results.line(
            protocol, "peer.overhead_bytes", "addressees", kind="addressees", protocol=protocol
        )
        for protocol in _protocols(results, "addressees")
    ]
    said = (
        listed(
            [
                f"{one.label} from {one.y[0]:,.0f} ({one.x[0]:g} addressed) to {one.y[-1]:,.0f} "
                f"({one.x[-1]:g})"
                for one in lines
                if len(one.y) > 1
            ]
        )
        if any(len(one.y) > 1 for one in lines)
        else ""
    )
    return Section(
        "Addressees",
        f"In bytes a message: {said}." if said else "",
        plots=[
            Plot(
                "vector-addressees",
                "Overhead over addressees",
                "addressees",
                "bytes a message, as counted",
                lines,
            )
        ],
        about="Messages to some of 16 members.",
        reads=("peer.overhead_bytes",) if said else (),
    )


def _loss_section(results: Results) -> Section | None:
    lines = [
        _loss_line(results, protocol, copies)
        for copies in ("one", "all")
        for protocol in _protocols(results, "loss")
        if results.where(kind="loss", protocol=protocol, copies=copies)
    ]
    if not lines:
        return None
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
        table=lines,
        about="One copy of a message is lost after a second, or all of its copies, and nothing "
        "else in four seconds. Nobody else's messages can depend on one that nobody has.",
        reads=("undelivered",) if _loss_finding(results) else (),
        claims=[_stops(results), _keeps(results), _recovers(results)],
    )


BLOCKING = ("bss", "idr", "hierarchical", "ses", "sent")
"""Causal protocols that recover nothing."""


def _never(results: Results, protocols: Iterable[str], copies: str) -> dict[str, float]:
    """Return protocol -> deliveries that never happened beyond the copies that were lost."""
    found = {}
    for protocol in protocols:
        where = {"kind": "loss", "protocol": protocol, "copies": copies}
        if results.where(**where):
            found[protocol] = sum(results.values("undelivered", **where))
    return found


def _loss_finding(results: Results) -> str:
    protocols = _protocols(results, "loss")
    words = []
    for copies in ("one", "all"):
        never = _never(results, protocols, copies)
        if never:
            least, most = min(never, key=never.__getitem__), max(never, key=never.__getitem__)
            words.append(
                f"{'one copy' if copies == 'one' else 'all copies'} of a message lost, "
                f"{never[least]:,.0f} ({least}) to {never[most]:,.0f} ({most}) deliveries never "
                "happen"
            )
    return f"With {listed(words)}." if words else ""


def _stops(results: Results) -> Claim:
    one, every = (_never(results, BLOCKING, copies) for copies in ("one", "all"))
    both = [name for name in one if name in every]
    said = listed([f"{name} {one[name]:,.0f} and {every[name]:,.0f}" for name in both])
    return Claim(
        "who lacks one copy stops at whatever depends on it: a copy that one member lacks costs a "
        "causal protocol more deliveries than only that one",
        "ours",
        f"deliveries that never happened with one copy and with all copies lost: {said}"
        if both
        else "no run gave figures",
        all(one[name] > len(results.where(kind="loss", protocol=name, copies="one"))
            for name in both)
        if both
        else None,
        ("undelivered",),
    )  # fmt: skip


def _keeps(results: Results) -> Claim:
    never = _never(results, ("unordered",), "one")
    runs = len(results.where(kind="loss", protocol="unordered", copies="one"))
    return Claim(
        "without an order only the lost copy itself is missing",
        "ours",
        f"{never['unordered']:,.0f} deliveries never happened in {runs} runs"
        if never
        else "no run gave figures",
        never["unordered"] == runs if never else None,
        ("undelivered",),
    )


def _recovers(results: Results) -> Claim:
    never = {
        copies: count
        for copies in ("one", "all")
        for count in _never(results, ("matrix/recovering",), copies).values()
    }
    return Claim(
        "the recovering matrix protocol delivers everything",
        "ours",
        f"{sum(never.values()):,.0f} deliveries never happened" if never else "no run gave figures",
        not any(never.values()) if never else None,
        ("undelivered",),
    )


def _loss_line(results: Results, protocol: str, copies: str) -> tuple[str, ...]:
    where: dict[str, Any] = {"kind": "loss", "protocol": protocol, "copies": copies}
    return (
        f"{copies} cop{'y' if copies == 'one' else 'ies'}",
        protocol,
        f"{sum(results.values('lost', **where)):,.0f}",
        *undelivered(results, **where),
        f"{sum(results.values('early.by_delivery', **where)):,.0f}"
        if results.values("early.by_delivery", **where)
        else "-",
        f"{sum(results.values('violations', **where)):,.0f}",
    )
