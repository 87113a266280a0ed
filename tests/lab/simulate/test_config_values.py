"""Values of a scenario set by their dotted keys, as sweeps do it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from antecede.errors import ConfigError
from antecede.lab.simulate.config.file import config_from, read_config
from antecede.lab.simulate.config.values import config_with_settings, read_values

MESH: dict[str, Any] = {
    "topology": {"kind": "mesh", "peers": 4},
    "protocol": {"name": "linear", "options": {"heartbeat_s": 1.0}},
}


@pytest.mark.parametrize(
    ("key", "value", "seen"),
    [
        ("members", 7, lambda s: s.topology.size),
        ("topology.peers", 7, lambda s: s.topology.size),
        ("protocol", "bss", lambda s: s.protocol),
        ("protocol", "ses/as-published", lambda s: f"{s.protocol}/{s.variant}"),
        ("options.heartbeat_s", 2.0, lambda s: s.options["heartbeat_s"]),
        ("options.heartbeat_s", None, lambda s: s.options["heartbeat_s"]),
        ("links.loss", 0.25, lambda s: s.links.loss),
        ("links.fifo", True, lambda s: s.links.fifo),
        ("workload.silent", 2, lambda s: s.workload.silent),
        ("workload.reply_fraction", 0.5, lambda s: s.workload.reply_fraction),
        ("clocks.accuracy_s", 0.01, lambda s: s.clocks.accuracy_s),
        ("run.duration_s", 2.5, lambda s: s.duration_s),
        ("name", "seven", lambda s: s.name),
    ],
)
def test_a_value_is_set_and_the_rest_stays(key: str, value: Any, seen: Any) -> None:
    values = copy.deepcopy(MESH)
    if key == "protocol":
        del values["protocol"]["options"]
    before = copy.deepcopy(values)
    assert seen(config_with_settings(values, {key: value})[0]) == value
    assert values == before


def test_delays_are_set_as_in_a_file() -> None:
    config, _ = config_with_settings(MESH, {"links.delay": "uniform 1-2 s"})
    assert config.links.delay.high_s == 2
    assert config_with_settings(
        MESH, {"workload.interval.low_s": 0.01, "workload.interval.high_s": 1.0}
    )


def test_values_that_need_each_other_are_judged_together() -> None:
    config, _ = config_with_settings(MESH, {"workload.fanout": 9, "members": 10})
    assert config.workload.fanout == 9


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("options.heartbeet_s", 1.0, "did you mean heartbeat_s"),
        ("links.los", 0.1, "links.los: unknown key; did you mean loss"),
        ("lnks.loss", 0.1, "lnks: unknown table; did you mean links"),
        ("links", {}, "this is a table"),
        ("links.loss", 1.5, "links.loss: 1.5; expected a probability"),
        ("links.loss", None, "only allowed for options"),
        ("links.loss.more", 1, "links.loss"),
        ("members", 2.5, "topology.peers: 2.5; expected an integer"),
        ("workload.rate_hz", 3.0, "a periodic workload has no rate"),
        ("run.seed", 3, "run.seed: unknown key"),
        ("topology.groups", [3], "topology.groups: unknown key"),
        ("protocol", 3, "NAME/VARIANT"),
        ("protocol", "nobody", "unknown protocol 'nobody'"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_key(key: str, value: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says.replace("(", r"\(")) as found:
        config_with_settings(MESH, {key: value}, "run.toml")
    assert found.value.path == "run.toml"


def test_members_of_a_hierarchy_are_said_to_be_its_groups() -> None:
    tree = {
        "topology": {"kind": "hierarchy", "groups": [2], "external": 1},
        "protocol": {"name": "hierarchical"},
    }
    with pytest.raises(ConfigError, match=r"topology\.groups and topology\.external"):
        config_with_settings(tree, {"members": 9})
    assert config_with_settings(tree, {"topology.groups": "2 x 3"})[0].topology.size == 2 + 6 + 1


def test_files_are_looked_for_beside_the_scenario(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text('[topology]\nkind = "mesh"\npeers = 3\n')
    (tmp_path / "mine.py").write_text("")
    values = read_values(path)
    assert config_from(values, str(path)) == read_config(path)
    found, _ = config_with_settings(values, {"protocol": "mine.py:Mine"}, str(path))
    assert found.protocol == str(tmp_path / "mine.py:Mine")
