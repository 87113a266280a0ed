"""Pages of studies, built from tables of metrics and claims (`page.toml` of a study).

A page is a list of sections. A section selects runs (`where`), once for each entry of `each`. It
has figures, plots, claims and a finding. All of them are measures of the selected runs:

| measure                                | value                                             |
|----------------------------------------|---------------------------------------------------|
| `{mean = Q}`, `total`, `most`, `least` | of the quantity Q over the runs                   |
| `{share = [A, B]}`                     | total of A / total of B                           |
| `{ratio = [A, B]}`                     | mean of A / mean of B                             |
| `{slope = [Q, X]}`, `power`, `fit`     | growth over the parameter X; `from`, `to`: range  |
| `{quotient = [M, N]}`, `{rest = M}`    | measure M / measure N; 1 - measure M              |
| `{size = M}`                           | absolute value of a measure                       |
| `{fold = "most", by = X, of = M}`      | over the values of X: a name of `FOLDS`           |

Every measure may have `where` (further conditions) and `without` (conditions of its section that it
ignores). Texts and quantities are formats over the names of `each` and `by`. `reads` follows from
the measures. A value that no run has is omitted. A claim without values is "not run". Unknown keys
are rejected.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import re
import statistics
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple, TypeAlias

from antecede.errors import LocalError
from antecede.formatting import counted
from antecede.lab.report import NO_FIGURES, Claim, Findings, Plot, Row, Section, Series, filled
from antecede.lab.reproductions.framework.deviation import beyond, listed, tally, unmet, within
from antecede.lab.reproductions.framework.results import Results, deviation

Table: TypeAlias = Mapping[str, Any]
FOLDS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": statistics.fmean,
    "most": max,
    "least": min,
    "sum": sum,
    "range": lambda values: max(values) / min(values) - 1 if min(values) > 0 else math.inf,
}
LIMITS: Mapping[str, Callable[[float, float], bool]] = {
    "at_most": operator.le,
    "at_least": operator.ge,
    "below": operator.lt,
    "above": operator.gt,
    "equal": operator.eq,
}
SOME_BELOW = "some_below"
"""Limit that at least one value is below. Other limits hold for all values."""
ALONE = ("rising", "within", "reaches", "power_between")
"""Tests of `holds` that exclude all others."""
GROWTH = ("slope", "power", "fit")
SIMPLE = ("mean", "total", "most", "least", "share", "ratio", *GROWTH)
OF_ONE: Mapping[str, Callable[[float], float]] = {"rest": lambda value: 1 - value, "size": abs}
COMPOSITE = ("quotient", *OF_ONE, "fold")
KEYS: Mapping[str, Sequence[str]] = {
    "page": ("each", "names", "notes", "published", "reading", "conditions", "not_reached",
             "say", "section", "template"),
    "section": ("title", "each", "leave_out", "where", "about", "always", "template", "say",
                "figure", "columns", "plot", "claim"),
    "say": ("intro", "label", "each", "leave_out", "by", "extremes", "value", "format", "unit"),
    "figure": ("quantity", "condition", "each", "leave_out", "by", "but", "from", "value", "unit",
               "place", "published", "aside"),
    "columns": ("by", "format", "column"),
    "column": ("title", "value", "format"),
    "plot": ("key", "title", "x", "y", "x_log", "y_log", "caption", "each", "leave_out", "line"),
    "line": ("label", "over", "by", "value", "series", "where", "each", "leave_out", "style",
             "published", "published_at"),
    "claim": ("statement", "place", "each", "leave_out", "only", "by", "but", "from", "value",
              "unit", "format", "published", "holds", "compare", "compare_over", "strictly"),
}  # fmt: skip
PARTS = {
    "page": ("say", "section"),
    "section": ("say", "figure", "columns", "plot", "claim"),
    "columns": ("column",),
    "plot": ("line",),
}
NEEDED = {"plot": "line", "columns": "column"}
MORE = {"fold": ("by", "but", "of"), "slope": ("from", "to"), "fit": ("from", "to")}
_NAME = re.compile(r"\{(\w+)\}")
LISTED = 8
"""Largest number of values that a claim lists one by one."""


def page_of(package: str) -> Callable[[Results, bool], Findings]:
    """Return a function that builds a study's page from `page.toml` of its package."""
    return functools.partial(_findings, package)


def page_from(page: Table) -> Callable[[Results, bool], Findings]:
    """Return a function that builds a page from its tables."""
    return functools.partial(_findings, page)


def _findings(page: str | Table, results: Results, quick: bool) -> Findings:
    table = read_page(page) if isinstance(page, str) else page
    return Builder(table, results, quick).findings()


@functools.lru_cache
def read_page(package: str) -> Table:
    """Return the tables of `page.toml` of a package."""
    return tomllib.loads((files(package) / "page.toml").read_text(encoding="utf-8"))


class Place(NamedTuple):
    """Conditions that select runs, and names for formats."""

    where: Mapping[str, Any]
    names: Mapping[str, Any]

    def at(self, more: Mapping[str, Any]) -> Place:
        """Return the selection with further conditions, which are names too."""
        return Place({**self.where, **more}, {**self.names, **more})

    def named(self, entry: Table) -> Place:
        """Return the selection for an entry of `each`: `where` are conditions, the rest names."""
        given = {name: value for name, value in entry.items() if name != "where"}
        return Place(self.where, {**self.names, **given}).at(entry.get("where", {}))

    def text(self, value: str) -> str:
        """Format a text with the names."""
        return value.format_map(self.names)

    def fill(self, value: Any) -> Any:
        """Fill the names into the texts of a value. "{name}" alone becomes the value itself."""
        if isinstance(value, str):
            found = _NAME.fullmatch(value)
            return self.names[found[1]] if found else value.format_map(self.names)
        if isinstance(value, list):
            return [self.fill(one) for one in value]
        if isinstance(value, Mapping):
            return {name: self.fill(one) for name, one in value.items()}
        return value


class Builder:
    """Builder of a study's page from the results of its runs."""

    def __init__(self, page: Table, results: Results, quick: bool) -> None:
        self.page, self.results, self.quick = page, results, quick
        self.names: Table = page.get("names", {})
        check_page(page)

    def findings(self) -> Findings:
        """Build the page."""
        start = Place({}, {})
        tables = [(one, place) for one in self.page["section"] for place in self.each(one, start)]
        sections = [one for table, place in tables for one in self._shown(table, place)]
        said, reads = self._said(self.page.get("say", ()), start)
        seeds = self.results.seeds()
        return Findings(
            finding=" ".join(said) or "No run has results.",
            reading=self.page.get("reading", ()),
            conditions=[
                *(text.format(seeds=seeds) for text in self.page.get("conditions", ())),
                *(["quick run: few values and seeds"] if self.quick else []),
            ],
            sections=sections,
            not_reached=[
                *unmet(sections),
                *beyond(row for section in sections for row in section.rows),
                *self.page.get("not_reached", ()),
            ],
            reads=reads,
        )

    def _shown(self, table: Table, place: Place) -> list[Section]:
        """Build the section. Return nothing if no run has its values, unless `always` is set."""
        section = self._section(table, place)
        judged = any(claim.found != NO_FIGURES for claim in section.claims)
        return [section] if judged or table.get("always") else filled([section])

    def _section(self, table: Table, place: Place) -> Section:
        table = {**self.page.get("template", {}).get(table.get("template"), {}), **table}
        place = place.at(table.get("where", {}))
        figures = table.get("figure", ())
        claims = [
            self._claim(one, at)
            for one in table.get("claim", ())
            for at in self.each(one, place)
            if all(at.names.get(name) in given for name, given in one.get("only", {}).items())
        ]
        said, reads = self._said(table.get("say", ()), place)
        tallied = [one for one in figures if not one.get("aside")]
        rows_tallied = list(self._rows(tallied, place))
        if any(row.paper is not None for row in rows_tallied):
            said.append(f"{tally(rows_tallied).capitalize()}.")
            reads = (*reads, *self._reads(tallied, place))
        columns, lines = self._columns(table.get("columns"), place)
        return Section(
            _capital(place.text(table["title"])),
            " ".join(said),
            list(self._rows(figures, place)),
            [plot for one in table.get("plot", ()) for plot in self._plots(one, place)],
            columns,
            lines,
            place.text(table.get("about", "")),
            tuple(dict.fromkeys(reads)),
            claims,
        )

    def each(self, table: Table, place: Place) -> list[Place]:
        """Return the selection for each entry of a table's `each`, or the selection itself.

        `each` is a list of entries, or names lists of the page. `leave_out` removes entries.
        """
        if "each" not in table:
            return [place]
        given = [table["each"]] if isinstance(table["each"], str) else table["each"]
        lists = (self.page["each"][one] if isinstance(one, str) else [one] for one in given)
        left_out = table.get("leave_out", {}).items()
        return [
            place.named(entry)
            for entry in itertools.chain(*lists)
            if not any(entry.get(name) in values for name, values in left_out)
        ]

    # -- measures --------------------------------------------------------------------------------

    def measure(self, measure: Table, place: Place) -> float | None:
        """Return the value of a measure (None: no run has it)."""
        place = self._picked(measure, place)
        kind = _kind(measure)
        if kind == "quotient":
            above, below = (self.measure(one, place) for one in measure[kind])
            return above / below if above is not None and below else None
        if kind in OF_ONE:
            value = self.measure(measure[kind], place)
            return None if value is None else OF_ONE[kind](value)
        if kind == "fold":
            axis, left_out = place.fill(measure["by"]), measure.get("but", ())
            points = self._along(measure["of"], place, axis)
            found = [value for point, value in points if point[axis] not in left_out]
            return FOLDS[place.fill(measure["fold"])](found) if found else None
        there, argument = self.results.of(**place.where), place.fill(measure[kind])
        if kind in GROWTH:
            return _growth(kind, there, measure, *argument)
        if kind in ("most", "least"):
            values = there.values(argument)
            return FOLDS[kind](values) if values else None
        names = argument if isinstance(argument, list) else [argument]
        found_value: float | None = getattr(there, kind)(*names)
        return found_value

    def _picked(self, measure: Table, place: Place) -> Place:
        """Return the selection with the conditions of a measure."""
        where = {k: v for k, v in place.where.items() if k not in measure.get("without", ())}
        return Place({**where, **place.fill(measure.get("where", {}))}, place.names)

    def _along(
        self, measure: Table, place: Place, axis: str | Sequence[str]
    ) -> list[tuple[Table, float]]:
        """Return the measure at each value of one axis or several, without missing values."""
        axes = [place.fill(one) for one in ([axis] if isinstance(axis, str) else axis)]
        picked = self.results.of(**self._picked(measure, place).where)
        points = [dict(zip(axes, values, strict=True)) for values in picked.points(axes)]
        found = ((point, self.measure(measure, place.at(point))) for point in points)
        return [(point, value) for point, value in found if value is not None]

    # -- parts of a section ------------------------------------------------------------------------

    def _rows(self, tables: Sequence[Table], place: Place) -> Iterator[Row]:
        for table in tables:
            for own in self.each(table, place):
                for point, value in self._points(table, own):
                    at = own.named({"where": point, "at": next(iter(point.values()), "")})
                    yield Row(
                        at.text(table.get("place", "ours")),
                        at.text(table["quantity"]),
                        at.text(table.get("condition", "all runs")),
                        self._published(table, at),
                        value,
                        at.text(table.get("unit", "")),
                        self.page.get("notes", {}).get(at.fill(table.get("published")), ""),
                    )

    def _points(self, table: Table, place: Place) -> list[tuple[Table, float]]:
        lowest, left_out = table.get("from", {}), table.get("but", {})
        return [
            (point, value)
            for point, value in self._along(table["value"], place, table.get("by", ()))
            if all(point[name] >= least for name, least in lowest.items())
            and not any(point[name] in values for name, values in left_out.items())
        ]

    def _published(self, table: Table, place: Place) -> float | None:
        """Return the published value: a number, or a name in `[published]`."""
        given = place.fill(table.get("published"))
        if not isinstance(given, str):
            return None if given is None else float(given)
        found = self.page.get("published", {}).get(given)
        return None if found is None else float(found)

    def _columns(
        self, table: Table | None, place: Place
    ) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        if table is None:
            return (), ()
        axes: list[str] = table["by"]
        picked = self.results.of(**place.where)
        lines = []
        for values in picked.points(axes):
            at = place.at(dict(zip(axes, values, strict=True)))
            found = [(self.measure(one["value"], at), one) for one in table["column"]]
            cells = [
                "-" if value is None else format_value(value, one.get("format", ",.3g"))
                for value, one in found
            ]
            if any(cell != "-" for cell in cells):
                heads = [
                    format_value(value, table.get("format", {}).get(axis, ""))
                    for axis, value in zip(axes, values, strict=True)
                ]
                lines.append([*heads, *cells])
        titles = [self.names.get(axis, axis) for axis in axes]
        return [*titles, *(column["title"] for column in table["column"])], lines

    def _plots(self, table: Table, place: Place) -> Iterator[Plot]:
        for own in self.each(table, place):
            series = [
                line
                for one in table["line"]
                for at in self.each(one, own)
                for line in self._lines(one, at)
            ]
            if table.get("y_log"):
                series = [_above_zero(line) for line in series]
            yield Plot(
                own.text(table["key"]),
                _capital(own.text(table["title"])),
                own.text(table["x"]),
                own.text(table["y"]),
                [line for line in series if line.x],
                own.text(table.get("caption", "")),
                table.get("x_log", False),
                table.get("y_log", False),
            )

    def _lines(self, table: Table, place: Place) -> Iterator[Series]:
        axis = place.fill(table["over"])
        style = table.get("style", "line")
        if "series" in table:  # curve of each run
            for run in self.results.where(**place.at(place.fill(table.get("where", {}))).where):
                figures, (x, y) = self.results.figures(run), table["series"]
                if x in figures and y in figures:
                    names = {**place.names, **run.parameters}
                    yield Series(table["label"].format_map(names), figures[x], figures[y])
            return
        where, by = place.at(place.fill(table.get("where", {}))), table.get("by")
        values = self.results.places(by, **where.where) if by else [None]
        for value in values:
            yield self._line(table, where.at({by: value}) if by else where, axis, style)

    def _line(self, table: Table, place: Place, axis: str, style: str) -> Series:
        points = []
        for point, value in self._along(table["value"], place, axis):
            by_seed = self._along(table["value"], place.at(point), "seed")
            points.append((float(point[axis]), value, deviation([one for _, one in by_seed])))
        several = any(spread for _, _, spread in points)
        paper = self._published(table, place)
        at = place.fill(table.get("published_at"))
        return Series(
            place.text(table["label"]),
            [x for x, _, _ in points],
            [y for _, y, _ in points],
            [spread for _, _, spread in points] if several else (),
            [] if paper is None else [(float(at), paper)],
            style,
        )

    def _said(self, tables: Sequence[Table], place: Place) -> tuple[list[str], tuple[str, ...]]:
        """Return sentences, each with an introduction and labelled values, and their quantities."""
        sentences, reads = [], list[str]()
        for table in tables:
            words = []
            for own in self.each(table, place):
                found = self._along(table["value"], own, table.get("by", ()))
                if found:
                    words.append(f"{own.text(table['label'])} {_ends(found, table, self.names)}")
            if words:
                sentences.append(f"{place.text(table['intro'])}: {listed(words)}.")
                reads += self._reads([table], place)
        return sentences, tuple(dict.fromkeys(reads))

    def _reads(self, tables: Iterable[Table], place: Place) -> Iterator[str]:
        for table in tables:
            for own in self.each(table, place):
                yield from _read(table["value"], own)

    # -- claims ------------------------------------------------------------------------------------

    def _claim(self, table: Table, place: Place) -> Claim:
        measures = table.get("compare") or [table["value"]]
        answer = self._tested(table, place) if "holds" in table else self._compared(table, place)
        found, holds = answer or (NO_FIGURES, None)
        reads = tuple(dict.fromkeys(name for one in measures for name in _read(one, place)))
        return Claim(
            place.text(table["statement"]), place.text(table.get("place", "ours")), found, holds,
            reads,
        )  # fmt: skip

    def _tested(self, table: Table, place: Place) -> tuple[str, bool | None] | None:
        test: Table = table["holds"]
        if "power_between" in test:
            return self._power(table, place)
        points = self._points(table, place)
        if not points:
            return None
        values = [value for _, value in points]
        said = _values_said(points, table, self.names)
        if "rising" in test:
            if len(points) < 2:
                return said, None
            slack, strictly = test["rising"], table.get("strictly", False)
            rises = (a < b if strictly else a <= b + slack for a, b in itertools.pairwise(values))
            return said, all(rises)
        if test.keys() & {"within", "reaches"}:
            return self._near(table, place, points, said)
        return said, _passes(values, test)

    def _near(
        self,
        table: Table,
        place: Place,
        points: Sequence[tuple[Mapping[str, Any], float]],
        said: str,
    ) -> tuple[str, bool | None] | None:
        pairs = [(value, self._published(table, place.at(point))) for point, value in points]
        rows = [Row("", "", "", paper, value) for value, paper in pairs if paper is not None]
        if not rows:
            return None
        test, ratios = table["holds"], [row.ratio or 0.0 for row in rows]
        told = f"{said}: {listed([f'{ratio:.2f}' for ratio in ratios])} times the published values"
        if "reaches" in test:
            return told, all(ratio >= test["reaches"] for ratio in ratios)
        return told, within(rows, test["within"]) == len(rows)

    def _power(self, table: Table, place: Place) -> tuple[str, bool | None] | None:
        """Compare the 95 % interval of a power of growth with two limits."""
        quantity, axis = place.fill(table["value"]["power"])
        there = self.results.of(**place.at(place.fill(table["value"].get("where", {}))).where)
        low, high = table["holds"]["power_between"]
        line, power = there.line("", quantity, axis), there.power(quantity, axis)
        if power is None:
            return None
        said = f"{min(line.y):,.1f} to {max(line.y):,.1f} {table.get('unit', '')}".rstrip()
        said += f", as the power {power:.3f}"
        interval = there.power_interval(quantity, axis)
        if interval is None:
            return f"{said} (too few runs for an interval)", None
        said += f" (95 % interval {interval[0]:.3f} to {interval[1]:.3f})"
        if low <= interval[0] and interval[1] <= high:
            return said, True
        return said, None if interval[0] <= high and low <= interval[1] else False

    def _compared(self, table: Table, place: Place) -> tuple[str, bool | None] | None:
        """Test that values rise at every point of the axes `by`.

        The values are those of the measures `compare`, or of one measure over the axis
        `compare_over`.
        """
        strictly, kept, broken = table.get("strictly", "compare_over" in table), 0, []
        first = table["compare"][0] if "compare" in table else table["value"]
        for point, _ in self._along(first, place, table.get("by", ())):
            at = place.at(point)
            if "compare" in table:
                values = [self.measure(one, at) for one in table["compare"]]
            else:
                values = [value for _, value in self._along(first, at, table["compare_over"])]
            known = [value for value in values if value is not None]
            if len(known) < max(2, len(values)):
                continue
            if all(a < b or (a == b and not strictly) for a, b in itertools.pairwise(known)):
                kept += 1
            else:
                broken.append(_point(point, self.names))
        if not kept and not broken:
            return None
        said = f"so in {kept} of {counted(kept + len(broken), 'case')}"
        if broken and table.get("by"):
            said += f", not at {'; '.join(broken[:LISTED])}"
            said += f" and {len(broken) - LISTED} more" if len(broken) > LISTED else ""
        return said, not broken


def _growth(how: str, there: Results, measure: Table, quantity: str, axis: str) -> float | None:
    low, high = measure.get("from", -math.inf), measure.get("to", math.inf)
    if how == "power":
        return there.power(quantity, axis)
    points = [p for p in there.line("", quantity, axis).points if low <= p[0] <= high]
    if len(points) < (3 if how == "fit" else 2):
        return None
    x, y = zip(*points, strict=True)
    if how == "slope":
        return statistics.linear_regression(x, y).slope
    return statistics.correlation(x, y) ** 2 if len(set(y)) > 1 else None


def _kind(measure: Table) -> str:
    return next(name for name in (*COMPOSITE, *SIMPLE) if name in measure)


def _read(measure: Table, place: Place) -> Iterator[str]:
    """Yield the quantities of a measure. Unknown names become `*`."""
    kind = _kind(measure)
    if kind in COMPOSITE:
        inner = measure["of"] if kind == "fold" else measure[kind]
        for one in inner if kind == "quotient" else [inner]:
            yield from _read(one, place)
    else:
        argument = Place({}, _Any(place.names)).fill(measure[kind])
        names = argument if isinstance(argument, list) else [argument]
        yield from names[:1] if kind in GROWTH else names


class _Any(dict[str, Any]):
    def __missing__(self, name: str) -> str:
        return "*"


def _passes(values: Sequence[float], test: Table) -> bool:
    limits = {name: limit for name, limit in test.items() if name != SOME_BELOW}
    kept = all(LIMITS[name](value, limit) for name, limit in limits.items() for value in values)
    return kept and (SOME_BELOW not in test or min(values) < test[SOME_BELOW])


def check_page(page: Table) -> None:
    """Raise LocalError for an unknown key, measure or test."""
    _check_table("page", page)
    for section in page.get("template", {}).values():
        _check_table("section", section)


def _check_table(kind: str, table: Table) -> None:
    _check_keys(kind, table)
    if NEEDED.get(kind) not in (None, *table):
        raise LocalError(f"page: {kind} {table.get('key', '')!r} needs the table {NEEDED[kind]!r}")
    for part in PARTS.get(kind, ()):
        inner = table.get(part, ())
        for one in [inner] if isinstance(inner, Mapping) else inner:
            _check_table(part, one)
    if kind == "claim":
        _check_claim(table)
    elif "value" in KEYS[kind] and "series" not in table:
        _check_measure(table["value"])


def _check_claim(claim: Table) -> None:
    for measure in claim.get("compare") or [claim["value"]]:
        _check_measure(measure)
    if ("holds" in claim) is bool(claim.keys() & {"compare", "compare_over"}):
        raise LocalError(
            f"page, claim {claim['statement']!r}: set one of holds, compare and compare_over"
        )
    test = claim.get("holds", {})
    allowed = (*LIMITS, SOME_BELOW, *ALONE)
    if ("holds" in claim and not test) or test.keys() - set(allowed) or (
        len(test) > 1 and test.keys() & set(ALONE)
    ):  # fmt: skip
        raise LocalError(
            f"page, claim {claim['statement']!r}: invalid holds = {dict(test)!r}; choose from "
            f"{', '.join(allowed)} (the last {len(ALONE)} exclude all others)"
        )


def _check_measure(measure: Table) -> None:
    kinds = [name for name in (*SIMPLE, *COMPOSITE) if name in measure]
    if len(kinds) != 1:
        known = ", ".join((*SIMPLE, *COMPOSITE))
        raise LocalError(f"page: unknown measure {dict(measure)!r}; choose from {known}")
    (kind,) = kinds
    _check_keys(f"measure {kind}", measure, (kind, "where", "without", *MORE.get(kind, ())))
    inner = measure["of"] if kind == "fold" else measure[kind]
    for one in inner if kind == "quotient" else [inner] if kind in COMPOSITE else []:
        _check_measure(one)


def _check_keys(kind: str, table: Table, allowed: Sequence[str] = ()) -> None:
    known = allowed or KEYS[kind]
    if unknown := sorted(table.keys() - set(known)):
        raise LocalError(
            f"page, {kind}: unknown key {unknown[0]!r}; choose from {', '.join(known)}"
        )


def _values_said(points: Sequence[tuple[Table, float]], table: Table, names: Table) -> str:
    """Return the values with their points, or their range if there are many."""
    form, unit = table.get("format", ",.3g"), table.get("unit", "")
    unit = f" {unit}" if unit else ""
    values = [value for _, value in points]
    low, high = (format_value(one, form) for one in (min(values), max(values)))
    if len(points) == 1:
        return f"{low}{unit}"
    if low == high:
        return f"{low}{unit} in {counted(len(points), 'case')}"
    if len(points) <= LISTED:
        words = [f"{format_value(value, form)} ({_point(at, names)})" for at, value in points]
        return f"{listed(words)}{unit}"
    return f"{low} to {high}{unit} in {counted(len(points), 'case')}"


def _ends(points: Sequence[tuple[Table, float]], table: Table, names: Table) -> str:
    """Return the value, or the first and last value over the axis."""
    form, unit = table.get("format", ",.3g"), table.get("unit", "")
    unit = f" {unit}" if unit else ""
    (first, low), (last, high) = points[0], points[-1]
    if table.get("extremes"):
        (first, low), (last, high) = (pick(points, key=lambda one: one[1]) for pick in (min, max))
    low_said, high_said = format_value(low, form), format_value(high, form)
    if len(points) == 1:
        return f"{low_said}{unit}" + (f" ({_point(first, names)})" if first else "")
    if low_said == high_said and table.get("extremes"):
        return f"{low_said}{unit} everywhere"
    return f"{low_said} ({_point(first, names)}) to {high_said}{unit} ({_point(last, names)})"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _point(point: Table, names: Table) -> str:
    """Return the values of a point. Numbers get the name of their axis."""
    return ", ".join(
        value if isinstance(value, str) else f"{names.get(name, name)} {format_value(value, '')}"
        for name, value in point.items()
    )


def format_value(value: Any, form: str) -> str:
    """Return the text of a table cell."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if math.isinf(value):
        return "∞"
    return format(value, form or (",g" if isinstance(value, float) else ","))


def _above_zero(line: Series) -> Series:
    """Return the line without points that a logarithmic axis cannot show."""
    kept = [at for at, value in enumerate(line.y) if value > 0]
    return line._replace(
        x=[line.x[k] for k in kept],
        y=[line.y[k] for k in kept],
        spread=[line.spread[k] for k in kept] if line.spread else (),
    )
