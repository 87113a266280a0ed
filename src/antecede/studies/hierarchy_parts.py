"""Parts of the study of 000 that its source has no figures for: more groups, pruning, the wire."""

from __future__ import annotations

from collections.abc import Iterator

from antecede.studies.findings import Plot, Row, Section
from antecede.studies.hierarchy_paper import DELAYS, LARGEST
from antecede.studies.results import Results


def group_section(results: Results) -> Section | None:
    """Return overhead and storage over the number of super peers, the peers being the same."""
    if not results.where(kind="groups"):
        return None
    names = (
        ("internal overhead", "internal.overhead_bytes"),
        ("external overhead", "external.overhead_bytes"),
        ("idr", "idr.overhead_bytes"),
    )
    stored = (
        ("internal peer", "internal.storage_bytes"),
        ("external peer", "external.storage_bytes"),
        ("super peer", "super.storage_bytes"),
    )
    return Section(
        "Several super peers",
        "240 peers, half external, the other half in one to four internal groups (0-50 ms). The "
        "source describes several super peers and does not measure them.",
        plots=(
            Plot(
                "hierarchy-groups-overhead",
                "Overhead over internal groups",
                "internal groups",
                "bytes a message",
                [results.line(label, figure, "groups", kind="groups") for label, figure in names],
            ),
            Plot(
                "hierarchy-groups-storage",
                "Storage over internal groups",
                "internal groups",
                "bytes a process",
                [results.line(label, figure, "groups", kind="groups") for label, figure in stored],
            ),
        ),
    )


def pruning_section(results: Results) -> Section | None:
    """Return the size of TT and the violations under each pruning, also under skewed links."""
    lines = list(_pruning_lines(results))
    if not lines:
        return None
    unsafe = sum(
        value
        for pruning in ("safe", "none")
        for value in results.values("violations", kind="pruning", pruning=pruning)
    )
    broken = sum(results.values("violations", kind="pruning", pruning="published"))
    unsound = "As described in 000 it is unsafe: " if broken else "As described in 000: "
    return Section(
        "Pruning of the super peer's table",
        f"{unsound}{broken:,.0f} deliveries before a cause. The safe rule and no pruning have "
        f"{unsafe:,.0f}.",
        columns=(
            "links",
            "internal groups",
            "pruning",
            "TT entries, mean",
            "TT entries, largest",
            "early deliveries",
            "deliveries checked",
        ),
        table=lines,
    )


def _pruning_lines(results: Results) -> Iterator[tuple[str, ...]]:
    for groups in (1, 3):
        for skewed in (False, True):
            for pruning in ("safe", "none", "published"):
                where = {
                    "kind": "pruning",
                    "groups": groups,
                    "skewed": skewed,
                    "pruning": pruning,
                }
                mean = results.spread("tt.mean", **where)
                if mean is None:
                    continue
                yield (
                    "0-400 ms up, 500 ms to one peer" if skewed else "0-50 ms",
                    str(groups),
                    pruning,
                    f"{mean.mean:,.0f}",
                    f"{max(results.values('tt.max', **where)):,.0f}",
                    f"{sum(results.values('violations', **where)):,.0f}",
                    f"{sum(results.values('violations.checked', **where)):,.0f}",
                )


def wire_section(results: Results) -> Section | None:
    """Return accounting, encoding and entropy, and how far Lemma 3 holds."""
    rows = [row for delay in DELAYS for row in _wire_rows(results, delay)]
    if not rows:
        return None
    plots = [_wire_plot(results, delay) for delay in DELAYS]
    missing = sum(results.values("lemma3.missing", kind="grid"))
    extra = sum(results.values("lemma3.extra", kind="grid"))
    return Section(
        "Bytes on the wire, and Lemma 3",
        "The accounting counts a bit vector's span and 8 bytes a pair; an encoding, header "
        "and all, needs less. "
        f"Lemma 3 (a bit is set exactly for an immediate dependency): {missing:,.0f} bits missing, "
        f"{extra:,.0f} too many, in all runs of the grid.",
        rows,
        plots,
    )


def _wire_rows(results: Results, delay: str) -> Iterator[Row]:
    where = {"kind": "grid", "delay": delay, "peers": LARGEST[delay]}
    pairs = (
        ("internal", "entropy_bytes", "encoded internal overhead by entropy"),
        ("external", "overhead_bytes", "encoded external overhead by accounting"),
        ("idr", "overhead_bytes", "encoded idr overhead by accounting"),
    )
    for role, below, quantity in pairs:
        encoded = results.spread(f"{role}.encoded_bytes", **where)
        base = results.spread(f"{role}.{below}", **where)
        if encoded is not None and base is not None:
            condition = f"{delay}, {LARGEST[delay]} peers"
            ours = encoded.mean / base.mean
            yield Row("ours", quantity, condition, None, ours, "times")


def _wire_plot(results: Results, delay: str) -> Plot:
    series = [
        results.line(
            f"{role}, {word}", f"{role}.{figure}", "peers", style=style, kind="grid", delay=delay
        )
        for role in ("internal", "external", "idr")
        for word, figure, style in (
            ("counted", "overhead_bytes", "dashed"),
            ("encoded", "encoded_bytes", "line"),
        )
    ]
    series.append(
        results.line(
            "internal, entropy",
            "internal.entropy_bytes",
            "peers",
            style="points",
            kind="grid",
            delay=delay,
        )
    )
    return Plot(
        f"hierarchy-wire-{delay.replace(' ms', '')}",
        f"Counted, encoded and entropy, delays {delay}",
        "peers",
        "bytes a message",
        [one for one in series if one.x],
        "Entropy: log2 of (window over bits set) / 8, for the internal bit vector.",
        y_log=True,
    )
