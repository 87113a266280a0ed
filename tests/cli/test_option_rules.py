"""No option is ignored in silence: each subcommand refuses what it would not look at."""

from __future__ import annotations

import argparse
import datetime
import importlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from antecede.cli import COMMANDS, main
from antecede.cli.option_rules import OptionRule
from tests.helpers.fixtures import Call, Capture

MESH = '[topology]\nkind="mesh"\npeers=3\n[run]\nduration_s=0.2\n'
TABLE = "id,after\na,\nb,a\n"
REFUSED = (
    ("meter t.csv --witnesses -1", "--witnesses -1"),
    ("meter t.csv --rules linear --most 1", "--most"),
    ("meter t.csv --rules linear,arrival --accuracy 0 --least 0 --most 1", "--accuracy, --least"),
    ("meter t.csv --rules linear --subscribe a=x", "--subscribe"),
    ("meter t.csv --to-everybody", "--to-everybody"),
    ("explain x.scenario --width 39", "--width 39"),
    ("deliver wire.parquet --time-unit s", "--time-unit"),
    ("deliver new.parquet --example 3 --engine local", "--engine"),
    ("deliver new.parquet --example 3 -o out.csv", "--out"),
    ("deliver new.parquet --example 3 --observer x --tick-s 1", "--observer, --tick-s"),
    ("simulate --template mesh mesh.toml", "FILE"),
    ("simulate --template mesh --seed 0 --json", "--seed, --json"),
    ("simulate mesh.toml --save-plot x.svg --seeds 2", "--seeds"),
    ("compare bss idr --accuracy 1", "--accuracy"),
    ("compare bss idr --topology hierarchy", "--topology"),
    ("compare matrix --topology mesh --accuracy 3 --members 3", "--accuracy"),
    ("study --out x --only y --fresh --engine local", "--out, --only, --fresh, --engine"),
    ("study --traces a", "--traces"),
    ("study --jobs 3", "--jobs"),
    ("study vector --fresh --redraw -o out", "--fresh"),
    ("compare bss --force", "--force"),
    ("simulate mesh.toml --force", "--force"),
    ("explain x.scenario --force", "--force"),
    ("check fifo --force", "--force"),
    ("deliver wire.parquet --prefix x", "--prefix"),
    ("study vector --engine local --master local[2] -o out", "--master"),
    ("sweep mesh.toml --over members=2,3 --fresh --redraw", "--fresh"),
    ("sweep mesh.toml --over members=2,3 --redraw --jobs 1", "--jobs"),
    ("sweep mesh.toml --over members=2,3 --master local", "--master"),
    ("demo --trace t.csv --seconds 5", "--seconds"),
    ("demo --format table", "--format"),
    ("check bss --jobs 3", "--jobs"),
    ("check --all --quick --messages 2", "--messages"),
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(TABLE)
    Path("mesh.toml").write_text(MESH)
    Path("x.scenario").write_text("protocol bss\nmembers A B\nsend A m\n")
    when = datetime.datetime(2024, 1, 1)
    rows = {"observer": ["a"], "wire": [b"x"], "time": [when]}
    pq.write_table(pa.table(rows), "wire.parquet")
    return tmp_path


@pytest.mark.parametrize(("call", "named"), REFUSED)
def test_an_option_without_an_effect_is_refused_by_name(
    call: str, named: str, place: Path, capsys: Capture
) -> None:
    before = sorted(place.rglob("*"))
    try:
        code = main(call.split())
    except SystemExit as stopped:  # what argparse refuses
        code = int(str(stopped.code))
    assert code == 2
    said = capsys.readouterr()
    assert named in said.err
    assert not said.out
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize(
    "call",
    [
        "audit t.csv --quarantine q.csv --force",
        "meter t.csv --each --witnesses 0",
        "meter t.csv --json",
        "simulate --template mesh",
        "simulate mesh.toml --trace x.csv --force",
        "study",
        "deliver new.parquet --example 3 --force --members a,b --order fifo",
    ],
)
def test_what_has_an_effect_is_taken(call: str, place: Path, capsys: Capture) -> None:
    assert main(call.split()) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize(
    ("order", "names"), [("causal", ("idr", "ses")), ("reply", ("sb",)), ("none", ("unordered",))]
)
def test_an_order_in_place_of_a_protocol_gets_the_protocols_to_name(
    order: str, names: tuple[str, ...], place: Path, refused: Call
) -> None:
    Path("mesh.toml").write_text(MESH + f'[protocol]\nname="{order}"\n')
    for call in (["check", order], ["compare", order], ["protocols", order]):
        said = refused(*call)
        assert f"'{order}' is an order, not a protocol" in said
        assert all(f"{name} " in said for name in names)
        assert "docs/protocols/README.md" in said
    assert "is an order, not a protocol" in refused("simulate", "mesh.toml")


WITH_RULES = {
    name: importlib.import_module(command.module).OPTION_RULES
    for name, command in COMMANDS.items()
    if hasattr(importlib.import_module(command.module), "OPTION_RULES")
}


@pytest.mark.parametrize("name", WITH_RULES)
def test_rules_name_options_of_their_command_and_stand_in_its_help(
    name: str, capsys: Capture
) -> None:
    parser = argparse.ArgumentParser()
    importlib.import_module(COMMANDS[name].module).add_arguments(parser)
    known = {action.dest: action for action in parser._actions}
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    told = " ".join(capsys.readouterr().out.split())
    rules: tuple[OptionRule, ...] = WITH_RULES[name]
    for rule in rules:
        assert {*rule.options, *dict(rule.others)} <= known.keys()
    assert told.count("no effect without") + told.count("no effect beside") >= len(rules)


def test_a_rule_says_what_is_missing_or_in_the_way(place: Path, capsys: Capture) -> None:
    assert main(["audit", "t.csv", "--force"]) == 2
    assert capsys.readouterr().err == (
        "antecede: --force has no effect without --quarantine or --page (nothing is written): "
        "leave out --force\n"
    )
    assert main(["meter", "t.csv", "--json", "--each", "--witnesses", "5"]) == 2
    assert capsys.readouterr().err == (
        "antecede: --each, --witnesses have no effect beside --json (JSON has everything): "
        "leave out --each, --witnesses\n"
    )
