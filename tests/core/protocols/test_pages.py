"""Consistency of the comparison table, the protocol pages and the registry."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from antecede.cli.protocols.list_protocols import collect_facts
from antecede.core.protocols.registry import ENTRIES, SYMBOLS

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGES = DOCS / "protocols"
SYMBOL_PAGES = (
    *("bss", "ds", "hierarchical", "htbc", "idr", "linear", "linear-physical", "physical"),
    *("sb", "sent", "ses", "topics", "tv"),
)
README = (PAGES / "README.md").read_text(encoding="utf-8")
GROUP = {(True, True): "open", (True, False): "joins", (False, True): "leaves"}


def rows() -> dict[str, list[str]]:
    """Return the cells of the table of all protocols by name."""
    _, _, table = README.partition("## All of them")
    lines = [line for line in table.splitlines() if line.startswith("| [")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {cell[0].split("`")[1]: cell for cell in cells}


def test_the_table_has_a_row_for_every_protocol_and_no_other() -> None:
    assert sorted(rows()) == sorted(ENTRIES)


@pytest.mark.parametrize("name", ENTRIES)
def test_a_row_says_what_the_code_says(name: str) -> None:
    facts = collect_facts(ENTRIES[name])
    link, order, relation, to, exactly, _, overhead, storage, loss, group = rows()[name]
    assert link == f"[`{name}`]({Path(facts['page']).name})"
    assert (order, relation, to) == (facts["order"], facts["relation"], facts["addressing"])
    assert (overhead, storage) == (facts["overhead"], facts["storage"])
    assert (exactly == "exact") == (facts["live"] and facts["no_unnecessary_wait"])
    assert group == GROUP.get((facts["joins"], facts["leaves"]), "fixed")
    assert (loss == "survives") == facts["survives_loss"]
    recovering = {v["name"] for v in facts["variants"] if v["survives_loss"] and not v["defective"]}
    assert set(re.findall(r"`(.*?)`", loss)) == recovering


def code_lines(code: str) -> str:
    """Return the lines of a program without indentation and blank lines."""
    return "\n".join(line.strip() for line in code.splitlines() if line.strip()) + "\n"


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_rules_on_a_page_are_those_of_the_examples(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    linked = re.findall(r"\]\(../../(examples/papers/\w+\.py)\)", text)
    shown = r"(examples/papers/\w+\.py)\)[^`]*?:\n\n```python\n(.*?)```"
    for file, code in re.findall(shown, text, re.DOTALL):
        assert code_lines(code) in code_lines((DOCS.parent / file).read_text("utf-8"))
        linked.remove(file)
    assert not linked
    symbols = "| symbol in the paper | name in the code |"
    assert page.stem not in SYMBOL_PAGES or symbols in text


@pytest.mark.parametrize("name", ENTRIES)
def test_a_page_exists_and_shows_what_the_protocol_costs(name: str) -> None:
    page = DOCS.parent / collect_facts(ENTRIES[name])["page"]
    assert f"(../figures/costs-{name}.svg)" in page.read_text(encoding="utf-8")
    assert (DOCS / "figures" / f"costs-{name}.svg").exists()


def test_the_guide_names_every_protocol_and_every_letter_is_explained() -> None:
    guide, _, table = README.partition("## All of them")
    assert all(f"`{name}`" in guide for name in ENTRIES)
    used = {letter for facts in map(collect_facts, ENTRIES.values()) for letter in facts["symbols"]}
    assert used <= SYMBOLS.keys()
    _, _, letters = table.partition("Letters:")
    assert all(re.search(rf"\b{letter} [a-z]", letters) for letter in used)
