"""`antecede draw`: text, diagram, SVG and exit codes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from antecede.cli import main
from tests.helpers.fixtures import Call, Capture
from tests.lab.diagram.pictures import BROKEN, HELD, HIERARCHY, MOVES

LOST = """protocol linear heartbeat_s=none retry_s=1
members A B
send A m
send A n
lose B m
arrive B n
arrive A note-B
arrive B m
"""
PROMISED = """protocol htbc
members A B C
bounds accuracy=1 least=1 most=2
bounds A B least=2 most=9
clock B -0.5
subscribe B x y
subscribe C y
send A m about x y
"""
SES = """protocol ses
members P1 P2 P3
send P3 a to P2
arrive P2 a
send P2 b to P1
send P2 c to P1
arrive P1 c
"""
SAID = (
    (
        HELD,
        "b waits\nprotocol bss\n",
        "   1  P3 sends a to P1 and P2.\n",
        "   4  b arrives at P1. P1 holds it: it waits for a from P3.\n",
        "   6  a arrives at P1. P1 delivers a. P1 delivers b, held since step 4.\n",
        "○◀",
    ),
    (
        BROKEN,
        "P1 delivers b BEFORE a from P3: the causal order is violated.",
        "At the end P1 still holds a: it waits for unknown causes.",
    ),
    (HIERARCHY, "   2  m arrives at S. S forwards m to A, B, X and Y.\n"),
    (
        MOVES,
        "C joins and begins from what A has delivered.",
        "B leaves.",
        "A discards n: duplicate.",
    ),
    (
        LOST,
        "   3  m to B is lost on the way.\n",
        "A sends m again, to B.",
        "⊘               m is lost on the way",
    ),
    (
        PROMISED,
        "promised: delays 1 to 2 s, A to B 2 to 9 s; clocks right within 1 s\n",
        "clocks: B's is -0.5 s off\n",
        "topics: B reads x and y; C reads y\n",
        "1  A sends m about x and y to B and C.",
    ),
)

Explain = Callable[..., tuple[int, str, str]]


@pytest.fixture
def explain(tmp_path: Path, capsys: Capture) -> Explain:
    """Return a function: a script and options -> exit code, output, errors."""
    path = tmp_path / "x.scenario"

    def call(text: str, *options: str | Path) -> tuple[int, str, str]:
        path.write_text(text, encoding="utf-8")
        return main(["draw", str(path), *map(str, options)]), *capsys.readouterr()

    return call


@pytest.mark.parametrize(("text", "parts"), [(text, parts) for text, *parts in SAID])
def test_every_step_says_why(text: str, parts: list[str], explain: Explain) -> None:
    code, out, err = explain(text, "--width", "100")
    assert (code, err) == (0, "")
    assert [part for part in parts if part not in out] == []
    assert "\x1b" not in out  # not a terminal
    _, out, _ = explain(text, "--width", "50")
    assert max(map(len, out.splitlines())) <= 50


def test_exit_codes(explain: Explain, tmp_path: Path) -> None:
    for more, code, said in (
        ("= P1 does something else\n", 1, ":9: expected ['P1 does something else']"),
        ("send P9 z\n", 2, ":10: unknown member P9; choose from P1, P2, P3"),
    ):
        ended, _, err = explain(HELD + more)
        assert (ended, f"x.scenario{said}" in err) == (code, True)
    code, _, err = explain(HELD, "--output-svg", tmp_path / "no" / "x.svg")
    assert (code, "the folder does not exist" in err) == (2, True)
    assert main(["draw", str(tmp_path / "none")]) == 2


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("title x\n\nprotocol bss diff=true\nmembers A B\n", 3, "has no option 'diff'"),
        ("\nprotocol causal\nmembers A B\n", 2, "is an order, not a protocol"),
        ("protocol bss\nmembers A B\nbounds accuracy=1\n", 1, "does not support bounds"),
        ("protocol bss\nmembers A B\nsubscribe A x\n", 1, "does not support subscriptions"),
    ],
)
def test_what_is_wrong_with_the_protocol_names_its_line(
    text: str, line: int, says: str, tmp_path: Path, refused: Call
) -> None:
    path = tmp_path / "x.scenario"
    path.write_text(text)
    said = refused("draw", path)
    assert said.startswith(f"antecede: {path}:{line}: ")
    assert says in said


def test_states_stand_below_the_actions_that_change_them(explain: Explain) -> None:
    _, plain, _ = explain(SES)
    assert "keeps" not in plain
    _, out, _ = explain(SES, "--states")
    lines = out.splitlines()
    at = lines.index("   1  P3 sends a to P2.")
    assert lines[at + 1] == "      P3 keeps C = (0, 0, 1), V = (?, (0, 0, 1), ?)"
    assert [line for line in lines if "keeps" not in line] == plain.splitlines()


def test_a_cause_for_others_is_waited_for_as_news(explain: Explain, tmp_path: Path) -> None:
    """a was never sent to P1, so P1 cannot wait for its arrival (Sahai et al., SES)."""
    target = tmp_path / "ses.svg"
    code, out, _ = explain(SES + "blocked P1\n", "--output-svg", target)
    words = " ".join(out.split())
    assert (code, f"Diagram as SVG: {target}" in out) == (0, True)
    assert "P1 holds it: it waits for b from P2 and news of a from P3." in words
    assert "c waits for b, news of a" in words
    assert "c waits for b, news of a" in target.read_text(encoding="utf-8")
