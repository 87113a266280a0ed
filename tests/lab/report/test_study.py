"""The page of a study: everything on it, for everybody, the same bytes for the same findings."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from antecede.errors import LocalError
from antecede.lab.report.model import Findings, Plot, Row, Section, Series
from antecede.lab.report.study import (
    MARKS,
    MAX_UNFOLDED_ROWS,
    find_mark,
    format_ratio,
    write_overview,
    write_study,
)
from tests.lab.report.invented import beside, invented, overhead

VOID = {"meta", "link", "br", "img", "hr", "input"}
BARE = Findings("clocks", "Clocks", "ours alone", "Nothing yet.", (), (), ())


class Page(HTMLParser):
    """What a page holds: its text, its elements with their attributes, and whether tags close."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.parts: list[str] = []
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)
        assert self.open == []
        self.text = " ".join(" ".join(self.parts).replace("\u00a0", " ").split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.parts.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def page(findings: Findings, folder: Path) -> Page:
    return Page(write_study(findings, folder))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the page of all that there can be."""
    return write_study(invented(), tmp_path_factory.mktemp("study")).parent


@pytest.fixture(scope="module")
def whole(folder: Path) -> Page:
    return Page(folder / "index.html")


def of_rows(*rows: Row) -> Findings:
    return BARE._replace(sections=[Section("One", "Found.", rows)])


@pytest.mark.slow
def test_everything_of_the_findings_is_on_the_page(whole: Page) -> None:
    findings, shown = invented(), whole
    said = [findings.title, findings.source, findings.finding]
    said += [*findings.conditions, *findings.not_reached, *findings.failed, findings.reading[1]]
    for section in findings.sections:
        said += [section.title, section.finding, *section.columns]
        said += [cell for row in section.table for cell in row]
        for row in section.rows:
            said += [row.quantity, row.condition, row.note, row.figure, row.unit]
        for plot in section.plots:
            said += [plot.title, plot.caption, plot.x_label, plot.y_label]
            said += [series.label for series in plot.series]
    assert [words for words in said if words not in shown.text] == []
    assert "<code>sigma=variance</code>" in shown.source
    assert "antecede reproduce hierarchy" in shown.text


def test_a_row_shows_paper_ours_and_ratio_with_its_mark(tmp_path: Path) -> None:
    shown = page(
        of_rows(
            Row("Figure 4", "near", "c", 950.0, 941.6, "bytes"),
            Row("Figure 4", "fair", "c", 0.098, 0.0902),
            Row("Figure 4", "far", "c", 3950.0, 2054.4),
            Row("Figure 4", "alone", "c", None, 41.66),
        ),
        tmp_path,
    )
    assert "near bytes c 950 941.6 0.991 ● within 6 %" in shown.text
    assert "fair c 0.098 0.0902 0.920 ◐ within 10 %" in shown.text
    assert "far c 3,950 2,054 0.520 ○ beyond 10 %" in shown.text
    assert "alone c – 41.66 –" in shown.text
    assert "Of 3 published values: 1 within 6 %, 1 within 10 %, 1 beyond 10 %." in (shown.text)
    assert [cell["class"] for cell in shown.all("td") if cell.get("class") in {"near", "fair"}] == [
        "near",
        "fair",
    ]


@pytest.mark.parametrize(
    ("ours", "mark"),
    [(106, 0), (94, 0), (106.1, 1), (110, 1), (90, 1), (110.1, 2), (89.9, 2), (-100, 2), (0, 2)],
)
def test_marks_change_at_six_and_at_ten_per_cent(ours: float, mark: int) -> None:
    assert find_mark(Row("f", "q", "c", 100.0, ours)) is MARKS[mark]


@pytest.mark.parametrize(("paper", "ours"), [(None, 1.0), (0.0, 1.0), (100.0, math.nan)])
def test_without_a_ratio_there_is_a_dash_and_no_mark(paper: float | None, ours: float) -> None:
    row = Row("f", "q", "c", paper, ours)
    assert find_mark(row) is None
    assert format_ratio(row) == "–"


def test_what_is_beyond_is_told_though_the_study_does_not_speak_of_it(tmp_path: Path) -> None:
    shown = page(of_rows(Row("Figure 7", "ds overhead", "900 peers", 100.0, 50.0)), tmp_path)
    short = "ds overhead, 900 peers (Figure 7): 0.500 of the paper's"
    assert short in shown.text[: shown.text.index("Found.")]
    assert "Values beyond 10 % of the published ones" in shown.text


def test_what_does_not_come_out_is_near_the_top_in_short_and_below_in_full(tmp_path: Path) -> None:
    findings = BARE._replace(
        not_reached=["DS: half, e.g. 4.35 is 2.2. Tried: all.", *["More. And."] * 7]
    )
    text = page(findings, tmp_path).text
    assert text.count("DS: half, e.g. 4.35 is 2.2.") == 2
    assert text.count("Tried: all.") == 1
    assert "and 3 more" in text


def test_findings_with_nothing_in_them_make_a_page(tmp_path: Path) -> None:
    shown = page(BARE, tmp_path)
    assert "The source has no values to compare with" in shown.text
    assert "Failed runs None." in shown.text
    assert shown.all("table") == []
    assert shown.all("nav") == []
    assert list((tmp_path / "figures").iterdir()) == []


def test_all_within_bounds_says_so(tmp_path: Path) -> None:
    shown = page(of_rows(Row("f", "q", "c", 100.0, 99.0)), tmp_path)
    assert "Every published value is reproduced within 10 %." in shown.text


def test_failed_runs_are_counted_near_the_top_and_listed(tmp_path: Path) -> None:
    shown = page(BARE._replace(failed=["900 peers, seed 2: memory", "b"]), tmp_path)
    assert shown.text.index("2 runs failed") < shown.text.index("900 peers, seed 2: memory")


def test_long_tables_fold_and_every_table_scrolls_in_its_own_box(tmp_path: Path) -> None:
    rows = [Row("f", f"q{k}", "c", None, k) for k in range(MAX_UNFOLDED_ROWS + 1)]
    table = [[str(k)] for k in range(MAX_UNFOLDED_ROWS + 1)]
    short, long = rows[:MAX_UNFOLDED_ROWS], Section("l", "f", rows, columns=("n",), table=table)
    findings = BARE._replace(sections=[Section("s", "f", short), long])
    shown = page(findings, tmp_path)
    assert len(shown.all("details")) == 2
    assert len(shown.all("table")) == 3
    assert shown.source.count('<div class="scroll" role="region" tabindex="0"') == 3


@pytest.mark.slow
def test_headers_have_a_scope_and_pictures_a_name(whole: Page) -> None:
    shown = whole
    assert {th.get("scope") for th in shown.all("th")} == {"col", "row", "rowgroup"}
    ids = {attributes.get("id") for _, attributes in shown.elements}
    pictures = shown.all("svg")
    assert len(pictures) == 5
    for svg in pictures:
        assert svg["role"] == "img"
        assert set(str(svg["aria-labelledby"]).split()) <= ids
    assert shown.all("html") == [{"lang": "en"}]


def test_ids_are_unique_and_every_reference_has_its_target(whole: Page) -> None:
    shown = whole
    ids = Counter(
        attributes["id"] for _, attributes in shown.elements if attributes.get("id") is not None
    )
    assert [name for name, count in ids.items() if count > 1] == []
    targets = set(re.findall(r'(?:href="#|url\(#)([^)"]*)', shown.source))
    assert targets <= set(ids)


def test_the_page_needs_nothing_but_itself(whole: Page, folder: Path) -> None:
    shown = whole
    assert "http" not in shown.source
    assert "@import" not in shown.source
    assert not re.search(r"url\((?!#)", shown.source)
    assert not {tag for tag, _ in shown.elements} & {"script", "link", "img", "iframe", "object"}
    for link in shown.all("a"):
        target = str(link["href"])
        assert target.startswith("#") or (folder / target).is_file()


def test_both_schemes_define_every_variable_that_is_used(whole: Page) -> None:
    style, _, body = whole.source.partition("</style>")
    dark = " ".join(re.findall(r"prefers-color-scheme: dark\) \{\s*:root \{(.*?)\}", style, re.S))
    light = " ".join(re.findall(r"^:root \{(.*?)\}", style, re.S | re.M))
    used = set(re.findall(r"var\((--\w+)\)", style + body))
    assert {"--c0", "--c7", "--ink", "--faint", "--good"} <= used
    for scheme in (light, dark):
        assert used <= set(re.findall(r"(--\w+):", scheme))


def test_hostile_words_stay_words(tmp_path: Path) -> None:
    evil = "</title><script>alert(1)</script>\"'&`<b>x</b>`"
    plot = Plot("k", evil, evil, evil, [Series(evil, (1, 2), (1, 2))], evil)
    row = Row(evil, evil, evil, 1.0, 1.0, evil, evil)
    section = Section(evil, evil, [row], [plot], [evil], [[evil]])
    lists = [evil]
    findings = Findings(evil, evil, evil, evil, lists, lists, [section], lists, lists)
    shown = page(findings, tmp_path)
    assert not {tag for tag, _ in shown.elements} & {"script", "b"}
    assert shown.text.count("alert(1)") > 15
    ET.parse(tmp_path / "figures" / "k.svg")


def test_plots_stand_beside_the_page_as_files(folder: Path) -> None:
    keys = {plot.key for section in invented().sections for plot in section.plots}
    for key in keys:
        assert ET.parse(folder / "figures" / f"{key}.svg").getroot().tag.endswith("svg")
        assert (folder / "figures" / f"{key}.png").read_bytes().startswith(b"\x89PNG")
    assert len(list((folder / "figures").iterdir())) == 2 * len(keys)


@pytest.mark.slow
def test_the_same_findings_give_the_same_bytes(tmp_path: Path, folder: Path) -> None:
    write_study(invented(), tmp_path)
    written = sorted(path for path in folder.rglob("*") if path.is_file())
    assert len(written) == 11
    for path in written:
        assert path.read_bytes() == (tmp_path / path.relative_to(folder)).read_bytes()


def test_two_plots_with_one_key_are_refused(tmp_path: Path) -> None:
    twice = BARE._replace(sections=[Section("s", "f", plots=overhead()[:1] * 2)])
    with pytest.raises(LocalError, match="two plots with the key 'overhead-50'"):
        write_study(twice, tmp_path)


def test_a_ragged_table_is_refused(tmp_path: Path) -> None:
    ragged = BARE._replace(sections=[Section("s", "f", columns=("a", "b"), table=[["1"]])])
    with pytest.raises(LocalError, match="a row has 1 cells, expected 2"):
        write_study(ragged, tmp_path)


def test_rows_of_one_figure_stand_together(tmp_path: Path) -> None:
    mixed = [*beside("0-50 ms"), *beside("50-250 ms")]
    shown = page(of_rows(*mixed[:4], *mixed[8:10]), tmp_path)
    groups = [th for th in shown.all("th") if th.get("scope") == "rowgroup"]
    assert len(groups) == 2


def test_the_command_can_be_given(tmp_path: Path) -> None:
    path = write_study(BARE, tmp_path, command="antecede reproduce clocks --quick")
    assert "<pre>antecede reproduce clocks --quick</pre>" in path.read_text(encoding="utf-8")


def test_the_overview_has_a_card_for_each_study_with_its_first_plot(tmp_path: Path) -> None:
    one = BARE._replace(sections=[Section("s", "f", plots=overhead())])
    first = write_study(one, tmp_path / "my study")
    second = write_study(BARE, tmp_path / "clocks")
    path = write_overview(
        tmp_path,
        [
            ("hierarchy", "Peers & <b>", "Found `it`.", first),
            ("clocks", "Clocks", "Nothing.", second),
            ("again", "Peers", "Found.", first),
        ],
    )
    shown = Page(path)
    links = [str(link["href"]) for link in shown.all("a")]
    assert links == ["my%20study/index.html", "clocks/index.html", "my%20study/index.html"]
    assert len(shown.all("svg")) == 2
    assert "Overhead, delays of 0 to 50 ms" in shown.text
    ids = Counter(attributes["id"] for _, attributes in shown.elements if "id" in attributes)
    assert max(ids.values()) == 1
    assert "Peers & <b>" in shown.text
    assert "http" not in shown.source
    assert write_overview(tmp_path, []).read_text(encoding="utf-8").count("<li>") == 0
