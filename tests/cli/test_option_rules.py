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
    ("false-causality t.csv --witnesses -1", "--witnesses -1"),
    ("false-causality t.csv --rules linear --max-delay 1", "--max-delay"),
    (
        "false-causality t.csv --rules linear,arrival --accuracy 0 --min-delay 0 --max-delay 1",
        "--accuracy, --min-delay",
    ),
    ("false-causality t.csv --rules linear --subscribe a=x", "--subscribe"),
    ("false-causality t.csv --broadcast", "--broadcast"),
    ("draw x.scenario --width 39", "--width 39"),
    ("replay wire.parquet --time-unit s", "--time-unit"),
    ("replay new.parquet --example 3 --engine local", "--engine"),
    ("replay new.parquet --example 3 -o out.csv", "--output"),
    ("replay new.parquet --example 3 --observer x --tick-s 1", "--observer, --tick-s"),
    ("simulate --template mesh mesh.toml", "CONFIG"),
    ("simulate --template mesh --seed 0 --json", "--seed, --json"),
    ("simulate mesh.toml --output-plot x.svg --seeds 2", "--seeds"),
    ("compare bss idr --accuracy 1", "--accuracy"),
    ("compare bss idr --topology hierarchy", "--topology"),
    ("compare matrix --topology mesh --accuracy 3 --members 3", "--accuracy"),
    (
        "reproduce --output x --filter y --no-cache --engine local",
        "--output, --filter, --no-cache, --engine",
    ),
    ("reproduce --traces a", "--traces"),
    ("reproduce --jobs 3", "--jobs"),
    ("reproduce vector --no-cache --report-only -o out", "--no-cache"),
    ("compare bss --force", "--force"),
    ("simulate mesh.toml --force", "--force"),
    ("draw x.scenario --force", "--force"),
    ("check fifo --force", "--force"),
    ("replay wire.parquet --prefix x", "--prefix"),
    ("reproduce vector --engine local --master local[2] -o out", "--master"),
    ("sweep mesh.toml --over members=2,3 --no-cache --report-only", "--no-cache"),
    ("sweep mesh.toml --over members=2,3 --report-only --jobs 1", "--jobs"),
    ("sweep mesh.toml --over members=2,3 --master local", "--master"),
    ("demo --trace t.csv --seconds 5", "--seconds"),
    ("demo --format table", "--format"),
    ("check bss --jobs 3", "--jobs"),
    ("check --all --quick --messages 2", "--messages"),
    ("check --snapshots lai-yang --size large", "--size"),
    ("check bss --snapshots lai-yang", "PROTOCOL"),
    ("check --snapshots lai-yang --output-html x.html", "--output-html"),
    ("check bss --channels any", "--channels"),
    ("check bss --runs 3 --max-states 9", "--runs, --max-states"),
    ("check --all --snapshots lai-yang", "--snapshots"),
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
        "false-causality t.csv --per-observer --witnesses 0",
        "false-causality t.csv --json",
        "simulate --template mesh",
        "simulate mesh.toml --trace x.csv --force",
        "reproduce",
        "replay new.parquet --example 3 --force --members a,b --order fifo",
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
    text = " ".join(capsys.readouterr().out.split())
    rules: tuple[OptionRule, ...] = WITH_RULES[name]
    for rule in rules:
        assert {*rule.options, *dict(rule.others)} <= known.keys()
    shown = [rule for rule in rules if rule.is_in_help]
    assert text.count("; only with") + text.count("; not with") >= len(shown)


def test_a_rule_says_what_is_missing_or_in_the_way(place: Path, capsys: Capture) -> None:
    assert main(["audit", "t.csv", "--force"]) == 2
    assert capsys.readouterr().err == (
        "antecede: --force has no effect without --quarantine or --output-html (nothing is "
        "written): omit --force\n"
    )
    assert main(["false-causality", "t.csv", "--json", "--per-observer", "--witnesses", "5"]) == 2
    assert capsys.readouterr().err == (
        "antecede: --per-observer, --witnesses have no effect with --json (JSON has everything): "
        "omit --per-observer, --witnesses\n"
    )
