"""Estimated pairs: only on demand, under their own names, with an interval."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from antecede.errors import InputError
from antecede.tables.audit import audit, audit_events
from antecede.tables.audit.pairs import (
    CONFIDENCE_NAME,
    ESTIMATED,
    PAIR_KEYS,
    PAIR_STEPS,
    PairChoice,
    choose_pairs,
)
from antecede.tables.kernels.sketches import RANKS
from antecede.tables.trace.schema import Event
from tests.reference.cause_graph import Graph
from tests.tables.conftest import Command
from tests.tables.events import clocked, table_of

KEYS = (*ESTIMATED, CONFIDENCE_NAME)


def make_events(n: int, seed: int = 0) -> list[Event]:
    """Return events with up to three causes each, with odd ids and out of order."""
    rng = random.Random(seed)
    names = [rng.choice(("é", "", "x" * 40)) + f"m{k}" for k in range(n)]
    rows = [
        Event(id=name, causes=tuple(rng.choices(names[:k], k=rng.choice((1, 2, 3))) if k else ()))
        for k, name in enumerate(names)
    ]
    rng.shuffle(rows)
    return rows


def true_pairs(events: list[Event]) -> int:
    past = Graph({event.id: event.causes for event in events})
    return sum(len(past.ancestors(event.id)) for event in events)


def test_an_estimate_stands_under_names_of_its_own() -> None:
    events = make_events(400)
    found = audit_events(table_of(events), choice=choose_pairs("estimate", 0, 256)).to_dict()
    assert [found[name] for name in PAIR_KEYS] == [None] * 4
    true, every = true_pairs(events), 400 * 399 // 2
    guess, low, high, apart, least, most, confidence = (found["details"][n] for n in KEYS)
    assert low < true < high
    assert low < guess < high
    assert (apart, least, most) == (every - guess, every - high, every - low)
    assert confidence == 0.95
    assert (found["messages"], found["merges"] > 0) == (400, True)


def test_exact_where_that_takes_no_more_steps_than_said() -> None:
    events = make_events(400)
    plain = audit_events(table_of(events)).to_dict()
    assert plain["ordered_pairs"] == true_pairs(events)
    steps = plain["edges"] * (400 // 64 + 1)
    assert (
        audit_events(table_of(events), choice=choose_pairs("estimate", steps, 64)).to_dict()
        == plain
    )
    beyond = audit_events(
        table_of(events), choice=choose_pairs("estimate", steps - 1, 64)
    ).to_dict()
    assert beyond["ordered_pairs"] is None
    one_each = [event._replace(causes=event.causes[:1]) for event in events]
    exact = audit_events(table_of(one_each), choice=choose_pairs("estimate", 0, 64)).to_dict()
    assert exact == audit_events(table_of(one_each)).to_dict()


def test_none_and_clocks_that_are_never_estimated() -> None:
    none = audit_events(table_of(make_events(50)), choice=PairChoice(False, 0, 64)).to_dict()
    assert [none[name] for name in PAIR_KEYS] == [None] * 4
    assert not set(KEYS) & set(none["details"])
    log = [clocked("a1", "a", {"a": 1}), clocked("b1", "b", {"a": 1, "b": 1})]
    exact = audit_events(table_of(log), choice=choose_pairs("estimate", 0, 64))
    assert exact.ordered_pairs == 1
    assert (
        audit_events(table_of(log), choice=choose_pairs(False, PAIR_STEPS, RANKS)).ordered_pairs
        is None
    )


def test_wrong_choices_are_named() -> None:
    wrong: dict[str, tuple[Any, ...]] = {
        "pairs": ("guess", 1, None),
        "pair_steps": (-1, "64", None, 1.5, True),
        "pair_ranks": (15, "64", None, 64.0),
    }
    for name, values in wrong.items():
        for value in values:
            with pytest.raises(InputError, match=f"{name}="):
                audit([], **{"pairs": "estimate", name: value})

    for unused in ({"pair_ranks": 64}, {"pairs": False, "pair_steps": 9}):
        with pytest.raises(InputError, match="pairs="):
            audit([], **unused)  # type: ignore[arg-type]


def test_the_command_says_estimated(tmp_path: Path, command: Command) -> None:
    path = tmp_path / "t.jsonl"
    lines = [json.dumps({"id": e.id, "causes": list(e.causes)}) for e in make_events(300)]
    path.write_text("\n".join(lines), encoding="utf-8")
    options = ("--pairs", "estimate", "--pair-steps", "10", "--pair-ranks", "64")
    text = command("audit", path, *options).out
    found = command("audit", path, "--json", *options).json
    details = found["details"]
    assert f"{details['ordered_pairs_estimated']:,}" in text
    between = f"{details['ordered_pairs_low']:,} to {details['ordered_pairs_high']:,}"
    assert f"{between} with 95% confidence" in text
    assert "ordered pairs, estimated" in text
    assert "concurrent pairs, estimated" in text
    assert found["ordered_pairs"] is None
    exact = command("audit", path).out
    assert "estimated" not in exact
    assert "immediate dependencies" in exact
    assert "pairs" not in command("audit", path, "--pairs", "none").out
    assert "omit --pair-ranks" in command("audit", path, "--pair-ranks", "64").refused
