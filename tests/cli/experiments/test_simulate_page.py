"""Pages of the simulator: all keys of a config, and commands with the output that is shown."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from antecede.cli import main
from antecede.lab.simulate.config import keys
from antecede.lab.simulate.config.file import config_from, config_mapping, read_config
from antecede.lab.simulate.config.model import Links, Workload
from antecede.lab.simulate.topology import TOPOLOGIES
from tests.helpers.fixtures import Capture, Patch

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = (DOCS / "simulate.md").read_text(encoding="utf-8")
CONFIG = (DOCS / "reference" / "simulation.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"```\n\$ antecede (compare .*?)\n(.*?)\n```", PAGE, re.DOTALL)


def skeleton(text: str) -> str:
    """Return the words of a text in their order; numbers are any."""
    return " ".join(re.sub(r"<?\d[\d.,]*|–", "#", text).split())


def table(name: str) -> set[str]:
    """Return the keys that the page's table of one TOML table explains."""
    found = re.search(rf"\| `\[{name}\]` \| \|\n\|---\|---\|\n((?:\|.*\n)+)", CONFIG)
    assert found is not None
    firsts = [row.split("|")[1] for row in found[1].splitlines()]
    return {key for first in firsts for key in re.findall(r"`(\w+)`", first)}


def test_every_key_is_explained_and_no_other() -> None:
    topology = {key for kind in TOPOLOGIES for key in keys.topology_of(kind)}
    assert table("topology") == {"kind", *topology}
    assert table("protocol") == set(keys.PROTOCOL)
    assert table("links") == set(keys.links_of(Path()))
    assert table("workload") == set(keys.WORKLOAD)
    assert table("clocks") == set(keys.CLOCKS)
    assert table("run") == set(keys.RUN)
    assert table("snapshots") == set(keys.SNAPSHOTS)


def test_no_field_of_a_scenario_is_left_out_of_its_file() -> None:
    assert {field.name for field in dataclasses.fields(Links)} == set(keys.links_of(Path()))
    assert {field.name for field in dataclasses.fields(Workload)} == set(keys.WORKLOAD)


@pytest.mark.slow
@pytest.mark.parametrize(("command", "shown"), SHOWN, ids=[command for command, _ in SHOWN])
def test_compare_prints_what_the_page_shows(
    command: str, shown: str, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main(command.split()) == 0
    assert skeleton(capsys.readouterr().out).startswith(skeleton(shown))


@pytest.mark.slow
def test_simulate_prints_what_the_page_shows(
    tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    found = re.search(r"\$ antecede simulate hierarchy\.toml\n(.*?)\n```", PAGE, re.DOTALL)
    assert found is not None
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    assert main(["simulate", "--template", "hierarchy"]) == 0
    Path("hierarchy.toml").write_text(capsys.readouterr().out, encoding="utf-8")
    assert main(["simulate", "hierarchy.toml"]) == 0
    assert skeleton(capsys.readouterr().out) == skeleton(found[1])
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    space: dict[str, object] = {}
    exec(program, space)
    assert config_from(config_mapping(read_config("hierarchy.toml"))) == space["config"]


def test_the_snapshots_of_the_page(tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    found = re.search(
        r"\$ cat snapshots\.toml\n(.*?)\$ antecede (simulate .*?)\n\.\.\.\n(.*?)\n```", PAGE, re.S
    )
    assert found is not None
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    Path("snapshots.toml").write_text(found[1], encoding="utf-8")
    assert main(found[2].split()) == 0
    assert found[3] in capsys.readouterr().out
