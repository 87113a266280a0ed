"""Reference pages: generated parts are current, and JSON reports have the keys of their page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from antecede.cli import COMMANDS, main
from antecede.lab.simulate.config import read_config
from antecede.lab.simulate.outputs import meter_figures
from antecede.tables.audit import audit, audit_events
from antecede.tables.false_causality.summary import summarize
from antecede.tables.order.spec import Status
from antecede.tables.trace import ReadOptions, arrow, read, schema
from scripts import pages
from tests.helpers.fixtures import Capture, Patch
from tools import words

ROOT = Path(__file__).resolve().parents[2]
REPORTS, EVENTS = (
    (ROOT / "docs" / page).read_text(encoding="utf-8") for page in (pages.REPORTS, pages.EVENTS)
)
SOURCE = "\n".join(
    path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*.py"))
)
MESH = """[topology]
kind = "mesh"
peers = 4

[protocol]
name = "unordered"

[run]
duration_s = 1

[snapshots]
algorithm = "chandy-lamport"
at_s = 0.5
"""
TREE = """[topology]
kind = "hierarchy"
groups = [2, 2]
external = 2

[protocol]
name = "hierarchical"

[run]
duration_s = 1
"""
LOSSY = """[topology]
kind = "mesh"
peers = 4

[protocol]
name = "matrix"
variant = "recovering"

[links]
loss = 0.1

[run]
duration_s = 1
"""
TABLE = """{"id": "a", "causes": [], "member": "P", "send_time": 5, "arrival": 5}
{"id": "b", "causes": ["a"], "member": "Q", "send_time": 3, "arrival": 4}
{"id": "c", "causes": ["b", "x"], "member": "P", "send_time": 6, "arrival": 7}
"""
CLOCKS = """P {"P": 1}
begin
Q {"Q": 1, "P": 1}
receive
Q {"Q": 2, "R": 3}
lose an entry
"""


class Documented(NamedTuple):
    """Row of a table of keys."""

    path: str
    type: str
    pattern: re.Pattern[str]


def read_keys(section: str) -> list[Documented]:
    """Return the keys that a section of the page documents; "*" stands for any key."""
    text = re.split(rf"^## {section}$", REPORTS, flags=re.MULTILINE)[1].split("\n## ")[0]
    text = text.partition("### Details of single formats")[0]
    rows = re.findall(r"^\| `([^`]+)` \| ([a-z ]+) \|", text, re.MULTILINE)
    return [
        Documented(path, kind, re.compile(re.escape(path).replace(r"\*", "[^.]+") + "$"))
        for path, kind in rows
    ]


def list_paths(value: Any, keys: list[Documented], path: str = "") -> Iterator[str]:
    """Yield the paths of a report, without those below data keys that the page ends at."""
    if isinstance(value, list):
        for one in value:
            yield from list_paths(one, keys, f"{path}[]")
    if not isinstance(value, dict):
        return
    has_data_keys = any(key.type.startswith("object by") for key in keys if key.pattern.match(path))
    for name, child in value.items():
        below = f"{path}.{name}".lstrip(".")
        deeper = [key for key in keys if key.pattern.pattern.startswith(f"{re.escape(path)}\\.")]
        if not has_data_keys:
            yield below
        elif not any(key.path.count("*") > path.count("*") for key in keys if _covers(key, below)):
            continue
        if deeper or not has_data_keys:
            yield from list_paths(child, keys, below)


def _covers(key: Documented, path: str) -> bool:
    """Return whether a documented key is below a path, or the path itself."""
    parts, own = re.split(r"\.", key.path), re.split(r"\.", path)
    return len(parts) >= len(own) and all(
        part in ("*", "*[]") or part == name or part == f"{name}[]"
        for part, name in zip(parts, own, strict=False)
    )


def check_reports(section: str, reports: list[Any], *, partly: str = "") -> None:
    """Compare the keys of reports with those of a section of the page, both ways.

    `partly`: object whose further keys stand in the table of single formats.
    """
    keys = read_keys(section)
    found = {path for report in reports for path in list_paths(report, keys)}
    more = read_detail_keys() if partly else set()
    unknown = {
        path
        for path in found
        if not any(key.pattern.match(path) for key in keys)
        and path.removeprefix(f"{partly}.").split(".")[0].removesuffix("[]") not in more
    }
    assert unknown == set()
    unused = {key.path for key in keys if not any(key.pattern.match(path) for path in found)}
    assert unused == set()


def read_detail_keys() -> set[str]:
    """Return the keys of the table of single formats."""
    text = REPORTS.partition("### Details of single formats")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]+) \|", text, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def read_metrics() -> set[str]:
    """Return the metrics of the page."""
    text = REPORTS.partition("## Metrics of a simulated run")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]+) \|", text, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([\w.]+)`", row)}


def run_json(capsys: Capture, *call: str) -> Any:
    capsys.readouterr()
    assert main(list(call)) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture(name="runs")
def runs_of_small_configs(tmp_path: Path, capsys: Capture) -> dict[str, Any]:
    """Reports of small simulations, and the trace of the first as `trace.parquet`."""
    found = {}
    for name, text in {"mesh": MESH, "tree": TREE, "lossy": LOSSY}.items():
        path = tmp_path / f"{name}.toml"
        path.write_text(text, encoding="utf-8")
        trace = ("--trace", str(tmp_path / "trace.parquet")) if name == "mesh" else ()
        found[name] = run_json(capsys, "simulate", str(path), "--json", *trace)
    return found


def test_generated_pages_are_current() -> None:
    stale = pages.find_stale(pages.make_pages())
    assert stale == [], "run `make pages`"


def test_the_terminal_does_not_change_the_command_line_page(monkeypatch: Patch) -> None:
    wide = pages.make_cli_page()
    monkeypatch.setenv("COLUMNS", "40")
    assert pages.make_cli_page() == wide


def read_commands(page: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the calls of `antecede` on a page: command and options."""
    text = page.read_text(encoding="utf-8")
    spans = re.findall(r"`antecede ([a-z][^`]*)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    blocks = re.findall(r"```(?:sh|text)?\n(.*?)```", text, re.DOTALL)
    lines = re.findall(r"^(?:\$ )?antecede ([a-z].*)$", "\n".join(blocks), re.MULTILINE)
    for call in (*spans, *lines):
        command, *rest = call.partition("  #")[0].split()
        yield command, tuple(word.partition("=")[0] for word in rest if word.startswith("--"))


@pytest.mark.parametrize(
    "page",
    sorted(words.list_files([ROOT / "docs", ROOT / "README.md"])),
    ids=lambda page: page.name,
)
def test_commands_and_options_of_pages_exist(page: Path) -> None:
    unknown = []
    for command, options in read_commands(page):
        if command not in COMMANDS:
            unknown.append(command)
            continue
        known = {flag for one in pages.load_parser(command)._actions for flag in one.option_strings}
        unknown += [f"{command} {option}" for option in options if option not in known]
    assert unknown == []


def test_every_key_of_a_status_has_a_meaning() -> None:
    keys = pages.list_status_keys()
    assert [key.name for part in keys.values() for key in part if not key.meaning] == []


def test_a_section_without_markers_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"events\.md: section 'absent' has no markers"):
        pages.replace_section(pages.EVENTS, {"absent": ""})


def test_reports_of_simulate(runs: dict[str, Any]) -> None:
    check_reports("simulate", list(runs.values()))


def test_metrics_of_runs_are_on_the_page(runs: dict[str, Any], tmp_path: Path) -> None:
    names = {name for report in runs.values() for name in report["runs"][0]["metrics"]}
    names |= set(meter_figures(read_config(tmp_path / "mesh.toml"), 0))
    roles = r"^(peer|internal|external|super|idr|ds)\."
    found = {re.sub(roles, "ROLE.", name) for name in names}
    found = {re.sub(r"^false_causality\.[^.]+", "false_causality.RULE", name) for name in found}
    listed = read_metrics() - {"peer", "internal", "external", "super", "idr", "ds", "warm_s"}
    assert found <= listed
    rare = listed - found
    assert {name for name in rare if f'"{name}"' not in SOURCE} == set()


def test_reports_of_compare(capsys: Capture) -> None:
    options = ("--members", "3", "--seconds", "1", "--json")
    check_reports("compare", [run_json(capsys, "compare", "bss", *options)])


def test_reports_of_audits(runs: dict[str, Any], tmp_path: Path) -> None:
    assert runs
    (tmp_path / "table.jsonl").write_text(TABLE, encoding="utf-8")
    (tmp_path / "clocks.log").write_text(CLOCKS, encoding="utf-8")
    regex = r"(?<host>\S*) (?<clock>{.*})\n(?<event>.*)"
    reports = [
        audit(tmp_path / "trace.parquet"),
        audit(tmp_path / "table.jsonl", missing=20),
        audit(tmp_path / "clocks.log", "shiviz", ReadOptions(regex=regex)),
        audit_events(make_calls(), "spans"),
        audit_events(make_late_rows()),
    ]
    check_reports("audit", [report.to_dict() for report in reports], partly="details")


def make_calls() -> pa.Table:
    """Return two calls whose times contradict each other."""
    causes = schema.COLUMNS[5].name
    rows = [
        ("a", "P", [], 0, 10, "client"),
        ("b", "Q", ["a"], 12, 20, "server"),
        ("c", "P", [], 100, 110, "client"),
        ("d", "Q", ["c"], 90, 95, "server"),
    ]
    names = ("id", "member", causes, "start_time", "end_time", "role")
    columns = zip(names, zip(*rows, strict=True), strict=True)
    return pa.table({name: pa.array(list(values)) for name, values in columns})


def make_late_rows() -> pa.Table:
    """Return deliveries that are listed in another order than their times."""
    rows = [
        ("send", "m", "P", 1),
        ("send", "n", "P", 2),
        ("deliver", "n", "Q", 9),
        ("deliver", "m", "Q", 5),
    ]
    names = ("kind", "id", "member", "arrival")
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def test_details_of_single_formats_are_in_the_code() -> None:
    found = read_detail_keys()
    assert len(found) > 80
    assert {name for name in found if f'"{name}"' not in SOURCE} == set()


def test_reports_of_false_causality(runs: dict[str, Any], tmp_path: Path) -> None:
    assert runs
    (tmp_path / "table.jsonl").write_text(TABLE, encoding="utf-8")
    declared = read(tmp_path / "table.jsonl")
    found = [summarize(read(tmp_path / "trace.parquet").events), summarize(declared.events)]
    reports = [json.loads(json.dumps(one.to_dict(), default=str)) for one in found]
    check_reports("false-causality", reports)


def test_the_page_of_events_has_kinds_formats_reasons_and_statuses() -> None:
    assert read_column("kind") == set(schema.KINDS)
    assert read_column("format") == {reader.name for reader in arrow._READERS}
    assert read_column("status") == set(map(str, Status))
    reasons = {reason.removesuffix(" ...") for reason in read_column("reason")}
    assert {reason for reason in reasons if f'"{reason}' not in SOURCE} == set()


def read_column(title: str) -> set[str]:
    """Return the names in the first column of a table of the page of events."""
    found = re.search(rf"^\| {title} \|.*\n\|[-|]+\n((?:\|.*\n)+)", EVENTS, re.MULTILINE)
    assert found is not None
    firsts = [row.split("|")[1] for row in found[1].splitlines()]
    return {name for first in firsts for name in re.findall(r"`([^`]+)`", first)}
