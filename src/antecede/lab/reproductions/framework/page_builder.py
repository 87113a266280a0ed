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
from antecede.formatting import pluralize
from antecede.lab.report import (
    NO_METRICS,
    Claim,
    Findings,
    Plot,
    Row,
    Section,
    Series,
    drop_empty_sections,
)
from antecede.lab.reproductions.framework.deviation import (
    count_within,
    describe_deviations,
    describe_failed_claims,
    describe_outliers,
    join_words,
)
from antecede.lab.reproductions.framework.results import Results, standard_deviation

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
EXCLUSIVE_TESTS = ("rising", "within", "reaches", "power_between")
"""Tests of `holds` that exclude all others."""
GROWTH_MEASURES = ("slope", "power", "fit")
SIMPLE_MEASURES = ("mean", "total", "most", "least", "share", "ratio", *GROWTH_MEASURES)
UNARY: Mapping[str, Callable[[float], float]] = {"rest": lambda value: 1 - value, "size": abs}
COMPOSITE_MEASURES = ("quotient", *UNARY, "fold")
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
REQUIRED_PARTS = {"plot": "line", "columns": "column"}
EXTRA_KEYS = {"fold": ("by", "but", "of"), "slope": ("from", "to"), "fit": ("from", "to")}
_NAME = re.compile(r"\{(\w+)\}")
MAX_LISTED = 8  # Largest number of values that a claim lists one by one


def findings_from_package(package: str) -> Callable[[Results, bool], Findings]:
    """Return a function that builds a study's page from `page.toml` of its package."""
    return functools.partial(_build_findings, package)


def findings_from_tables(page: Table) -> Callable[[Results, bool], Findings]:
    """Return a function that builds a page from its tables."""
    return functools.partial(_build_findings, page)


def _build_findings(page: str | Table, results: Results, quick: bool) -> Findings:
    table = read_page(page) if isinstance(page, str) else page
    return PageBuilder(table, results, quick).build()


@functools.lru_cache
def read_page(package: str) -> Table:
    """Return the tables of `page.toml` of a package."""
    return tomllib.loads((files(package) / "page.toml").read_text(encoding="utf-8"))


class Selection(NamedTuple):
    """Conditions that select runs, and names for formats."""

    where: Mapping[str, Any]
    names: Mapping[str, Any]

    def narrow(self, more: Mapping[str, Any]) -> Selection:
        """Return the selection with further conditions, which are names too."""
        return Selection({**self.where, **more}, {**self.names, **more})

    def narrow_to_entry(self, entry: Table) -> Selection:
        """Return the selection for an entry of `each`: `where` are conditions, the rest names."""
        given = {name: value for name, value in entry.items() if name != "where"}
        return Selection(self.where, {**self.names, **given}).narrow(entry.get("where", {}))

    def format_text(self, value: str) -> str:
        """Format a text with the names."""
        return value.format_map(self.names)

    def fill_names(self, value: Any) -> Any:
        """Fill the names into the texts of a value. "{name}" alone becomes the value itself."""
        if isinstance(value, str):
            found = _NAME.fullmatch(value)
            return self.names[found[1]] if found else value.format_map(self.names)
        if isinstance(value, list):
            return [self.fill_names(one) for one in value]
        if isinstance(value, Mapping):
            return {name: self.fill_names(one) for name, one in value.items()}
        return value


class PageBuilder:
    """Builder of a study's page from the results of its runs."""

    def __init__(self, page: Table, results: Results, quick: bool) -> None:
        self.page, self.results, self.quick = page, results, quick
        self.names: Table = page.get("names", {})
        check_page(page)

    def build(self) -> Findings:
        """Build the page."""
        start = Selection({}, {})
        tables = [
            (one, selection)
            for one in self.page["section"]
            for selection in self.expand_each(one, start)
        ]
        sections = [
            one for table, selection in tables for one in self._build_sections(table, selection)
        ]
        text, reads = self._build_sentences(self.page.get("say", ()), start)
        seeds = self.results.describe_seeds()
        return Findings(
            finding=" ".join(text) or "No run has results.",
            reading=self.page.get("reading", ()),
            conditions=[
                *(text.format(seeds=seeds) for text in self.page.get("conditions", ())),
                *(["quick run: few values and seeds"] if self.quick else []),
            ],
            sections=sections,
            not_reached=[
                *describe_failed_claims(sections),
                *describe_outliers(row for section in sections for row in section.rows),
                *self.page.get("not_reached", ()),
            ],
            reads=reads,
        )

    def _build_sections(self, table: Table, selection: Selection) -> list[Section]:
        """Build the section. Return nothing if no run has its values, unless `always` is set."""
        section = self._build_section(table, selection)
        judged = any(claim.found != NO_METRICS for claim in section.claims)
        return [section] if judged or table.get("always") else drop_empty_sections([section])

    def _build_section(self, table: Table, selection: Selection) -> Section:
        table = {**self.page.get("template", {}).get(table.get("template"), {}), **table}
        selection = selection.narrow(table.get("where", {}))
        figures = table.get("figure", ())
        claims = [
            self._build_claim(one, at)
            for one in table.get("claim", ())
            for at in self.expand_each(one, selection)
            if all(at.names.get(name) in given for name, given in one.get("only", {}).items())
        ]
        text, reads = self._build_sentences(table.get("say", ()), selection)
        tallied = [one for one in figures if not one.get("aside")]
        rows_tallied = list(self._build_rows(tallied, selection))
        if any(row.paper is not None for row in rows_tallied):
            text.append(f"{describe_deviations(rows_tallied).capitalize()}.")
            reads = (*reads, *self._collect_quantities(tallied, selection))
        columns, lines = self._build_table(table.get("columns"), selection)
        return Section(
            _capitalize(selection.format_text(table["title"])),
            " ".join(text),
            list(self._build_rows(figures, selection)),
            [plot for one in table.get("plot", ()) for plot in self._build_plots(one, selection)],
            columns,
            lines,
            selection.format_text(table.get("about", "")),
            tuple(dict.fromkeys(reads)),
            claims,
        )

    def expand_each(self, table: Table, selection: Selection) -> list[Selection]:
        """Return the selection for each entry of a table's `each`, or the selection itself.

        `each` is a list of entries, or names lists of the page. `leave_out` removes entries.
        """
        if "each" not in table:
            return [selection]
        given = [table["each"]] if isinstance(table["each"], str) else table["each"]
        lists = (self.page["each"][one] if isinstance(one, str) else [one] for one in given)
        left_out = table.get("leave_out", {}).items()
        return [
            selection.narrow_to_entry(entry)
            for entry in itertools.chain(*lists)
            if not any(entry.get(name) in values for name, values in left_out)
        ]

    # -- measures --------------------------------------------------------------------------------

    def evaluate(self, measure: Table, selection: Selection) -> float | None:
        """Return the value of a measure (None: no run has it)."""
        selection = self._narrow_to_measure(measure, selection)
        kind = _find_kind(measure)
        if kind == "quotient":
            above, below = (self.evaluate(one, selection) for one in measure[kind])
            return above / below if above is not None and below else None
        if kind in UNARY:
            value = self.evaluate(measure[kind], selection)
            return None if value is None else UNARY[kind](value)
        if kind == "fold":
            axis, left_out = selection.fill_names(measure["by"]), measure.get("but", ())
            points = self._evaluate_along(measure["of"], selection, axis)
            found = [value for point, value in points if point[axis] not in left_out]
            return FOLDS[selection.fill_names(measure["fold"])](found) if found else None
        there, argument = (
            self.results.select(**selection.where),
            selection.fill_names(measure[kind]),
        )
        if kind in GROWTH_MEASURES:
            return _fit_growth(kind, there, measure, *argument)
        if kind in ("most", "least"):
            values = there.values(argument)
            return FOLDS[kind](values) if values else None
        names = argument if isinstance(argument, list) else [argument]
        found_value: float | None = getattr(there, kind)(*names)
        return found_value

    def _narrow_to_measure(self, measure: Table, selection: Selection) -> Selection:
        where = {k: v for k, v in selection.where.items() if k not in measure.get("without", ())}
        return Selection(
            {**where, **selection.fill_names(measure.get("where", {}))}, selection.names
        )

    def _evaluate_along(
        self, measure: Table, selection: Selection, axis: str | Sequence[str]
    ) -> list[tuple[Table, float]]:
        """Return the measure at each value of one axis or several, without missing values."""
        axes = [selection.fill_names(one) for one in ([axis] if isinstance(axis, str) else axis)]
        picked = self.results.select(**self._narrow_to_measure(measure, selection).where)
        points = [dict(zip(axes, values, strict=True)) for values in picked.list_points(axes)]
        found = ((point, self.evaluate(measure, selection.narrow(point))) for point in points)
        return [(point, value) for point, value in found if value is not None]

    # -- parts of a section ------------------------------------------------------------------------

    def _build_rows(self, tables: Sequence[Table], selection: Selection) -> Iterator[Row]:
        for table in tables:
            for own in self.expand_each(table, selection):
                for point, value in self._evaluate_points(table, own):
                    at = own.narrow_to_entry({"where": point, "at": next(iter(point.values()), "")})
                    yield Row(
                        at.format_text(table.get("place", "ours")),
                        at.format_text(table["quantity"]),
                        at.format_text(table.get("condition", "all runs")),
                        self._find_published_value(table, at),
                        value,
                        at.format_text(table.get("unit", "")),
                        self.page.get("notes", {}).get(at.fill_names(table.get("published")), ""),
                    )

    def _evaluate_points(self, table: Table, selection: Selection) -> list[tuple[Table, float]]:
        lowest, left_out = table.get("from", {}), table.get("but", {})
        return [
            (point, value)
            for point, value in self._evaluate_along(table["value"], selection, table.get("by", ()))
            if all(point[name] >= least for name, least in lowest.items())
            and not any(point[name] in values for name, values in left_out.items())
        ]

    def _find_published_value(self, table: Table, selection: Selection) -> float | None:
        given = selection.fill_names(table.get("published"))
        if not isinstance(given, str):
            return None if given is None else float(given)
        found = self.page.get("published", {}).get(given)
        return None if found is None else float(found)

    def _build_table(
        self, table: Table | None, selection: Selection
    ) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        if table is None:
            return (), ()
        axes: list[str] = table["by"]
        picked = self.results.select(**selection.where)
        lines = []
        for values in picked.list_points(axes):
            at = selection.narrow(dict(zip(axes, values, strict=True)))
            found = [(self.evaluate(one["value"], at), one) for one in table["column"]]
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

    def _build_plots(self, table: Table, selection: Selection) -> Iterator[Plot]:
        for own in self.expand_each(table, selection):
            series = [
                line
                for one in table["line"]
                for at in self.expand_each(one, own)
                for line in self._build_lines(one, at)
            ]
            if table.get("y_log"):
                series = [_drop_nonpositive(line) for line in series]
            yield Plot(
                own.format_text(table["key"]),
                _capitalize(own.format_text(table["title"])),
                own.format_text(table["x"]),
                own.format_text(table["y"]),
                [line for line in series if line.x],
                own.format_text(table.get("caption", "")),
                table.get("x_log", False),
                table.get("y_log", False),
            )

    def _build_lines(self, table: Table, selection: Selection) -> Iterator[Series]:
        axis = selection.fill_names(table["over"])
        style = table.get("style", "line")
        if "series" in table:  # curve of each run
            for run in self.results.find_runs(
                **selection.narrow(selection.fill_names(table.get("where", {}))).where
            ):
                figures, (x, y) = self.results.get_metrics(run), table["series"]
                if x in figures and y in figures:
                    names = {**selection.names, **run.parameters}
                    yield Series(table["label"].format_map(names), figures[x], figures[y])
            return
        where, by = selection.narrow(selection.fill_names(table.get("where", {}))), table.get("by")
        values = self.results.list_parameter_values(by, **where.where) if by else [None]
        for value in values:
            yield self._build_line(table, where.narrow({by: value}) if by else where, axis, style)

    def _build_line(self, table: Table, selection: Selection, axis: str, style: str) -> Series:
        points = []
        for point, value in self._evaluate_along(table["value"], selection, axis):
            by_seed = self._evaluate_along(table["value"], selection.narrow(point), "seed")
            points.append(
                (float(point[axis]), value, standard_deviation([one for _, one in by_seed]))
            )
        several = any(spread for _, _, spread in points)
        paper = self._find_published_value(table, selection)
        at = selection.fill_names(table.get("published_at"))
        return Series(
            selection.format_text(table["label"]),
            [x for x, _, _ in points],
            [y for _, y, _ in points],
            [spread for _, _, spread in points] if several else (),
            [] if paper is None else [(float(at), paper)],
            style,
        )

    def _build_sentences(
        self, tables: Sequence[Table], selection: Selection
    ) -> tuple[list[str], tuple[str, ...]]:
        sentences, reads = [], list[str]()
        for table in tables:
            words = []
            for own in self.expand_each(table, selection):
                found = self._evaluate_along(table["value"], own, table.get("by", ()))
                if found:
                    ends = _describe_ends(found, table, self.names)
                    words.append(f"{own.format_text(table['label'])} {ends}")
            if words:
                sentences.append(f"{selection.format_text(table['intro'])}: {join_words(words)}.")
                reads += self._collect_quantities([table], selection)
        return sentences, tuple(dict.fromkeys(reads))

    def _collect_quantities(self, tables: Iterable[Table], selection: Selection) -> Iterator[str]:
        for table in tables:
            for own in self.expand_each(table, selection):
                yield from _list_quantities(table["value"], own)

    # -- claims ------------------------------------------------------------------------------------

    def _build_claim(self, table: Table, selection: Selection) -> Claim:
        measures = table.get("compare") or [table["value"]]
        answer = (
            self._test_claim(table, selection)
            if "holds" in table
            else self._test_order(table, selection)
        )
        found, holds = answer or (NO_METRICS, None)
        reads = tuple(
            dict.fromkeys(name for one in measures for name in _list_quantities(one, selection))
        )
        return Claim(
            selection.format_text(table["statement"]),
            selection.format_text(table.get("place", "ours")),
            found,
            holds,
            reads,
        )

    def _test_claim(self, table: Table, selection: Selection) -> tuple[str, bool | None] | None:
        test: Table = table["holds"]
        if "power_between" in test:
            return self._test_power(table, selection)
        points = self._evaluate_points(table, selection)
        if not points:
            return None
        values = [value for _, value in points]
        text = _describe_values(points, table, self.names)
        if "rising" in test:
            if len(points) < 2:
                return text, None
            slack, strictly = test["rising"], table.get("strictly", False)
            rises = (a < b if strictly else a <= b + slack for a, b in itertools.pairwise(values))
            return text, all(rises)
        if test.keys() & {"within", "reaches"}:
            return self._test_distance(table, selection, points, text)
        return text, _passes(values, test)

    def _test_distance(
        self,
        table: Table,
        selection: Selection,
        points: Sequence[tuple[Mapping[str, Any], float]],
        text: str,
    ) -> tuple[str, bool | None] | None:
        pairs = [
            (value, self._find_published_value(table, selection.narrow(point)))
            for point, value in points
        ]
        rows = [Row("", "", "", paper, value) for value, paper in pairs if paper is not None]
        if not rows:
            return None
        test, ratios = table["holds"], [row.ratio or 0.0 for row in rows]
        text = (
            f"{text}: {join_words([f'{ratio:.2f}' for ratio in ratios])} times the published values"
        )
        if "reaches" in test:
            return text, all(ratio >= test["reaches"] for ratio in ratios)
        return text, count_within(rows, test["within"]) == len(rows)

    def _test_power(self, table: Table, selection: Selection) -> tuple[str, bool | None] | None:
        quantity, axis = selection.fill_names(table["value"]["power"])
        there = self.results.select(
            **selection.narrow(selection.fill_names(table["value"].get("where", {}))).where
        )
        low, high = table["holds"]["power_between"]
        line, power = there.line("", quantity, axis), there.power(quantity, axis)
        if power is None:
            return None
        text = f"{min(line.y):,.1f} to {max(line.y):,.1f} {table.get('unit', '')}".rstrip()
        text += f", as the power {power:.3f}"
        interval = there.power_interval(quantity, axis)
        if interval is None:
            return f"{text} (too few runs for an interval)", None
        text += f" (95 % interval {interval[0]:.3f} to {interval[1]:.3f})"
        if low <= interval[0] and interval[1] <= high:
            return text, True
        return text, None if interval[0] <= high and low <= interval[1] else False

    def _test_order(self, table: Table, selection: Selection) -> tuple[str, bool | None] | None:
        """Test that values rise at every point of the axes `by`."""
        strictly, kept, broken = table.get("strictly", "compare_over" in table), 0, []
        first = table["compare"][0] if "compare" in table else table["value"]
        for point, _ in self._evaluate_along(first, selection, table.get("by", ())):
            at = selection.narrow(point)
            if "compare" in table:
                values = [self.evaluate(one, at) for one in table["compare"]]
            else:
                values = [
                    value for _, value in self._evaluate_along(first, at, table["compare_over"])
                ]
            known = [value for value in values if value is not None]
            if len(known) < max(2, len(values)):
                continue
            if all(a < b or (a == b and not strictly) for a, b in itertools.pairwise(known)):
                kept += 1
            else:
                broken.append(_describe_point(point, self.names))
        if not kept and not broken:
            return None
        text = f"so in {kept} of {pluralize(kept + len(broken), 'case')}"
        if broken and table.get("by"):
            text += f", not at {'; '.join(broken[:MAX_LISTED])}"
            text += f" and {len(broken) - MAX_LISTED} more" if len(broken) > MAX_LISTED else ""
        return text, not broken


def _fit_growth(
    kind: str, there: Results, measure: Table, quantity: str, axis: str
) -> float | None:
    low, high = measure.get("from", -math.inf), measure.get("to", math.inf)
    if kind == "power":
        return there.power(quantity, axis)
    points = [p for p in there.line("", quantity, axis).points if low <= p[0] <= high]
    if len(points) < (3 if kind == "fit" else 2):
        return None
    x, y = zip(*points, strict=True)
    if kind == "slope":
        return statistics.linear_regression(x, y).slope
    return statistics.correlation(x, y) ** 2 if len(set(y)) > 1 else None


def _find_kind(measure: Table) -> str:
    return next(name for name in (*COMPOSITE_MEASURES, *SIMPLE_MEASURES) if name in measure)


def _list_quantities(measure: Table, selection: Selection) -> Iterator[str]:
    kind = _find_kind(measure)
    if kind in COMPOSITE_MEASURES:
        inner = measure["of"] if kind == "fold" else measure[kind]
        for one in inner if kind == "quotient" else [inner]:
            yield from _list_quantities(one, selection)
    else:
        argument = Selection({}, _WildcardNames(selection.names)).fill_names(measure[kind])
        names = argument if isinstance(argument, list) else [argument]
        yield from names[:1] if kind in GROWTH_MEASURES else names


class _WildcardNames(dict[str, Any]):
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
    if REQUIRED_PARTS.get(kind) not in (None, *table):
        raise LocalError(
            f"page: {kind} {table.get('key', '')!r} needs the table {REQUIRED_PARTS[kind]!r}"
        )
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
    allowed = (*LIMITS, SOME_BELOW, *EXCLUSIVE_TESTS)
    if ("holds" in claim and not test) or test.keys() - set(allowed) or (
        len(test) > 1 and test.keys() & set(EXCLUSIVE_TESTS)
    ):  # fmt: skip
        raise LocalError(
            f"page, claim {claim['statement']!r}: invalid holds = {dict(test)!r}; choose from "
            f"{', '.join(allowed)} (the last {len(EXCLUSIVE_TESTS)} exclude all others)"
        )


def _check_measure(measure: Table) -> None:
    kinds = [name for name in (*SIMPLE_MEASURES, *COMPOSITE_MEASURES) if name in measure]
    if len(kinds) != 1:
        known = ", ".join((*SIMPLE_MEASURES, *COMPOSITE_MEASURES))
        raise LocalError(f"page: unknown measure {dict(measure)!r}; choose from {known}")
    (kind,) = kinds
    _check_keys(f"measure {kind}", measure, (kind, "where", "without", *EXTRA_KEYS.get(kind, ())))
    inner = measure["of"] if kind == "fold" else measure[kind]
    for one in inner if kind == "quotient" else [inner] if kind in COMPOSITE_MEASURES else []:
        _check_measure(one)


def _check_keys(kind: str, table: Table, allowed: Sequence[str] = ()) -> None:
    known = allowed or KEYS[kind]
    if unknown := sorted(table.keys() - set(known)):
        raise LocalError(
            f"page, {kind}: unknown key {unknown[0]!r}; choose from {', '.join(known)}"
        )


def _describe_values(points: Sequence[tuple[Table, float]], table: Table, names: Table) -> str:
    form, unit = table.get("format", ",.3g"), table.get("unit", "")
    unit = f" {unit}" if unit else ""
    values = [value for _, value in points]
    low, high = (format_value(one, form) for one in (min(values), max(values)))
    if len(points) == 1:
        return f"{low}{unit}"
    if low == high:
        return f"{low}{unit} in {pluralize(len(points), 'case')}"
    if len(points) <= MAX_LISTED:
        words = [
            f"{format_value(value, form)} ({_describe_point(at, names)})" for at, value in points
        ]
        return f"{join_words(words)}{unit}"
    return f"{low} to {high}{unit} in {pluralize(len(points), 'case')}"


def _describe_ends(points: Sequence[tuple[Table, float]], table: Table, names: Table) -> str:
    form, unit = table.get("format", ",.3g"), table.get("unit", "")
    unit = f" {unit}" if unit else ""
    (first, low), (last, high) = points[0], points[-1]
    if table.get("extremes"):
        (first, low), (last, high) = (pick(points, key=lambda one: one[1]) for pick in (min, max))
    low_text, high_text = format_value(low, form), format_value(high, form)
    if len(points) == 1:
        return f"{low_text}{unit}" + (f" ({_describe_point(first, names)})" if first else "")
    if low_text == high_text and table.get("extremes"):
        return f"{low_text}{unit} everywhere"
    first_point, last_point = _describe_point(first, names), _describe_point(last, names)
    return f"{low_text} ({first_point}) to {high_text}{unit} ({last_point})"


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


def _describe_point(point: Table, names: Table) -> str:
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


def _drop_nonpositive(line: Series) -> Series:
    kept = [at for at, value in enumerate(line.y) if value > 0]
    return line._replace(
        x=[line.x[k] for k in kept],
        y=[line.y[k] for k in kept],
        spread=[line.spread[k] for k in kept] if line.spread else (),
    )
