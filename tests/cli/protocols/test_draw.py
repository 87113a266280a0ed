"""`antecede explain`: words, diagram, SVG and exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from antecede.cli import main
from tests.helpers.fixtures import Call, Capture
from tests.lab.diagram.pictures import BROKEN, HELD, HIERARCHY, MOVES


def explain(text: str, folder: Path, capsys: Capture, *options: str) -> tuple[int, str, str]:
    path = folder / "x.scenario"
    path.write_text(text, encoding="utf-8")
    code = main(["explain", str(path), *options])
    out, err = capsys.readouterr()
    return code, out, err


def test_every_step_says_why(tmp_path: Path, capsys: Capture) -> None:
    code, out, err = explain(HELD, tmp_path, capsys, "--width", "80")
    assert (code, err) == (0, "")
    assert out.startswith("b waits\nprotocol bss\n")
    assert "   1  P3 sends a to P1 and P2.\n" in out
    assert "   4  b arrives at P1. P1 holds it: it waits for a from P3.\n" in out
    assert "   6  a arrives at P1. P1 delivers a. P1 delivers b, held since step 4.\n" in out
    assert "○◀" in out
    assert "\x1b" not in out  # not a terminal


def test_a_violation_and_what_stays_held(tmp_path: Path, capsys: Capture) -> None:
    code, out, _ = explain(BROKEN, tmp_path, capsys, "--width", "100")
    assert code == 0
    assert "P1 delivers b BEFORE a from P3: the causal order is violated." in out
    assert "At the end P1 still holds a: it waits for causes that it can not name." in out


def test_forwarding_joins_leaves_and_duplicates(tmp_path: Path, capsys: Capture) -> None:
    _, out, _ = explain(HIERARCHY, tmp_path, capsys)
    assert "   2  m arrives at S. S forwards m to A, B, X and Y.\n" in out
    _, out, _ = explain(MOVES, tmp_path, capsys)
    assert "C joins and begins from what A has delivered." in out
    assert "B leaves." in out
    assert "A discards n: duplicate." in out


def test_the_svg_is_written(tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "x.svg"
    code, out, _ = explain(HELD, tmp_path, capsys, "--svg", str(target))
    assert code == 0
    assert f"The diagram as SVG: {target}" in out
    assert target.read_text(encoding="utf-8").startswith("<svg")


def test_words_and_diagram_stay_within_the_width(tmp_path: Path, capsys: Capture) -> None:
    for text in (BROKEN, HIERARCHY, MOVES):
        _, out, _ = explain(text, tmp_path, capsys, "--width", "50")
        assert max(map(len, out.splitlines())) <= 50


def test_exit_codes(tmp_path: Path, capsys: Capture) -> None:
    code, _, err = explain(HELD + "= P1 does something else\n", tmp_path, capsys)
    assert code == 1
    assert "x.scenario:9: expected ['P1 does something else']" in err
    code, _, err = explain(HELD + "send P9 z\n", tmp_path, capsys)
    assert code == 2
    assert "x.scenario:10: unknown member P9; in the group are P1, P2, P3" in err
    code, _, err = explain(HELD, tmp_path, capsys, "--svg", str(tmp_path / "no" / "x.svg"))
    assert code == 2
    assert "the folder to write into does not exist" in err
    assert main(["explain", str(tmp_path / "none")]) == 2


def test_a_lost_copy_and_its_second_sending_are_told_as_what_they_are(
    tmp_path: Path, capsys: Capture
) -> None:
    text = (
        "protocol linear heartbeat_s=none retry_s=1\nmembers A B\n"
        "send A m\nsend A n\nlose B m\narrive B n\narrive A note-B\narrive B m\n"
    )
    _, out, _ = explain(text, tmp_path, capsys)
    assert "   3  m to B is lost on the way.\n" in out
    assert "A sends m again, to B." in out
    assert "⊘               m is lost on the way" in out


def test_promises_and_topics_are_told(tmp_path: Path, capsys: Capture) -> None:
    text = (
        "protocol htbc\nmembers A B C\n"
        "bounds accuracy=1 least=1 most=2\nbounds A B least=2 most=9\n"
        "clock B -0.5\nsubscribe B x y\nsubscribe C y\nsend A m about x y\n"
    )
    _, out, _ = explain(text, tmp_path, capsys)
    assert "promised: delays 1 to 2 s, A to B 2 to 9 s; clocks right within 1 s\n" in out
    assert "clocks: B's is -0.5 s off\n" in out
    assert "topics: B reads x and y; C reads y\n" in out
    assert "1  A sends m about x and y to B and C." in out


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("title x\n\nprotocol bss diff=true\nmembers A B\n", 3, "has no option 'diff'"),
        ("# x\nprotocol bss differences=maybe\nmembers A B\n", 2, "true or false is allowed"),
        ("protocol matrix heartbeat_s=3\nmembers A B\n", 1, "heartbeat_s has no effect"),
        ("\nprotocol causal\nmembers A B\n", 2, "is an order, not a protocol"),
        ("protocol bss\nmembers A B\nbounds accuracy=1\n", 1, "takes no bounds"),
        ("protocol bss\nmembers A B\nsubscribe A x\n", 1, "takes no subscriptions"),
    ],
)
def test_what_is_wrong_with_the_protocol_names_its_line(
    text: str, line: int, says: str, tmp_path: Path, refused: Call
) -> None:
    path = tmp_path / "x.scenario"
    path.write_text(text)
    said = refused("explain", str(path))
    assert said.startswith(f"antecede: {path}:{line}: ")
    assert says in said


def test_states_stand_below_the_actions_that_change_them(said: Call, tmp_path: Path) -> None:
    path = tmp_path / "ses.scenario"
    path.write_text(
        "protocol ses\nmembers P1 P2 P3\nsend P3 a to P2\narrive P2 a\nsend P2 b to P1\n"
        "send P2 c to P1\narrive P1 c\n"
    )
    plain = said("explain", str(path))
    assert "keeps" not in plain
    lines = said("explain", str(path), "--states").splitlines()
    at = lines.index("   1  P3 sends a to P2.")
    assert lines[at + 1] == "      P3 keeps C = (0, 0, 1), V = (?, (0, 0, 1), ?)"
    assert [line for line in lines if "keeps" not in line] == plain.splitlines()


def test_a_cause_for_others_is_waited_for_as_news(capsys: Capture, tmp_path: Path) -> None:
    """a was never sent to P1, so P1 cannot wait for its arrival (Sahai et al., SES)."""
    path = tmp_path / "ses.scenario"
    path.write_text(
        "protocol ses\nmembers P1 P2 P3\nsend P3 a to P2\narrive P2 a\nsend P2 b to P1\n"
        "send P2 c to P1\narrive P1 c\nblocked P1\n"
    )
    assert main(["explain", str(path), "--svg", str(tmp_path / "ses.svg")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "P1 holds it: it waits for b from P2 and news of a from P3." in said
    assert "c waits for b, news of a" in said
    assert "c waits for b, news of a" in (tmp_path / "ses.svg").read_text()
