"""What the runs of the study of 001 show."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from antecede.studies.findings import Findings, Plot, Row, Section, Series, filled
from antecede.studies.results import Results
from antecede.studies.verdicts import undelivered

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
    "waits are from arrival to delivery; all exact protocols get the same arrivals, so they "
    "deliver alike, and the hierarchical protocol goes over one more hop",
)


def findings(results: Results, quick: bool) -> Findings:
    """Return the page of the study."""
    return Findings(
        study="vector",
        title="Vectors, matrices and immediate dependencies over the members",
        source="001; the source has no evaluation: this one is ours",
        finding=_finding(results),
        reading=READING,
        conditions=[
            "full mesh (hierarchical: one internal and one external group of half the members "
            "each); every member sends every N(80, 5) ms; delays N(150, 50) ms clipped to 50 "
            "to 250",
            f"{results.seeds()}; figures count from 1 s on"
            + (" (this quick run takes a few sizes)" if quick else ""),
        ],
        sections=filled(
            (
                _size_section(results),
                _wait_section(results),
                _fanout_section(results),
                _loss_section(results),
            )
        ),
    )


def _finding(results: Results) -> str:
    sizes = _sizes(results)
    if len(sizes) < 2:
        return "Too few runs gave figures."
    small, large = sizes[0], sizes[-1]
    words = []
    for protocol in ("bss", "idr", "sent"):
        first = results.spread("peer.overhead_bytes", **_where(protocol, small))
        last = results.spread("peer.overhead_bytes", **_where(protocol, large))
        if first and last:
            words.append(f"{protocol} from {first.mean:,.0f} to {last.mean:,.0f}")
    if not words:
        return "Too few runs gave figures."
    wait = {
        True: "; the wait does not depend on which exact protocol carries the information",
        False: "; waits differ between exact protocols, which is a defect",
        None: "",
    }[_waits_alike(results)]
    return f"From {small} to {large} members a message carries, in bytes: {', '.join(words)}{wait}."


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
    return Section(
        "Bytes over the members",
        "A vector grows with the members, a matrix with their square, immediate dependencies with "
        "what is concurrent.",
        rows,
        plots,
    )


def _size_rows(results: Results, name: str, figure: str, unit: str) -> Iterator[Row]:
    for protocol, of in _curves(results, figure):
        for members in _sizes(results):
            spread = results.spread(of, **_where(protocol, members))
            if spread is not None:
                what = f"{_label(protocol, of)} {name}"
                yield Row("ours", what, f"{members} members", None, spread.mean, unit)


def _wait_section(results: Results) -> Section:
    lines: list[Series] = [
        results.line(protocol, "wait_ms.mean", "members", kind="members", protocol=protocol)
        for protocol in _protocols(results, "members")
    ]
    words = {
        True: "all flat protocols have the same mean.",
        False: "means differ, which is a defect.",
        None: "there are too few runs to compare.",
    }[_waits_alike(results)]
    return Section(
        "Waits over the members",
        f"The same arrivals give the same waits: {words}",
        plots=[Plot("vector-wait", "Wait from arrival to delivery", "members", "ms, mean", lines)],
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


def _fanout_section(results: Results) -> Section:
    return Section(
        "Addressees",
        "Messages to some of 16 members: what SES and the SENT matrix carry then.",
        plots=[
            Plot(
                "vector-addressees",
                "Overhead over addressees",
                "addressees",
                "bytes a message, as counted",
                [
                    results.line(
                        protocol,
                        "peer.overhead_bytes",
                        "addressees",
                        kind="addressees",
                        protocol=protocol,
                    )
                    for protocol in _protocols(results, "addressees")
                ],
            )
        ],
    )


def _loss_section(results: Results) -> Section:
    lines = [
        _loss_line(results, protocol, copies)
        for copies in ("one", "all")
        for protocol in _protocols(results, "loss")
        if results.where(kind="loss", protocol=protocol, copies=copies)
    ]
    return Section(
        "One lost message",
        "One copy of a message is lost after a second, or all of its copies, and nothing else in "
        "four seconds. Who lacks one copy stops for ever at whatever depends on it; where nobody "
        "has the message only its sender is cut off, since nobody else's messages can depend on "
        "it.",
        columns=(
            "lost",
            "protocol",
            "copies lost",
            "deliveries that never happened",
            "part of all",
            "delivered before a cause that it promises",
        ),
        table=lines,
    )


def _loss_line(results: Results, protocol: str, copies: str) -> tuple[str, ...]:
    where: dict[str, Any] = {"kind": "loss", "protocol": protocol, "copies": copies}
    return (
        f"{copies} cop{'y' if copies == 'one' else 'ies'}",
        protocol,
        f"{sum(results.values('lost', **where)):,.0f}",
        *undelivered(results, **where),
        f"{sum(results.values('violations', **where)):,.0f}",
    )
