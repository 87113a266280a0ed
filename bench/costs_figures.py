"""Figures of `bench.costs`: one per protocol, and one of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.costs import DELAY_S, FIGURES, PERIOD_S, SIZES, CostRow
from bench.panels import DASHED, DOTTED, Curve, Panel, draw_curves

COMPARED = "bss"
"""Protocol that is drawn faintly in every figure."""

WINDOW = 1 + int((PERIOD_S[1] + 2 * DELAY_S[1]) / PERIOD_S[0])
"""Messages that a member can send after the oldest one in another's bit vector."""

BOUNDS: dict[str, tuple[str, Callable[[int], float]]] = {
    "bss": ("4 n", lambda n: 4 * n),
    "bss/differences": ("8 n", lambda n: 8 * n),
    "ds": ("8 n", lambda n: 8 * n),
    "idr": ("8 (n - 1)", lambda n: 8 * (n - 1)),
    "matrix": ("4 n²", lambda n: 4 * n * n),
    "hierarchical/internal": (f"O(n) bits: {WINDOW} n / 8", lambda n: WINDOW * n / 8),
    "hierarchical/external": (
        f"O(l) + O(n): 8 l + {2 * WINDOW} n / 8",
        lambda n: 8 * (n - n // 2 + 1) + 2 * WINDOW * n / 8,
    ),
}
"""Curve -> maximum control bytes of a message by group size, by the source's accounting."""

FAMILIES = (
    ("to all", ("unordered", "fifo", "bss", "idr", "sb", "ds", "matrix")),
    (
        "to some, or by relays",
        (
            "bss",
            "ses",
            "sent",
            "linear",
            "physical",
            "linear-physical",
            "hierarchical/internal",
            "hierarchical/external",
        ),
    ),
    ("by topics", ("bss", "tv", "tv-lt", "tv-pt", "tv-vt", "htbc")),
)


def draw(rows: Sequence[CostRow]) -> None:
    for name in dict.fromkeys(row.curve.partition("/")[0] for row in rows):
        curves = [c for c in dict.fromkeys(r.curve for r in rows) if c.partition("/")[0] == name]
        draw_curves(
            _make_panels(rows, name, curves),
            FIGURES / f"costs-{name}.svg",
            x_label="members",
            ticks=SIZES,
        )
    panels = [
        Panel(f"bytes a message {title}", _make_comparison(rows, names))
        for title, names in FAMILIES
    ]
    draw_curves(panels, FIGURES / "costs.svg", x_label="members", ticks=SIZES, size=(3.7, 4.6))


def _get_points(rows: Sequence[CostRow], curve: str, field: str) -> list[tuple[float, float]]:
    return [(row.members, getattr(row, field)) for row in rows if row.curve == curve]


def _make_panels(rows: Sequence[CostRow], name: str, curves: Sequence[str]) -> list[Panel]:
    control, storage, spent = [], [], []
    for colour, curve in enumerate(curves):
        short = curve.partition("/")[2] or name
        control += [
            Curve(f"{short}, counted", _get_points(rows, curve, "control_bytes"), colour),
            Curve(f"{short}, encoded", _get_points(rows, curve, "wire_bytes"), colour, DASHED),
        ]
        if curve in BOUNDS:
            words, bound = BOUNDS[curve]
            sizes = [row.members for row in rows if row.curve == curve]
            line = [(n, float(bound(n))) for n in sizes]
            control.append(Curve(words, line, colour, DOTTED, marked=False))
        storage.append(Curve(short, _get_points(rows, curve, "storage_bytes"), colour))
        spent.append(Curve(short, _get_points(rows, curve, "receive_us"), colour))
    if name != COMPARED:
        for curves_, field in (
            (control, "control_bytes"),
            (storage, "storage_bytes"),
            (spent, "receive_us"),
        ):
            curves_.append(Curve(COMPARED, _get_points(rows, COMPARED, field), None))
    return [
        Panel("control information, bytes a message", control),
        Panel("storage, bytes a member", storage),
        Panel("receive, µs a message", spent),
    ]


def _make_comparison(rows: Sequence[CostRow], names: Sequence[str]) -> list[Curve]:
    known = {row.curve for row in rows}
    shown = [name for name in names if name in known]
    colours = iter(range(8))
    return [
        Curve(
            name,
            _get_points(rows, name, "control_bytes"),
            None if name == COMPARED else next(colours),
        )
        for name in shown
    ]
