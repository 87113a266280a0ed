"""Results page: agreement of page, table, studies and worked examples."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from antecede.lab.reproductions.framework.page_builder import read_page
from antecede.lab.reproductions.framework.registry import STUDIES
from scripts.results_page import (
    CLAIM,
    CLAIM_VERDICTS,
    DIFFERENT,
    DOCS,
    EQUAL,
    EXAMPLE,
    FIGURE,
    MISPRINT,
    PAGE,
    PAPERS,
    TABLE,
    Result,
    compare_values,
    compute_examples,
    find_paper,
    judge_state,
    make_anchor,
    read_table,
    render_page,
    write_table,
)

RESULTS = read_table(TABLE.read_text("utf-8"))
TEXT = PAGE.read_text("utf-8")


def list_rows(name: str, kind: str) -> list[Result]:
    """Return the rows of a study."""
    command = f"antecede reproduce {name}"
    return [row for row in RESULTS if (row.kind, row.command) == (kind, command)]


def find_tables(value: Any, name: str) -> list[Any]:
    """Return all tables under a name in the tables of a page, at any depth."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    below = [one for part in inner for one in find_tables(part, name)]
    return [*(value.get(name, []) if isinstance(value, dict) else []), *below]


def test_the_page_is_that_of_the_table() -> None:
    assert render_page(RESULTS) == TEXT
    assert write_table(RESULTS) == TABLE.read_text("utf-8")


@pytest.mark.parametrize("name", STUDIES)
def test_every_published_value_of_a_study_occurs(name: str) -> None:
    page = read_page(f"antecede.lab.reproductions.{name}")
    given = page.get("published", {})
    # A name with a prefix ("inside: ...") is a second use of the value without it.
    published = Counter(
        float(value) for key, value in given.items() if key.partition(": ")[2] not in given
    )
    assert published <= Counter(float(row.published) for row in list_rows(name, FIGURE))
    assert {row.paper for row in list_rows(name, FIGURE)} <= {find_paper(name)}


@pytest.mark.parametrize("name", STUDIES)
def test_every_claim_of_a_study_occurs(name: str) -> None:
    page = read_page(f"antecede.lab.reproductions.{name}")
    statements = [row.quantity for row in list_rows(name, CLAIM)]
    patterns = [
        re.sub(r"\\\{\w+\\\}", ".+", re.escape(claim["statement"]))
        for claim in find_tables(page, "claim")
    ]
    assert patterns
    for pattern in patterns:
        assert any(re.fullmatch(pattern, one) for one in statements), pattern
    for statement in statements:
        assert any(re.fullmatch(pattern, statement) for pattern in patterns), statement


def test_deviations_and_verdicts_follow_from_the_values() -> None:
    for row in RESULTS:
        if row.kind == FIGURE:
            expected = compare_values(float(row.published), float(row.ours))
            assert (row.deviation, row.verdict) == expected
        elif row.kind == CLAIM:
            assert row.verdict in CLAIM_VERDICTS


def test_worked_examples_are_computed() -> None:
    examples = [row for row in RESULTS if row.kind == EXAMPLE]
    assert Counter(examples) == Counter(compute_examples())
    assert DIFFERENT not in {row.verdict for row in examples}
    errata = (DOCS / "errata.md").read_text("utf-8")
    assert all(f"### {row.note}. " in errata for row in examples if row.note)


def test_a_misprint_needs_the_correct_value() -> None:
    verdicts = [judge_state(ours, "(1, 0)", "(0, 1)") for ours in ("(1, 0)", "(0, 1)", "(1, 1)")]
    assert verdicts == [EQUAL, MISPRINT, DIFFERENT]
    assert judge_state("(0, 1)", "(1, 0)", "(1, 0)") == DIFFERENT  # no erratum


@pytest.mark.parametrize("paper", PAPERS)
def test_protocol_pages_link_the_rows_of_their_paper(paper: str) -> None:
    page = PAPERS[paper]
    assert f"\n## {paper}\n" in TEXT
    for name in page.protocols:
        linked = (DOCS / "protocols" / f"{name}.md").read_text("utf-8")
        assert f"](../results.md#{make_anchor(paper)})" in linked, name
    assert (DOCS / "notebooks" / f"{page.notebook}.ipynb").exists()
    assert all((DOCS / "figures" / f"{file}.svg").exists() for file, _ in page.pictures)
