"""Parts of the study of Evropeytsev et al. 2016 that its source has no figures for: more groups,
pruning, the wire.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from antecede.formatting import counted
from antecede.report.values import Plot, Section
from antecede.studies.frame.claims import Asked, Quantity, all_of, claim, lines, rows, table
from antecede.studies.frame.compare_paper import deliveries, listed
from antecede.studies.frame.results import Results
from antecede.studies.hierarchy.paper import DELAYS, LARGEST

SPENT = (
    Quantity("internal overhead", "internal.overhead_bytes"),
    Quantity("external overhead", "external.overhead_bytes"),
    Quantity("idr", "idr.overhead_bytes"),
)
STORED = (
    Quantity("internal peer", "internal.storage_bytes"),
    Quantity("external peer", "external.storage_bytes"),
    Quantity("super peer", "super.storage_bytes"),
)


def group_section(groups: Results) -> Section:
    """Return overhead and storage over the number of super peers, the peers being the same."""
    return Section(
        "Several super peers",
        _group_finding(groups),
        about="240 peers, half external, the other half in one to four internal groups (0-50 ms). "
        "The source describes several super peers and does not measure them.",
        reads=tuple(one.figure for one in SPENT),
        plots=[
            Plot(
                f"hierarchy-groups-{what.lower()}",
                f"{what} over internal groups",
                "internal groups",
                unit,
                lines(groups, "groups", quantities),
            )
            for what, unit, quantities in (
                ("Overhead", "bytes a message", SPENT),
                ("Storage", "bytes a process", STORED),
            )
        ],
    )


def _group_finding(groups: Results) -> str:
    """Tell how overheads change from the fewest to the most internal groups."""
    places = groups.places("groups")
    if len(places) < 2:
        return ""
    ends = places[0], places[-1]
    words = [
        f"{label} from {found[0]:,.1f} to {found[1]:,.1f}"
        for label, figure, _ in SPENT
        if (found := all_of(groups.mean(figure, groups=n) for n in ends))
    ]
    return (
        f"From {places[0]} to {places[-1]} internal groups, in bytes a message: {listed(words)}."
        if words
        else ""
    )


def validation_section(results: Results) -> Section | None:
    """Return what checking every delivery by IDR has found: what the source did to validate."""
    found = [
        results.figures(run)
        for run in results.runs
        if run.parameters.get("pruning") != "published"
        and "violations.checked" in results.figures(run)
    ]
    checked = sum(one["violations.checked"] for one in found)
    if not checked:
        return None
    early = sum(one["violations"] for one in found)
    said = f"{early:,.0f} of {deliveries(checked)} came before a cause"
    asked = Asked(
        "deliveries before a cause",
        f"{deliveries(checked)} checked, all runs but those of the published pruning",
        early,
        "deliveries",
        where="section 3.2, text",
        note="the source validates every delivery so, and does not say what it found",
    )
    return Section(
        "Validation by IDR",
        f"{said[0].upper()}{said[1:]}, in {counted(len(found), 'run')}.",
        rows([asked]),
        about="Every delivery of every run is held against an IDR that runs beside, as in the "
        "source: what the protocol delivers, its causes have to come before. The compiled engine "
        "takes what both carry from the same deliveries, so that this can find a delivery before a "
        "cause and no wrong set of causes: for these it runs in lockstep with the classes.",
        reads=("violations", "violations.checked"),
        claims=[
            claim(
                'no causal order violation is found when a delivery "is validated against an IDR"',
                "section 3.2",
                ("violations", "violations.checked"),
                (said, not early),
            )
        ],
    )


PRUNINGS = {"published": "the published rule", "safe": "the safe one", "none": "none"}
PRUNED = {
    "links": "{0[links]}",
    "internal groups": "{0[groups]}",
    "pruning": "{0[pruning]}",
    "TT entries, mean": "{0[mean]:,.0f}",
    "TT entries, largest": "{0[largest]:,.0f}",
    "early deliveries": "{0[early]:,.0f}",
    "deliveries checked": "{0[checked]:,.0f}",
}


def pruning_section(pruned: Results) -> Section:
    """Return the size of TT and the violations under each pruning, also under skewed links."""
    totals = {name: pruned.total("violations", pruning=name) for name in PRUNINGS}
    early = {name: total for name, total in totals.items() if total is not None}
    words = [f"{value:,.0f} with {PRUNINGS[name]}" for name, value in early.items()]
    published, safe = early.get("published"), early.get("safe")
    return Section(
        "Pruning of the super peer's table",
        f"Deliveries before a cause: {listed(words)}." if words else "",
        about="Skewed links are those on which the published rule forgets what a message still "
        "under way depends on.",
        reads=("violations",),
        claims=[
            claim(
                "once all internal peers have delivered m2, what m1, its cause, says can be "
                "deleted from TT",
                "section 3.2",
                ("violations",),
                None
                if published is None
                else (f"pruned so, {deliveries(published)} came before a cause", not published),
            ),
            claim(
                "the safe pruning of this package breaks no causal order",
                "ours",
                ("violations",),
                None
                if safe is None
                else (counted(round(safe), "early delivery", "early deliveries"), not safe),
            ),
        ],
        **table(PRUNED, _pruned(pruned)),
    )


def _pruned(pruned: Results) -> Iterator[dict[str, Any]]:
    for groups, of_groups in pruned.by("groups"):
        for skewed, of_links in of_groups.by("skewed"):
            for pruning in ("safe", "none", "published"):
                found = of_links.of(pruning=pruning)
                mean = found.mean("tt.mean")
                if mean is not None:
                    yield {
                        "links": "0-400 ms up, 500 ms to one peer" if skewed else "0-50 ms",
                        "groups": groups,
                        "pruning": pruning,
                        "mean": mean,
                        "largest": max(found.values("tt.max")),
                        "early": sum(found.values("violations")),
                        "checked": sum(found.values("violations.checked")),
                    }


def wire_section(grid: Results) -> Section | None:
    """Return accounting, encoding and entropy, and how far Lemma 3 holds."""
    missing, extra = grid.total("lemma3.missing"), grid.total("lemma3.extra")
    if missing is None or extra is None:
        return None
    found = rows(_wire_asked(grid))
    ratios = [row.ours for row in found if row.quantity.endswith("by accounting")]
    return Section(
        "Bytes on the wire, and Lemma 3",
        f"Encoded, header and all, external and IDR messages take {min(ratios):.2f} to "
        f"{max(ratios):.2f} times what is counted for them."
        if ratios
        else "",
        found,
        [_wire_plot(grid.of(delay=delay), delay) for delay in DELAYS],
        about="The accounting counts a bit vector's span and 8 bytes a pair.",
        reads=WIRE,
        claims=[
            claim(
                "a bit is set exactly for an immediate dependency",
                "Lemma 3",
                ("lemma3.missing", "lemma3.extra"),
                (
                    f"{counted(round(missing), 'bit')} missing, {extra:,.0f} too many, in all runs "
                    "of the grid",
                    not (missing or extra),
                ),
            )
        ],
    )


WIRE = tuple(
    f"{role}.{name}" for role in ("external", "idr") for name in ("encoded_bytes", "overhead_bytes")
)
ENCODED = (
    ("internal", "entropy_bytes", "encoded internal overhead by entropy"),
    ("external", "overhead_bytes", "encoded external overhead by accounting"),
    ("idr", "overhead_bytes", "encoded idr overhead by accounting"),
)
"""(role, what the encoded bytes are held against, quantity)."""


def _wire_asked(grid: Results) -> Iterator[Asked]:
    for delay, peers in LARGEST.items():
        at = grid.of(delay=delay, peers=peers)
        for role, below, quantity in ENCODED:
            ours = at.ratio(f"{role}.encoded_bytes", f"{role}.{below}")
            yield Asked(quantity, f"{delay}, {peers} peers", ours, "times")


def _wire_plot(grid: Results, delay: str) -> Plot:
    series = [
        grid.line(f"{role}, {word}", f"{role}.{figure}", "peers", style=style)
        for role in ("internal", "external", "idr")
        for word, figure, style in (
            ("counted", "overhead_bytes", "dashed"),
            ("encoded", "encoded_bytes", "line"),
        )
    ]
    series.append(grid.line("internal, entropy", "internal.entropy_bytes", "peers", style="points"))
    return Plot(
        f"hierarchy-wire-{delay.replace(' ms', '')}",
        f"Counted, encoded and entropy, delays {delay}",
        "peers",
        "bytes a message",
        [one for one in series if one.x],
        "Entropy: log2 of (window over bits set) / 8, for the internal bit vector.",
        y_log=True,
    )
