"""Real threads as a workload: authors are peers, answers wait for what they answer."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from antecede.core.oracle.history import History
from antecede.errors import ConfigError
from antecede.lab.simulate.config.file import read_config
from antecede.lab.simulate.config.model import SimulationConfig, Workload
from antecede.lab.simulate.delays import US
from antecede.lab.simulate.outputs.trace import events
from antecede.lab.simulate.outputs.violations import compute_pasts
from antecede.lab.simulate.reference_engine import run_readable
from antecede.lab.simulate.replay import replay_trace
from antecede.lab.simulate.topology import Mesh
from antecede.tables.trace.arrow import write_events
from antecede.tables.trace.schema import DELIVER, SEND, Event

TREE = (
    ("a", "ann", (), 100),
    ("b", "bob", ("a",), 300),
    ("c", "cid", ("a", "b"), 200),  # dated before what it answers
    ("d", "ann", ("gone",), 400),
    ("e", "bob", ("f",), 500),  # a circle
    ("f", "cid", ("e",), 500),
)


def config(path: Path, peers: int = 3, protocol: str = "sb", **workload: int) -> SimulationConfig:
    several = {"several_parents": True} if protocol == "sb" else {}
    work = Workload("replay", path=str(path), **workload)  # type: ignore[arg-type]
    return SimulationConfig(Mesh(peers), protocol, options=several, workload=work, duration_s=1.0)


def written(path: Path, rows: Sequence[tuple[str, str | None, tuple[str, ...], int]]) -> Path:
    made = [
        Event(kind=SEND, id=name, member=member, causes=causes, arrival=time)
        for name, member, causes, time in rows
    ]
    write_events([*made, Event(kind=DELIVER, id="a", member="bob", arrival=150)], path)
    return path


def test_a_tree_by_hand(tmp_path: Path) -> None:
    found = replay_trace(config(written(tmp_path / "tree.parquet", TREE)))
    assert found.schedule.time_us.tolist() == [0, 499999, 499999, 749999, 999999, 999999]
    assert found.schedule.sender.tolist() == [0, 2, 1, 0, 2, 1]  # by first appearance in time
    assert list(found.parents) == [(), (0,), (0, 1), (), (), (4,)]


def test_authors_share_peers_where_there_are_fewer(tmp_path: Path) -> None:
    found = replay_trace(config(written(tmp_path / "tree.parquet", TREE), peers=2))
    assert set(found.schedule.sender.tolist()) == {0, 1}
    assert len(replay_trace(config(tmp_path / "tree.parquet", messages=2)).parents) == 2


def test_an_answer_waits_for_what_it_answers(tmp_path: Path) -> None:
    rows = [("a", "ann", (), 0), ("b", "bob", ("a",), 1), ("c", "bob", ("b",), 2)]
    path = written(tmp_path / "tree.parquet", [*rows, ("z", "ann", (), 1000)])
    result, run = run_readable(config(path), 1, record=True)
    assert result.figures["sent"] == 4
    arrived = next(one.time_us for one in run.events() if one.member == 1 and one.message == 0)
    assert run.sent_us == [0, arrived, arrived, US - 1]


def test_what_an_answer_answers_already_is_no_immediate_dependency(tmp_path: Path) -> None:
    rows = [("a", "ann", (), 0), ("b", "bob", ("a",), 1), ("c", "cid", ("a", "b"), 2)]
    _, run = run_readable(config(written(tmp_path / "tree.parquet", rows)), 1, record=True)
    assert run.parents == [(), (0,), (0, 1)]
    assert compute_pasts(run).past == [0, 0b001, 0b011]
    assert compute_pasts(run).immediate == [0, 0b001, 0b010]


def test_who_may_answer_one_message_answers_the_newest(tmp_path: Path) -> None:
    """Bhavanasi and Iyer, III.A.2: a message answers one message."""
    rows = [("a", "ann", (), 0), ("b", "bob", (), 1), ("c", "cid", ("a", "b"), 2)]
    given = config(written(tmp_path / "tree.parquet", rows))
    _, run = run_readable(replace(given, options={}), 1, record=True)
    assert run.parents == [(), (), (1,)]


def test_a_trace_without_authors(tmp_path: Path) -> None:
    path = written(tmp_path / "bare.parquet", [("a", None, (), 0)])
    with pytest.raises(
        ConfigError, match=r"workload\.path: .*bare\.parquet: no message has an author"
    ):
        replay_trace(config(path))
    with pytest.raises(ConfigError, match=r"workload\.path: .*absent\.parquet: no such file"):
        replay_trace(config(tmp_path / "absent.parquet"))


def test_a_trace_is_looked_for_beside_the_scenario_first(tmp_path: Path) -> None:
    trace = written(tmp_path / "tree.parquet", [("a", "ann", (), 0)])
    text = '[topology]\nkind = "mesh"\npeers = 2\n[workload]\nkind = "replay"\npath = "{}"\n'
    beside, absent = tmp_path / "beside.toml", tmp_path / "absent.toml"
    beside.write_text(text.format("tree.parquet"))
    absent.write_text(text.format("elsewhere.parquet"))
    assert read_config(beside).workload.path == str(trace)
    assert read_config(absent).workload.path == "elsewhere.parquet"


@pytest.mark.parametrize("protocol", ["sb", "idr"])
def test_threads_of_a_mailing_list(protocol: str, shared_data: Path) -> None:
    path = shared_data / "lore" / "speakup.jsonl.gz"
    with gzip.open(path, "rt") as lines:
        count = sum(1 for _ in lines)
    given = config(path, peers=8, protocol=protocol, messages=400)
    result, run = run_readable(given, 1, record=True)
    assert count > 400 == result.figures["sent"]
    assert result.figures["deliveries"] == 7 * 400
    assert result.figures["promise_violations"] == 0
    assert sum(map(len, run.parents)) > 200
    rows = list(events(run))
    assert History(rows).early(run.relation.value) == []
