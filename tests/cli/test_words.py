"""One of a thing is in the singular, in what every command prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from antecede.cli import main
from antecede.formatting import pluralize

ONE_OF_MANY = re.compile(
    r"(?<![\d,./:-])1 (more |other |bad |later |repeated |clock |internal )*"
    r"(?!is\b|was\b|has\b|days\b|ms\b|s\b|times\b|this\b|less\b|names\b|across\b)[a-zA-Z]+s\b"
)
ONE = (
    "audit one.csv",
    "audit two.csv",
    "audit clocks.log",
    "false-causality two.csv",
    "false-causality three.csv",
    "order one.csv -o out.csv",
    "order two.csv -o out.csv",
    "convert one.csv -o out.jsonl",
    "convert two.csv -o out.log",
    "replay wire.parquet --example 1",
    "simulate one.toml",
    "simulate one.toml --engine compiled",
    "compare bss fifo --members 1,2 --rate 1 --seconds 1",
    "compare bss --members 2 --loss 0.5 --rate 1 --seconds 2",
    "check unordered --members 2 --messages 1",
    "draw x.scenario",
    "protocols fifo",
)


@pytest.mark.parametrize("call", ONE)
def test_one_of_a_thing_is_in_the_singular(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.csv").write_text("id,after,sender\na,,x\n")
    Path("two.csv").write_text("id,after,sender\na,,x\nb,a,y\nb,a,y\nb,,y\nc,gone,y\nd,d,y\n,,\n")
    Path("three.csv").write_text("id,sender,kind\nm,a,send\nm,b,receive\nn,b,receive\n")
    Path("clocks.log").write_text('a {"a":1}\nstart\nb {"b":1,"a":9}\nheard\n')
    Path("one.toml").write_text(
        '[topology]\nkind="mesh"\npeers=2\n[workload]\nkind="random"\nmessages=1\n'
        "[run]\nduration_s=0.5\n"
    )
    Path("x.scenario").write_text("protocol bss\nmembers A B\nsend A m\narrive B m\n")
    assert main(call.split()) in (0, 1)
    said = capsys.readouterr().out
    assert said
    assert [found[0] for found in ONE_OF_MANY.finditer(said)] == []


def test_what_the_test_looks_for_is_found() -> None:
    for wrong in ("1 states", "1 bad rows,", "x 1 deliveries", "1 messages"):
        assert ONE_OF_MANY.search(wrong)
    for right in ("1 state", "21 states", "0.1 states", "2,001 rows", "2-1 runs"):
        assert not ONE_OF_MANY.search(right)
    assert pluralize(1, "copy", "copies") == "1 copy"
    assert pluralize(0, "copy", "copies") == "0 copies"
    assert pluralize(2000, "peer") == "2,000 peers"
