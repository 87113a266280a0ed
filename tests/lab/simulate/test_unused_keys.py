"""What a scenario says and its run has no use for: refused by name, or left out and said."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from antecede.cli import main
from antecede.errors import ConfigError
from antecede.lab.simulate.config.file import format_toml, read_config, write_config
from antecede.lab.simulate.config.model import Clocks, Links, Partition, SimulationConfig
from antecede.lab.simulate.config.values import config_with_settings
from antecede.lab.simulate.members import make_members
from antecede.lab.simulate.topology import Mesh

LATE = {"start_s": 5.0, "end_s": 6.0, "side": [0]}
EARLY = {"start_s": 0.5, "end_s": 6.0, "side": [0]}
IDLE: tuple[tuple[dict[str, Any], str, str], ...] = (
    ({"workload": {"recent": 4}}, "workload.recent", "without replies"),
    ({"workload": {"recent": 4, "reply_fraction": 0.0}}, "workload.recent", "without replies"),
    (
        {"workload": {"kind": "poisson", "rate_hz": 3.0, "total_hz": 9.0}},
        "workload.rate_hz",
        "with total_hz",
    ),
    ({"workload": {"kind": "poisson", "interval": "70-90 ms"}}, "workload.interval", "no interval"),
    ({"links": {"buffer": 3}}, "links.buffer", "without service time"),
    ({"clocks": {"accuracy_s": 0.1, "resync_s": 3.0}}, "clocks.resync_s", "only drifting clocks"),
    ({"links": {"partitions": [EARLY, LATE]}}, "links.partitions[2]", "after the last send"),
    (
        {"protocol": {"name": "tv"}, "links": {"partitions": [LATE]},
         "topology": {"kind": "pubsub", "subgroups": [3], "topics": 2}},
        "links.partitions[1]",
        "run.duration_s = 5 s",
    ),
)  # fmt: skip
USED: tuple[dict[str, Any], ...] = (
    {"workload": {"recent": 4, "reply_fraction": 0.1}},
    {"workload": {"kind": "poisson", "rate_hz": 3.0}},
    {"workload": {"kind": "poisson", "total_hz": 9.0}},
    {"links": {"buffer": 3, "service_s": 0.01}},
    {"clocks": {"accuracy_s": 0.1, "resync_s": 3.0, "drift_ppm": 50.0}},
    {"links": {"partitions": [EARLY]}},
    {"links": {"partitions": [{**LATE, "start_s": 4.9}]}},
    {"links": {"partitions": [LATE]}, "protocol": {"name": "total"}},
    {"links": {"partitions": [LATE]}, "protocol": {"name": "linear"}},
)


def values(more: dict[str, Any]) -> dict[str, Any]:
    usual = {"topology": {"kind": "mesh", "peers": 3}, "protocol": {"name": "bss"}}
    return copy.deepcopy({**usual, **more})


@pytest.mark.parametrize(("more", "key", "why"), IDLE)
def test_what_does_nothing_is_refused_by_name(
    more: dict[str, Any], key: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.toml"
    path.write_text(format_toml(values(more)))
    with pytest.raises(ConfigError) as raised:
        read_config(path)
    assert str(raised.value).startswith(f"{path}: {key}: ")
    assert why in str(raised.value)
    assert main(["simulate", str(path)]) == 2
    assert f"{key}: " in capsys.readouterr().err


@pytest.mark.parametrize("more", USED)
def test_what_does_something_is_taken(more: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(format_toml(values(more)))
    read_config(path)


@pytest.mark.parametrize("end", ["", "/no-null-messages"])
def test_heartbeats_of_a_variant_that_sends_none_are_refused(
    end: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", f"linear{end}", "heartbeat_s=1", "--members", "2"]) == 2 * bool(end)
    said = capsys.readouterr().err
    assert ("heartbeat_s has no effect beside as_published=no-null-messages" in said) == bool(end)


@pytest.mark.parametrize(("more", "key", "why"), IDLE)
def test_it_is_left_out_and_said_where_that_is_asked_for(
    more: dict[str, Any], key: str, why: str
) -> None:
    before = values(more)
    config, left = config_with_settings(before, {"run.sample_s": 0.1})
    assert list(left) == [key]
    assert why in left[key]
    assert before == values(more)
    assert len(config.links.partitions) == (key == "links.partitions[2]")


def test_options_are_left_out_by_what_the_protocol_does_with_them() -> None:
    linear = values({"protocol": {"name": "linear", "options": {"heartbeat_s": 0.5}}})
    config, left = config_with_settings(linear, {"options.delivery": "null"})
    assert (config.options["heartbeat_s"], left) == (0.5, {})
    config, left = config_with_settings(linear, {"options.delivery": "bound"})
    assert config.options == {"delivery": "bound"}
    assert left == {"protocol.options.heartbeat_s": "no effect without delivery=null or retry_s"}
    config, left = config_with_settings(linear, {"protocol": "bss"})
    assert (config.options, list(left)) == ({}, ["protocol.options.heartbeat_s"])
    config, left = config_with_settings(linear, {"protocol": "linear/no-null-messages"})
    assert "beside as_published=no-null-messages" in left["protocol.options.heartbeat_s"]
    none = values({"protocol": {"name": "linear", "without": ["retry_s", "heartbeat_s"]}})
    config, left = config_with_settings(none, {"protocol": "bss"})
    assert (config.options, len(left)) == ({}, 2)


def test_what_is_set_must_be_used() -> None:
    linear = values({"protocol": {"name": "linear"}})
    for setting in (
        {"options.delivery": "bound", "options.heartbeat_s": 0.5},
        {"workload.recent": 3},
        {"links.partitions": [{**LATE}], "protocol": "bss"},
    ):
        with pytest.raises(ConfigError):
            config_with_settings(linear, setting)


def test_an_option_may_name_a_member_of_the_run() -> None:
    named = values({"protocol": {"name": "total", "options": {"sequencer": 2}}})
    assert config_with_settings(named, {})[0].options == {"sequencer": 2}
    with pytest.raises(ConfigError, match=r"the sequencer 2 is not in the group \(0, 1\)"):
        config_with_settings(named, {"members": 2})


def test_what_is_written_leaves_out_what_does_nothing(tmp_path: Path) -> None:
    links = Links(partitions=(Partition(5.0, 6.0, (0,)),), buffer=3)
    odd = SimulationConfig(Mesh(3), "bss", links=links, clocks=Clocks(1.0, resync_s=3.0))
    write_config(odd, tmp_path / "run.toml")
    again = read_config(tmp_path / "run.toml")
    assert again == SimulationConfig(Mesh(3), "bss", clocks=Clocks(1.0))


MINE = """
from antecede.core.protocols.vector.bss import Bss
from antecede.core.protocols.options.checks import ANY_VALUE, Requires


class Mine(Bss):
    dependent_options = (Requires("k", (("deep", ANY_VALUE),)),)

    def __init__(self, me, members, *, k: int = 3, deep: bool = False, table: dict | None = None):
        super().__init__(me, members)
        self.table = tuple((table or {}).items())
"""


def test_options_of_ones_own_are_left_out_likewise(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    protocol = {"name": "mine.py:Mine", "options": {"k": 4}}
    path = str(tmp_path / "run.toml")
    config, left = config_with_settings(
        values({"protocol": protocol}), {"options.deep": True}, path
    )
    assert (config.options, left) == ({"k": 4, "deep": True}, {})
    config, left = config_with_settings(
        values({"protocol": protocol}), {"options.deep": False}, path
    )
    assert config.options == {"deep": False}
    assert left == {"protocol.options.k": "no effect without deep"}


def test_a_table_is_an_option_in_a_file_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    path = tmp_path / "run.toml"
    path.write_text(
        '[topology]\nkind = "mesh"\npeers = 3\n[run]\nduration_s = 0.2\n'
        '[protocol]\nname = "mine.py:Mine"\noptions = { table = { a = 1, b = [2, 3] } }\n'
    )
    config = read_config(path)
    assert config.options == {"table": {"a": 1, "b": (2, 3)}}
    assert make_members(config, 1).members[0].table == (("a", 1), ("b", (2, 3)))  # type: ignore[attr-defined]
    write_config(config, tmp_path / "again.toml")
    assert read_config(tmp_path / "again.toml") == config
    path.write_text(path.read_text().replace("table = {", "k = {"))
    assert main(["simulate", str(path)]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "mine.py:9: Mine(me, members, k={'a': 1, 'b': (2, 3)}) fails: LocalError: k is" in told
