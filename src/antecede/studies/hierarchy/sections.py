"""Parts of the study of Evropeytsev et al. 2016 that its source has no figures for: more groups,
pruning, the wire.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from antecede.studies.frame.compare_paper import listed
from antecede.studies.frame.findings import Claim, Plot, Row, Section
from antecede.studies.frame.results import Results
from antecede.studies.hierarchy.paper import DELAYS, LARGEST


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
        _group_finding(results, names),
        about="240 peers, half external, the other half in one to four internal groups (0-50 ms). "
        "The source describes several super peers and does not measure them.",
        reads=tuple(figure for _, figure in names) if _group_finding(results, names) else (),
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


def _group_finding(results: Results, names: Sequence[tuple[str, str]]) -> str:
    """Tell how overheads change from the fewest to the most internal groups."""
    places = results.places("groups", kind="groups")
    if len(places) < 2:
        return ""
    words = []
    for label, figure in names:
        few, many = (results.spread(figure, kind="groups", groups=places[k]) for k in (0, -1))
        if few and many:
            words.append(f"{label} from {few.mean:,.1f} to {many.mean:,.1f}")
    return (
        f"From {places[0]} to {places[-1]} internal groups, in bytes a message: {listed(words)}."
        if words
        else ""
    )


def validation_section(results: Results) -> Section | None:
    """Return what checking every delivery by IDR has found: what the source did to validate."""
    runs = [
        run
        for run in results.runs
        if run.parameters.get("pruning") != "published"
        and "violations.checked" in results.figures(run)
    ]
    checked = sum(results.figures(run)["violations.checked"] for run in runs)
    if not checked:
        return None
    early = sum(results.figures(run)["violations"] for run in runs)
    said = f"{early:,.0f} of {checked:,.0f} deliveries came before a cause"
    return Section(
        "Validation by IDR",
        f"{said[0].upper()}{said[1:]}, in {len(runs):,} runs.",
        [
            Row(
                "section 3.2, text",
                "deliveries before a cause",
                f"{checked:,.0f} deliveries checked, all runs but those of the published pruning",
                None,
                early,
                "deliveries",
                "the source validates every delivery so, and does not say what it found",
            )
        ],
        about="Every delivery of every run is held against an IDR that runs beside, as in the "
        "source: what the protocol delivers, its causes have to come before.",
        reads=("violations", "violations.checked"),
        claims=[
            Claim(
                'no causal order violation is found when a delivery "is validated against an IDR"',
                "section 3.2",
                said,
                not early,
                ("violations", "violations.checked"),
            )
        ],
    )


def pruning_section(results: Results) -> Section | None:
    """Return the size of TT and the violations under each pruning, also under skewed links."""
    lines = list(_pruning_lines(results))
    if not lines:
        return None
    early = {
        name: sum(results.values("violations", kind="pruning", pruning=name))
        for name in ("published", "safe", "none")
        if results.values("violations", kind="pruning", pruning=name)
    }
    words = [f"{value:,.0f} with {PRUNINGS[name]}" for name, value in early.items()]
    safe = early.get("safe")
    return Section(
        "Pruning of the super peer's table",
        f"Deliveries before a cause: {listed(words)}." if words else "",
        about="Skewed links are those on which the published rule forgets what a message still "
        "under way depends on.",
        reads=("violations",) if words else (),
        claims=[
            Claim(
                "once all internal peers have delivered m2, what m1, its cause, says can be "
                "deleted from TT",
                "section 3.2",
                f"pruned so, {early['published']:,.0f} deliveries came before a cause"
                if "published" in early
                else "no run gave figures",
                not early["published"] if "published" in early else None,
                ("violations",),
            ),
            Claim(
                "the safe pruning of this package breaks no causal order",
                "ours",
                "no run gave figures" if safe is None else f"{safe:,.0f} early deliveries",
                None if safe is None else not safe,
                ("violations",),
            ),
        ],
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


PRUNINGS = {"published": "the published rule", "safe": "the safe one", "none": "none"}


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
    if not results.values("lemma3.missing", kind="grid"):
        return None
    plots = [_wire_plot(results, delay) for delay in DELAYS]
    missing = sum(results.values("lemma3.missing", kind="grid"))
    extra = sum(results.values("lemma3.extra", kind="grid"))
    ratios = [row.ours for row in rows if row.quantity.endswith("by accounting")]
    return Section(
        "Bytes on the wire, and Lemma 3",
        f"Encoded, header and all, external and IDR messages take {min(ratios):.2f} to "
        f"{max(ratios):.2f} times what is counted for them."
        if ratios
        else "",
        rows,
        plots,
        about="The accounting counts a bit vector's span and 8 bytes a pair.",
        reads=WIRE if ratios else (),
        claims=[
            Claim(
                "a bit is set exactly for an immediate dependency",
                "Lemma 3",
                f"{missing:,.0f} bits missing, {extra:,.0f} too many, in all runs of the grid",
                not (missing or extra),
                ("lemma3.missing", "lemma3.extra"),
            )
        ],
    )


WIRE = tuple(
    f"{role}.{name}" for role in ("external", "idr") for name in ("encoded_bytes", "overhead_bytes")
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
        if encoded is not None and base is not None and base.mean:
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
