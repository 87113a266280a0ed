"""Page of a run; every sentence is computed from its metrics."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import jinja2

from antecede.formatting import count_and_part, duration, pluralize, were
from antecede.lab.report import Plot, Series, draw_plot, inline_svg, look, slots_of
from antecede.tables.order import BaselineOutcome
from pipeline import courier, spark_job
from pipeline.check import Verdict
from pipeline.figures import RunMetrics, StepCurve
from pipeline.run import OUTAGE, SKEW_MS, Options, RunResult

_ONE = {"executor": "an executor", "driver": "the driver"}
_LOADERS = (
    jinja2.FileSystemLoader(Path(__file__).parent),
    jinja2.PackageLoader("antecede.lab.report"),
)
_environment = jinja2.Environment(
    loader=jinja2.ChoiceLoader(_LOADERS), autoescape=True, undefined=jinja2.StrictUndefined
)


def write_page(path: Path, ran: RunResult, options: Options) -> Path:
    """Write the page, with its plots inlined, and as SVG and PNG files."""
    verdict, figures = ran.verdict, ran.figures
    values: dict[str, Any] = {
        "finding": describe_result(verdict, figures),
        "lead": describe_input(ran),
        "checks": list_checks(verdict),
        "wrong": "; ".join(list_first_errors(verdict)),
        "held_words": describe_held_rows(figures),
        "plots": _draw_plots(path.parent / "figures", figures),
        "kills": _list_kills(figures),
        "kill_words": describe_kills(verdict, figures),
        "watermark_words": describe_watermarks(figures.outcomes),
        "outcomes": [_make_row(outcome, figures.outcomes[-1]) for outcome in figures.outcomes],
        "conditions": list_conditions(ran, options),
        "options": f" (seed {options.seed}, orders for {options.seconds:g} s)",
        **look(),
    }
    path.write_text(_environment.get_template("page.html").render(**values), encoding="utf-8")
    return path


def describe_result(verdict: Verdict, figures: RunMetrics) -> str:
    """Return the result in one sentence."""
    killed = [_ONE[line["what"]] for _, line in figures.kills]
    through = f" while {_join_names(killed)} {_choose_verb(killed)} killed"
    what = pluralize(verdict.messages, "event")
    if not verdict.is_ok:
        return f"Of {what}, something is wrong in the table{through if killed else ''}"
    return (
        f"{what[:1].upper()}{what[1:]} from three services, each once in the table and after its "
        f"causes{through if killed else ''}"
    )


def _choose_verb(names: list[str]) -> str:
    return were(len(names))


def _join_names(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def describe_input(ran: RunResult) -> str:
    """Describe the path of the events."""
    verdict, figures = ran.verdict, ran.figures
    more = verdict.copies - verdict.messages
    topics = "Kafka topics" if ran.sink == "delta" else "folders of files"
    table = "a Delta table" if ran.sink == "delta" else "Parquet files (Spark's file sink)"
    text = (
        f"They came by {topics} in {pluralize(verdict.copies, 'copy', 'copies')} ({more:,} of them "
        f"repeats); {count_and_part(figures.waited, figures.rows)} came before a cause and waited "
        f"for it. Spark wrote them to {table}."
    )
    return text + (f" There was no broker: {ran.files_reason}." if ran.files_reason else "")


def list_checks(verdict: Verdict) -> list[dict[str, Any]]:
    """Return the rows of the check: name, number of errors, total."""
    messages = pluralize(verdict.messages, "event")
    return [
        {"what": "lost", "wrong": len(verdict.lost), "of": messages},
        {
            "what": "duplicate rows, or more copies than were sent",
            "wrong": len(verdict.duplicated),
            "of": pluralize(verdict.copies, "copy", "copies"),
        },
        {
            "what": "unknown, changed, or with a wrong status",
            "wrong": len(verdict.invalid),
            "of": pluralize(verdict.copies, "copy", "copies"),
        },
        {
            "what": "effect before its direct or indirect cause",
            "wrong": len(verdict.violations),
            "of": pluralize(verdict.pairs, "pair"),
        },
        {
            "what": "customers whose positions have gaps",
            "wrong": len(verdict.gaps),
            "of": f"{verdict.customers:,}",
        },
        {
            "what": "causal contexts that differ from the logs",
            "wrong": len(verdict.wrong_contexts),
            "of": f"{messages}, {pluralize(verdict.direct, 'cause')} named",
        },
    ]


def list_first_errors(verdict: Verdict) -> list[str]:
    """Return one example of each kind of error."""
    names = ("lost", "duplicated", "invalid", "violations", "gaps", "wrong_contexts")
    return [f"{name} {found[0]}" for name in names if (found := getattr(verdict, name))]


def describe_held_rows(figures: RunMetrics) -> str:
    """Describe the maximum of held rows, and the time until rows are in the table."""
    most, when = _find_maximum(figures.held)
    behind, then = _find_maximum(figures.unwritten)
    p50, p99 = duration(figures.commit_p50_ms), duration(figures.commit_p99_ms)
    return (
        f"At most {pluralize(most, 'row')} {were(most)} held at a time for a cause that had not "
        f"come ({when:.1f} s after the first arrival). At most {behind:,} had come and were not "
        f"in the table yet (at {then:.1f} s); half of all copies were in it {p50} after they came, "
        f"99 % after {p99}, restarts included."
    )


def _find_maximum(curve: StepCurve) -> tuple[int, float]:
    times, counts = curve
    if not counts:
        return 0, 0.0
    most = max(counts)
    return int(most), times[counts.index(most)]


def describe_kills(verdict: Verdict, figures: RunMetrics) -> str:
    """Describe the effect of the kills on the table."""
    within = sum(line["within_a_batch"] for _, line in figures.kills)
    wrong = len(verdict.lost) + len(verdict.duplicated)
    what = pluralize(wrong, "row") if wrong else "nothing"
    return (
        f"{within} of {pluralize(len(figures.kills), 'kill')} fell within a micro-batch; "
        f"{what} {were(wrong or 1)} lost or written twice."
    )


def describe_watermarks(outcomes: list[BaselineOutcome]) -> str:
    """Compare causal release with the watermarks that drop least and wait least."""
    ours = outcomes[-1]
    marks = [outcome for outcome in outcomes if outcome.scheme.startswith("watermark")]
    clean = [mark for mark in marks if not mark.dropped and not mark.inverted]
    text = (
        f"Causal release dropped {ours.dropped:,} and put {pluralize(ours.inverted, 'effect')} "
        f"before a cause; {_describe_median(ours)}, 99 % waited "
        f"{_format_wait(ours, 0.99)} or less. "
    )
    if clean:
        text += (
            f"The shortest watermark here that drops and inverts nothing is "
            f"{clean[0].scheme[10:]}: half of its rows waited "
            f"{_format_wait(clean[0], 0.5)} or more."
        )
    else:
        least = min(marks, key=lambda mark: (mark.dropped + mark.inverted, mark.scheme))
        text += (
            f"No watermark here drops and inverts nothing: {least.scheme} dropped "
            f"{least.dropped:,} and inverted {least.inverted:,}, and half of its rows waited "
            f"{_format_wait(least, 0.5)} or more."
        )
    by_time = next(outcome for outcome in outcomes if outcome.scheme == "sort by timestamp")
    if by_time.inverted:
        skew = duration(max(SKEW_MS.values()) - min(SKEW_MS.values()))
        text += (
            f" The services' clocks differ by up to {skew}: sorting all of the finished data by "
            f"their timestamps puts {pluralize(by_time.inverted, 'effect')} before a cause."
        )
    shorter = [mark for mark in marks if (mark.wait_ms(0.99) or 0) < (ours.wait_ms(0.99) or 0)]
    worse = [mark.scheme for mark in shorter if mark not in clean]
    if worse:
        text += (
            f" Shorter p99 than causal release, for what they drop or invert: {_join_names(worse)}."
        )
    better = [mark.scheme for mark in shorter if mark in clean]
    if better:
        text += (
            " Shorter p99 than causal release, and nothing dropped or inverted: "
            f"{_join_names(better)}."
        )
    return text


def _describe_median(outcome: BaselineOutcome) -> str:
    wait = outcome.wait_ms(0.5)
    return f"half of the rows waited {duration(wait)} or less" if wait else "half did not wait"


def _format_wait(outcome: BaselineOutcome, quantile: float) -> str:
    return duration(outcome.wait_ms(quantile))


def _make_row(outcome: BaselineOutcome, ours: BaselineOutcome) -> dict[str, Any]:
    return {
        "scheme": outcome.scheme,
        "dropped": outcome.dropped,
        "dropped_text": count_and_part(outcome.dropped, outcome.rows),
        "inverted": outcome.inverted,
        "broken": outcome.broken,
        "p50": _format_wait(outcome, 0.5),
        "p99": _format_wait(outcome, 0.99),
        "ours": outcome is ours,
    }


def _list_kills(figures: RunMetrics) -> list[dict[str, Any]]:
    return [
        {
            "what": line["what"],
            "at": f"{at:.1f} s",
            "count": len(line["pids"]),
            "commits": line["commits"],
            "within": "yes" if line["within_a_batch"] else "no",
        }
        for at, line in figures.kills
    ]


def _draw_plots(folder: Path, figures: RunMetrics) -> dict[str, str]:
    top = max([*figures.unwritten[1], 1.0])
    kills = [
        Series(f"{line['what']} killed", [at, at], [0.0, top], style="dashed")
        for at, line in figures.kills
    ]
    seconds = "seconds since the first arrival"
    plots = [
        Plot(
            "held",
            "Held for a cause that has not come",
            seconds,
            "rows",
            [Series("held by causal order", *_make_stairs(figures.held))],
        ),
        Plot(
            "unwritten",
            "Come, and not yet in the table",
            seconds,
            "rows, repeats too",
            [Series("not yet in the table", *_make_stairs(figures.unwritten)), *kills],
        ),
        Plot(
            "watermarks",
            "Rows dropped or put before a cause, by wait",
            "wait p50, ms",
            "rows dropped and effects inverted",
            _make_series(figures.outcomes),
        ),
    ]
    folder.mkdir(exist_ok=True)
    colours = slots_of(plots)
    parts = {}
    for k, plot in enumerate(plots):
        drawn = draw_plot(plot, colours)
        (folder / f"{plot.key}.svg").write_text(drawn.svg, encoding="utf-8")
        (folder / f"{plot.key}.png").write_bytes(drawn.png)
        parts[plot.key] = inline_svg(drawn.svg, f"plot{k}")
    return parts


def _make_stairs(curve: StepCurve) -> tuple[list[float], list[float]]:
    """Add the corners of a step curve, for drawing with lines."""
    times, counts = curve
    x = [time for time in times for _ in range(2)]
    y = [0.0, *(count for count in counts for _ in range(2))][: len(x)]
    return x, y


def _make_series(outcomes: list[BaselineOutcome]) -> list[Series]:
    def points(found: list[BaselineOutcome]) -> tuple[list[float], list[float]]:
        waits = [outcome.wait_ms(0.5) or 0.0 for outcome in found]
        return waits, [float(outcome.dropped + outcome.inverted) for outcome in found]

    marks = [outcome for outcome in outcomes if outcome.scheme.startswith("watermark")]
    return [
        Series("watermarks, shortest first", *points(marks)),
        Series("causal release", *points(outcomes[-1:]), style="points"),
    ]


def list_conditions(ran: RunResult, options: Options) -> list[tuple[str, str]]:
    """Return the configuration of the run."""
    import pyspark

    kind = "Kafka topics of a broker (KRaft, one node)" if ran.sink == "delta" else "files"
    still = (OUTAGE[1] - OUTAGE[0]) * options.seconds
    skews = ", ".join(f"{name} {skew:+.0f} ms" for name, skew in SKEW_MS.items())
    return [
        (
            "services",
            f"orders (one thread), payments (threads), shipping (asyncio); clocks {skews}",
        ),
        ("topics", kind),
        (
            "courier",
            f"delays log-normal, median {courier.MEDIAN_S * 1000:.0f} ms, sigma {courier.SIGMA:g}; "
            f"{courier.REPEAT_FRACTION:.0%} copied twice; for {still:.1f} s nothing of "
            f"the topic {courier.OUTAGE_TOPIC} was copied",
        ),
        (
            "Spark",
            f"{pyspark.__version__}, {options.master} (executors are processes of their own), "
            f"{pluralize(ran.figures.batches, 'micro-batch', 'micro-batches')} seen to end, at "
            "most "
            + (
                f"{options.max_per_batch or spark_job.MAX_ROWS_PER_BATCH} rows"
                if ran.sink == "delta"
                else f"{options.max_per_batch or spark_job.MAX_FILES_PER_BATCH} files"
            )
            + " each",
        ),
        (
            "machine",
            f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        ),
    ]


def format_summary(ran: RunResult) -> list[str]:
    """Return the lines for the terminal."""
    lines = [f"  {describe_result(ran.verdict, ran.figures)}", f"  {describe_input(ran)}"]
    lines += [
        f"  {describe_held_rows(ran.figures)}",
        f"  {describe_watermarks(ran.figures.outcomes)}",
    ]
    width = max(len(row["what"]) for row in list_checks(ran.verdict))
    for row in list_checks(ran.verdict):
        lines.append(f"    {row['what']:{width}}  {row['wrong']:>5,}  of {row['of']}".rstrip(" of"))
    if not ran.verdict.is_ok:
        lines.append(f"  WRONG: {'; '.join(list_first_errors(ran.verdict))}")
    return lines
