"""`antecede protocols`: every protocol in a line that fits, all of it in JSON."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from antecede.cli import main
from antecede.cli.protocols.list_protocols import collect_facts
from antecede.core.protocols.registry import ENTRIES, SYMBOLS
from tests.helpers.fixtures import Call, Capture

WIDTH = 100


def test_the_table_has_every_protocol_and_fits(said: Call) -> None:
    lines = said("protocols").splitlines()
    assert max(map(len, lines)) <= WIDTH
    names = [line.split()[0] for line in lines if line and not line.startswith(" ")]
    assert [name for name in names if name in ENTRIES] == list(ENTRIES)


def test_json_has_all_of_it(capsys: Capture) -> None:
    assert main(["protocols", "--json"]) == 0
    facts: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in facts] == list(ENTRIES)
    by_name = {one["name"]: one for one in facts}
    assert by_name["bss"] == {
        "name": "bss",
        "title": "causal order by vector clocks (Birman, Schiper, Stephenson)",
        "order": "causal",
        "relation": "delivery",
        "safe": True,
        "live": True,
        "no_unnecessary_wait": True,
        "survives_loss": False,
        "joins": True,
        "leaves": True,
        "needs_time": False,
        "guarantee": by_name["bss"]["guarantee"],
        "addressing": "all",
        "overhead": "O(n)",
        "storage": "O(n)",
        "symbols": {"n": "members"},
        "source": "Sahai et al. 2020, Birman-Schiper-Stephenson Protocol",
        "variants": [
            {
                "name": name,
                "options": options,
                "defective": defective,
                "erratum": "E14" if defective else "",
                "guarantee": by_name["bss"]["guarantee"],
                "survives_loss": False,
            }
            for name, options, defective in (
                ("differences", {"differences": True}, False),
                ("as-published", {"as_published": True}, True),
            )
        ],
        "page": "docs/protocols/bss.md",
    }
    assert by_name["bss"]["guarantee"].startswith("order by delivery; no order violation,")
    # The roles of a hierarchy promise together what each of them promises.
    assert by_name["hierarchical"]["no_unnecessary_wait"] is False


@pytest.mark.parametrize("name", ENTRIES)
def test_a_protocol_alone(name: str, said: Call) -> None:
    out = said("protocols", name)
    assert out.startswith(f"{name}: {ENTRIES[name].title}\n")
    assert max(map(len, out.splitlines())) <= WIDTH
    assert all(variant in out for variant in ENTRIES[name].variants)
    assert out.count("defective") == len(ENTRIES[name].defective)


@pytest.mark.parametrize("name", ENTRIES)
def test_costs_are_told_in_letters_that_are_explained(name: str) -> None:
    found = ENTRIES[name]
    for cost in (found.overhead, found.storage):
        assert re.search(r"O\(.+\)", cost)
        inside = " ".join(re.findall(r"O\((.*?)\)", cost))
        assert (
            set(re.findall(r"[a-z]+", inside)) - {"log"} <= collect_facts(found)["symbols"].keys()
        )
        assert collect_facts(found)["symbols"].items() <= SYMBOLS.items()


def test_an_unknown_name(refused: Call) -> None:
    assert "no protocol is called 'lamport'" in refused("protocols", "lamport")
