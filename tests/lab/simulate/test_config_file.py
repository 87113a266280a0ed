"""Config files of the simulator: what is read, and that reading undoes writing."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from antecede.errors import ConfigError
from antecede.lab.simulate.config.file import (
    config_from,
    config_mapping,
    format_toml,
    read_config,
    write_config,
)
from antecede.lab.simulate.config.model import (
    Clocks,
    Links,
    Partition,
    SimulationConfig,
    Special,
    Workload,
)
from antecede.lab.simulate.delays import Delay, format_delay, parse_delay
from antecede.lab.simulate.topology import Hierarchy, Mesh, PubSub
from tests.lab.simulate.config_strategies import configs, delays

WHOLE = """
name = "everything"

[topology]
kind = "hierarchy"
groups = [3, 2]
external = 4

[protocol]
name = "hierarchical"
variant = "published-pruning"
options = { ack_after = 3 }

[links]
delay = "50-250 ms"
fifo = true
loss = 0.01
duplicate = 0.02
buffer = 100
service_s = 0.001
special = [
  { from = "group:0", to = "super", delay = "uniform 1-2 ms" },
  { from = 7, to = "any", delay = { low_s = 0.01, high_s = 0.01, kind = "constant" } },
]
partitions = [{ start_s = 1, end_s = 2.5, side = [0, 3], lost = true }]

[workload]
kind = "poisson"
rate_hz = 5
silent = 2

[clocks]
accuracy_s = 0.01
drift_ppm = 100
resync_s = 60

[run]
duration_s = 10
warm_s = 2
sample_s = 0.1
"""


def read(tmp_path: Path, text: str) -> SimulationConfig:
    path = tmp_path / "run.toml"
    path.write_text(text, encoding="utf-8")
    return read_config(path)


def test_every_table_is_read(tmp_path: Path) -> None:
    assert read(tmp_path, WHOLE) == SimulationConfig(
        Hierarchy((3, 2), 4),
        "hierarchical",
        "published-pruning",
        {"ack_after": 3},
        Links(
            Delay(0.05, 0.25),
            (
                Special("group:0", "super", Delay(0.001, 0.002, "uniform")),
                Special("7", "any", Delay(0.01, 0.01, "constant")),
            ),
            None,
            True,
            0.01,
            0.02,
            (Partition(1.0, 2.5, (0, 3), True),),
            100,
            0.001,
        ),
        Workload("poisson", rate_hz=5.0, silent=2),
        Clocks(0.01, 100.0, 60.0),
        10.0,
        2.0,
        0.1,
        "everything",
    )


def test_what_is_left_out_has_the_values_of_the_classes(tmp_path: Path) -> None:
    assert read(tmp_path, '[topology]\nkind = "mesh"\npeers = 3\n') == SimulationConfig(Mesh(3))
    text = '[topology]\nkind = "pubsub"\nsubgroups = "2 x 3"\ntopics = 5\n[protocol]\nname = "tv"\n'
    assert read(tmp_path, text) == SimulationConfig(PubSub((3, 3), 5), "tv")


def test_many_groups_alike_are_one_text(tmp_path: Path) -> None:
    text = '[topology]\nkind = "hierarchy"\ngroups = "1000 x 50"\n[protocol]\nname="hierarchical"\n'
    assert read(tmp_path, text).topology == Hierarchy((50,) * 1000)


@pytest.mark.parametrize(
    ("text", "delay"),
    [
        ("50-250 ms", Delay(0.05, 0.25)),
        ("50-250ms", Delay(0.05, 0.25)),
        ("50 – 250 ms", Delay(0.05, 0.25)),
        ("50 to 250 ms", Delay(0.05, 0.25)),
        ("50..250 ms", Delay(0.05, 0.25)),
        ("50 ms - 0.25 s", Delay(0.05, 0.25)),
        ("normal 0-50 ms", Delay(0.0, 0.05)),
        ("Uniform 1-2 s", Delay(1.0, 2.0, "uniform")),
        ("lognormal 5-500 ms", Delay(0.005, 0.5, "lognormal")),
        ("constant 10 ms", Delay(0.01, 0.01, "constant")),
        ("10 ms", Delay(0.01, 0.01, "constant")),
        ("250 us", Delay(0.00025, 0.00025, "constant")),
        ("250 µs", Delay(0.00025, 0.00025, "constant")),
        ("1e-3-2e-3 s", Delay(0.001, 0.002)),
        ("0 ms", Delay(0.0, 0.0, "constant")),
    ],
)
def test_delays_are_written_as_people_write_them(text: str, delay: Delay) -> None:
    assert parse_delay(text) == delay


def test_the_command_line_may_leave_out_the_unit() -> None:
    assert parse_delay("50-250", "ms") == Delay(0.05, 0.25)
    assert parse_delay("50-250 us", "ms") == Delay(0.00005, 0.00025)


@given(delays())
def test_words_of_a_delay_are_read_back(delay: Delay) -> None:
    again = parse_delay(format_delay(delay))
    assert again.kind == delay.kind
    assert (again.low_s, again.high_s) == pytest.approx((delay.low_s, delay.high_s), rel=1e-11)


@given(configs(unused=True))
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_plain_values_of_a_scenario_make_it_again(config: SimulationConfig) -> None:
    mapping = config_mapping(config)
    assert config_from(mapping) == config
    assert config_from(json.loads(json.dumps(mapping))) == config


@given(configs())
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_a_written_file_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, config: SimulationConfig
) -> None:
    path = tmp_path_factory.mktemp("written") / "run.toml"
    write_config(config, path)
    late = [one for one in config.links.partitions if one.start_s >= config.duration_s]
    again = read_config(path)
    cuts = again.links.partitions
    assert replace(again, links=replace(again.links, partitions=config.links.partitions)) == (
        config
    )
    assert cuts == config.links.partitions or set(config.links.partitions) - set(cuts) == {*late}


def test_text_is_escaped_as_toml_wants_it() -> None:
    values = {"odd \x7f\n": {'"quoted"\\': 'a\tb\x7f\x00"\\ü\U0001f600', "list": [[1.5], []]}}
    assert tomllib.loads(format_toml(values)) == values


def test_options_that_are_none_have_names_of_their_own(tmp_path: Path) -> None:
    text = '[topology]\nkind="mesh"\npeers=2\n[protocol]\nname="linear"\nwithout=["heartbeat_s"]\n'
    assert read(tmp_path, text).options == {"heartbeat_s": None}


def test_what_is_no_plain_value_is_not_written() -> None:
    odd = SimulationConfig(Mesh(3), "bss", options={"differences": object()})
    with pytest.raises(
        ConfigError, match=r"protocol\.options\.differences: unsupported type object"
    ):
        config_mapping(odd)


def test_a_protocol_of_ones_own_stands_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("", encoding="utf-8")
    text = '[topology]\nkind = "mesh"\npeers = 2\n[protocol]\nname = "mine.py:Mine"\n'
    config = read(tmp_path, text)
    assert config.protocol == f"{tmp_path / 'mine.py'}:Mine"
    assert config_from(config_mapping(config)) == config
