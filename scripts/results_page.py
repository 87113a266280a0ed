"""Results page of the reproductions: `python -m scripts.results_page [FOLDER]`.

Reads FOLDER/NAME/summary.json of every reproduction (default: out/reproductions, of `make
reproduce`) and runs the worked examples of the papers. Writes docs/results.csv, one row for each
published value, state of an example, and claim; then docs/results.md from that file alone, and its
pictures.
"""

from __future__ import annotations

import csv
import io
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from antecede.lab.check.scenario import load_scenario, run_scenario
from antecede.lab.diagram import collect_states
from antecede.lab.report import Findings, Plot, draw_plot
from antecede.lab.reproductions.framework.deviation import CLOSE, NEAR
from antecede.lab.reproductions.framework.registry import STUDIES, load
from antecede.lab.reproductions.framework.summary import read_summary

ROOT: Final = Path(__file__).resolve().parents[1]
DOCS: Final = ROOT / "docs"
TABLE: Final = DOCS / "results.csv"
PAGE: Final = DOCS / "results.md"
PICTURES: Final = DOCS / "figures"
EXAMPLES: Final = Path(__file__).with_name("worked_examples.toml")
FIGURE, EXAMPLE, CLAIM = "figure", "example", "claim"
CLOSE_VERDICT, NEAR_VERDICT, FAR_VERDICT = "within 6 %", "within 10 %", "deviates"
EQUAL, MISPRINT, DIFFERENT = "equal", "misprint", "different"
CLAIM_VERDICTS: Final = ("holds", "does not hold", "undecided", "not run")
PARTIAL: Final = re.compile(r"^quick run|not selected")
"""Conditions of a reproduction that has not all results."""
OURS: Final = "ours"
"""Place of a claim that no paper makes."""


class PaperPage(NamedTuple):
    """Texts of a paper's section: protocol pages, notebook, remark, pictures as (file, caption)."""

    protocols: Sequence[str]
    notebook: str
    remark: str
    pictures: Sequence[tuple[str, str]]


PAPERS: Final = {
    "Evropeytsev et al. 2016": PaperPage(
        ("hierarchical", "idr", "ds"),
        "hierarchical",
        "The paper has one experiment on overhead and storage (Figures 4 to 6) and one at fixed "
        "message rates (Figures 7 to 9).",
        (
            ("hierarchy-overhead-0-50", "Figure 4, overhead"),
            ("hierarchy-storage-0-50", "Figure 4, storage"),
            ("hierarchy-overhead-50-250", "Figure 5, overhead"),
            ("hierarchy-storage-50-250", "Figure 5, storage"),
            ("hierarchy-overhead-50-550", "Figure 6, overhead"),
            ("hierarchy-storage-50-550", "Figure 6, storage"),
            ("hierarchy-rate-internal-0-50", "Figure 7, internal group"),
            ("hierarchy-rate-external-0-50", "Figure 7, external group"),
            ("hierarchy-rate-internal-50-250", "Figure 8, internal group"),
            ("hierarchy-rate-external-50-250", "Figure 8, external group"),
            ("hierarchy-rate-internal-50-550", "Figure 9, internal group"),
            ("hierarchy-rate-external-50-550", "Figure 9, external group"),
            ("scale-groups-overhead", "Scalability Analysis, up to 100,000 peers"),
        ),
    ),
    "Sahai et al. 2020": PaperPage(
        ("bss", "ses", "matrix", "sent", "fifo", "unordered"),
        "causal_order_and_global_states",
        "The lecture has worked examples and no evaluation.",
        (("vector-overhead", "no figure in the paper: overhead over the members"),),
    ),
    "Tsuneizumi et al.": PaperPage(
        ("linear", "physical", "linear-physical"),
        "linear_and_physical_clocks",
        "The paper has rules and claims. It has no evaluation and publishes no number.",
        (
            ("clocks-taken-half", "no figure in the paper: false pairs removed by physical time"),
            ("clocks-missed_pairs-half", "no figure in the paper: causal pairs missed"),
        ),
    ),
    "Bhavanasi and Iyer": PaperPage(
        ("sb",),
        "semantic_order",
        "The paper has a worked example, proofs and bounds. It has no measurements. "
        "Its ordering trees OT are ordering lists OL here.",
        (
            ("semantic-wait-members", "no figure in the paper: mean wait"),
            ("semantic-nodes", "VI.D.2: nodes of the ordering lists"),
        ),
    ),
    "Nakayama 2017": PaperPage(
        ("topics", "tv", "htbc"),
        "topic_order",
        "The picture of Figure 1 and its smallest delays are lost in the copy at hand. "
        "One sentence on it can be checked.",
        (
            ("topics-total-everybody", "like Figure 1, events sent to every peer"),
            ("topics-total-targets", "like Figure 1, events sent to subscribers"),
        ),
    ),
}
"""Sections of the page, in order."""


class Result(NamedTuple):
    """A published value, state or claim beside the result here. `command` repeats it."""

    paper: str
    kind: str
    place: str
    quantity: str
    condition: str
    unit: str
    published: str
    ours: str
    deviation: str
    verdict: str
    note: str
    command: str


def collect_results(folder: Path) -> tuple[list[Result], dict[str, Plot]]:
    """Return the results of all reproductions and examples, and the plots by key."""
    results, plots = list(compute_examples()), dict[str, Plot]()
    for name in STUDIES:
        findings = read_summary(folder / name / "summary.json")
        if findings.failed:
            raise SystemExit(f"{folder / name}: {len(findings.failed)} runs failed; run them again")
        partial = [text for text in findings.conditions if PARTIAL.search(text)]
        if partial:
            raise SystemExit(f"{folder / name}: {partial[0]}; run it without --quick")
        results += list_results(name, findings)
        plots |= {plot.key: plot for section in findings.sections for plot in section.plots}
    order = {paper: number for number, paper in enumerate(PAPERS)}
    return sorted(results, key=lambda one: order[one.paper]), plots


def list_results(name: str, findings: Findings) -> Iterator[Result]:
    """Yield the rows with published values and the claims of a reproduction."""
    paper = find_paper(name)
    command = f"antecede reproduce {name}"
    for section in findings.sections:
        for row in section.rows:
            if row.paper is not None:
                ours = format_value(row.ours)
                deviation, verdict = compare_values(row.paper, float(ours))
                yield Result(
                    *(paper, FIGURE, row.figure, row.quantity, row.condition, row.unit),
                    *(f"{row.paper:.12g}", ours, deviation, verdict, row.note),
                    command,
                )
        for claim in section.claims:
            yield Result(
                *(paper, CLAIM, claim.where, claim.statement, section.title, "", ""),
                *(claim.found, "", claim.verdict, "", command),
            )


def find_paper(name: str) -> str:
    """Return the paper of a reproduction."""
    return re.split(r"[,;]", load(name).source)[0]


def compare_values(published: float, ours: float) -> tuple[str, str]:
    """Return the deviation in percent (from 100 % on: the ratio), and the verdict."""
    share = ours / published - 1
    deviation = f"{100 * share:+.1f} %" if abs(share) < 1 else f"{share + 1:.3g} times"
    verdict = CLOSE_VERDICT if abs(share) <= CLOSE else NEAR_VERDICT
    return deviation, verdict if abs(share) <= NEAR else FAR_VERDICT


def format_value(value: float) -> str:
    """Return a number with four digits, and all digits before the decimal point."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def compute_examples() -> Iterator[Result]:
    """Yield the states of the papers' worked examples, computed by running their scenarios."""
    for example in tomllib.loads(EXAMPLES.read_text("utf-8"))["example"]:
        scenario = example["scenario"]
        states = collect_states(run_scenario(load_scenario(ROOT / scenario), states=True))
        for event, step, member, variable, published, *misprint in example["states"]:
            ours = states[step, member][variable]
            erratum, correct = misprint or ("", published)
            yield Result(
                paper=example["paper"],
                kind=EXAMPLE,
                place=example["place"],
                quantity=f"{variable} of {member}",
                condition=event,
                unit="",
                published=published,
                ours=ours,
                deviation="",
                verdict=judge_state(ours, published, correct),
                note=erratum,
                command=f"antecede draw {scenario}",
            )


def judge_state(ours: str, published: str, correct: str) -> str:
    """Return the verdict on a state; only the correct value makes the printed one a misprint."""
    if ours == published:
        return EQUAL
    return MISPRINT if ours == correct else DIFFERENT


def write_table(results: Sequence[Result]) -> str:
    """Return the results as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Result._fields)
    writer.writerows(results)
    return text.getvalue()


def read_table(text: str) -> list[Result]:
    """Return the results of a CSV."""
    rows = list(csv.reader(io.StringIO(text)))
    if tuple(rows[0]) != Result._fields:
        raise ValueError(f"results: unexpected columns {rows[0]}")
    return [Result(*row) for row in rows[1:]]


def render_page(results: Sequence[Result]) -> str:
    """Return the page of the results."""
    papers = [(paper, list(rows)) for paper, rows in groupby(results, key=lambda one: one.paper)]
    lines = [
        "# Results: published values and ours",
        "",
        "This page has the published values, worked examples and claims of the five papers, beside "
        "the results of this package.",
        "`make results` runs all reproductions and writes this page.",
        "The rows are in [results.csv](results.csv), with the command that repeats each.",
        "One size of Figures 4 to 6 takes seconds: "
        "`antecede reproduce hierarchy --filter 'grid/*/peers 900/*'`.",
        "",
        "Deviation is ours divided by published, minus 1; from 100 % on the ratio is shown.",
        f"Values have the verdict *{CLOSE_VERDICT}*, *{NEAR_VERDICT}* or *{FAR_VERDICT}*.",
        f"States of worked examples are *{EQUAL}*, or the printed state is a *{MISPRINT}* "
        "([errata](errata.md)).",
        "Claims hold or do not hold in the runs.",
        f"The place *{OURS}* marks a claim that the paper does not make; the summary omits it.",
        "Runs are simulations with fixed seeds, so the values do not depend on the machine.",
        "",
        *render_summary(papers),
    ]
    for paper, rows in papers:
        lines += render_paper(paper, rows)
    return "\n".join(lines) + "\n"


def render_summary(papers: Iterable[tuple[str, Sequence[Result]]]) -> Iterator[str]:
    """Yield the table of verdicts by paper."""
    yield "| paper | values within 6 % | within 10 % | states equal | claims that hold |"
    yield "|---|---|---|---|---|"
    for paper, rows in papers:
        verdicts = Counter((row.kind, row.verdict) for row in rows if row.place != OURS)
        kinds = Counter(row.kind for row in rows if row.place != OURS)
        close = verdicts[FIGURE, CLOSE_VERDICT]
        counts = (
            (close, kinds[FIGURE]),
            (close + verdicts[FIGURE, NEAR_VERDICT], kinds[FIGURE]),
            (verdicts[EXAMPLE, EQUAL], kinds[EXAMPLE]),
            (verdicts[CLAIM, "holds"], kinds[CLAIM]),
        )
        cells = [f"{count} of {whole}" if whole else "-" for count, whole in counts]
        yield f"| [{paper}](#{make_anchor(paper)}) | {' | '.join(cells)} |"
    yield ""


def render_paper(paper: str, rows: Sequence[Result]) -> Iterator[str]:
    """Yield the section of a paper."""
    page = PAPERS[paper]
    links = [f"[{name}](protocols/{name}.md)" for name in page.protocols]
    yield from (f"## {paper}", "", page.remark)
    yield from (f"Protocols: {', '.join(links)}.", f"[Notebook](notebooks/{page.notebook}.ipynb).")
    commands = sorted({row.command for row in rows if row.kind != EXAMPLE})
    yield from (f"Repeat with {' and '.join(f'`{one}`' for one in commands)}.", "")
    yield from render_places([row for row in rows if row.kind == FIGURE])
    for kind, title in ((FIGURE, "values"), (EXAMPLE, "worked examples"), (CLAIM, "claims")):
        chosen = [row for row in rows if row.kind == kind]
        if kind == CLAIM:
            chosen.sort(key=lambda row: row.place == OURS)
        if chosen:
            yield from (f"### {paper}: {title}", "", *RENDERERS[kind](chosen), "")
    yield from (f"### {paper}: pictures", "")
    for file, caption in page.pictures:
        yield from (f"![{caption}](figures/{file}.svg)", "", f"*{caption[0].upper()}{caption[1:]}*")
        yield ""


def render_places(rows: Sequence[Result]) -> Iterator[str]:
    """Yield the table of verdicts by figure of the paper."""
    places = Counter(row.place.split(",")[0] for row in rows)
    if len(places) < 2:
        return
    yield from ("| figure | values | within 6 % | within 10 % |", "|---|---|---|---|")
    for place, count in sorted(places.items()):
        verdicts = Counter(row.verdict for row in rows if row.place.split(",")[0] == place)
        close = verdicts[CLOSE_VERDICT]
        yield f"| {place} | {count} | {close} | {close + verdicts[NEAR_VERDICT]} |"
    yield ""


def make_anchor(title: str) -> str:
    """Return the anchor of a heading."""
    return re.sub(r"[- ]+", "-", re.sub(r"[^\w -]", "", title.lower()))


def _render_figures(rows: Sequence[Result]) -> Iterator[str]:
    yield "| place | quantity | published | ours | deviation | verdict |"
    yield "|---|---|---|---|---|---|"
    for row in rows:
        verdict = f"{row.verdict}; {row.note}" if row.note else row.verdict
        quantity = f"{row.quantity}, {row.unit} ({row.condition})"
        yield _join_cells(row.place, quantity, row.published, row.ours, row.deviation, verdict)


def _render_examples(rows: Sequence[Result]) -> Iterator[str]:
    yield "| place | state | published | ours | verdict |"
    yield "|---|---|---|---|---|"
    for row in rows:
        verdict = f"{row.verdict}, {row.note}" if row.note else row.verdict
        state = f"{row.condition}: {row.quantity}"
        yield _join_cells(row.place, state, f"`{row.published}`", f"`{row.ours}`", verdict)


def _render_claims(rows: Sequence[Result]) -> Iterator[str]:
    yield "| place | claim | in the runs | verdict |"
    yield "|---|---|---|---|"
    for row in rows:
        claim = f"{row.quantity} ({row.condition})"
        yield _join_cells(row.place, claim, row.ours, row.verdict)


RENDERERS: Final = {FIGURE: _render_figures, EXAMPLE: _render_examples, CLAIM: _render_claims}


def _join_cells(*cells: str) -> str:
    texts = [re.sub(r"([|<>])", r"\\\1", cell) if cell[:1] != "`" else cell for cell in cells]
    return f"| {' | '.join(texts)} |"


def main(arguments: Sequence[str]) -> int:
    """Write table, page and pictures."""
    folder = Path(arguments[0]) if arguments else ROOT / "out" / "reproductions"
    results, plots = collect_results(folder)
    TABLE.write_text(write_table(results), encoding="utf-8")
    PAGE.write_text(render_page(results), encoding="utf-8")
    for page in PAPERS.values():
        for file, _ in page.pictures:
            (PICTURES / f"{file}.svg").write_text(draw_plot(plots[file]).svg, encoding="utf-8")
    print(f"{len(results)} rows in {TABLE}, page {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
