"""Snapshots of simulated runs: right over the channels that they need, and seen to break."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antecede.cli import main
from antecede.core.oracle.cuts import UNSENT_RECEIVED, Channel
from antecede.errors import ConfigError
from antecede.lab.simulate.config.file import (
    config_from,
    config_mapping,
    read_config,
    write_config,
)
from antecede.lab.simulate.config.model import Links, SimulationConfig, SnapshotPlan, Workload
from antecede.lab.simulate.delays import Delay
from antecede.lab.simulate.outputs.global_states import RecordedState
from antecede.lab.simulate.outputs.recording import Recording
from antecede.lab.simulate.outputs.result import Result
from antecede.lab.simulate.outputs.trace import events, write_trace
from antecede.lab.simulate.reference_engine import run_readable
from antecede.lab.simulate.replay import replay_trace
from antecede.lab.simulate.run import simulate
from antecede.lab.simulate.topology import Mesh
from antecede.tables.causality import Causality, States
from antecede.tables.trace.arrow import read, to_batch
from antecede.tables.trace.schema import RECEIVE, SEND
from tests.lab.simulate.small_configs import config_of

CHANDY_LAMPORT, LAI_YANG = "chandy-lamport", "lai-yang"


def with_snapshots(protocol: str, algorithm: str, links: Links, **changes: Any) -> SimulationConfig:
    plan = SnapshotPlan(algorithm, (0.4, 0.9), (0, 2))
    return config_of(protocol, links=links, snapshots=plan, **changes)


def reordering(fifo: bool, **more: float) -> Links:
    return Links(Delay(0.02, 0.2, "uniform"), fifo=fifo, **more)  # type: ignore[arg-type]


def recorded(config: SimulationConfig, seed: int) -> tuple[Result, Recording]:
    return run_readable(config, seed, record=True)


def truth(run: Recording, state: RecordedState) -> dict[Channel, set[str]]:
    """Return what was under way in a cut, by the trace alone: sent inside, arriving outside."""
    inside: dict[str, int] = dict.fromkeys(state.cut, 0)
    sent: dict[str, str] = {}
    here: set[tuple[str, str]] = set()
    ends: list[tuple[str, str]] = []
    for row in events(run):
        assert row.member is not None
        inside[row.member] += 1
        is_in = inside[row.member] <= state.cut[row.member]
        if row.kind == SEND and is_in:
            sent[row.id] = row.member
        elif row.kind == RECEIVE:
            ends.append((row.id, row.member))
            if is_in:
                here.add((row.id, row.member))
    found: dict[Channel, set[str]] = {}
    for message, target in ends:
        if message in sent and (message, target) not in here:
            found.setdefault(Channel(sent[message], target), set()).add(message)
    return found


def check_whole(config: SimulationConfig, seed: int) -> None:
    result, run = recorded(config, seed)
    assert len(result.snapshots) == 2
    for one in result.snapshots:
        assert one.is_complete
        assert not one.waiting
        assert not one.unrecorded
        assert one.contradictions == ()
        assert {ends: set(kept) for ends, kept in one.channels.items()} == truth(run, one)


@settings(max_examples=12, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from(("unordered", "idr", "ses", "tv", "total")),
    st.sampled_from((0.0, 0.3)),
)
def test_chandy_and_lamport_over_channels_in_order(
    seed: int, protocol: str, duplicate: float
) -> None:
    check_whole(
        with_snapshots(protocol, CHANDY_LAMPORT, reordering(True, duplicate=duplicate)), seed
    )


@settings(max_examples=16, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from(("unordered", "idr", "ses", "tv", "total")),
    st.booleans(),
    st.sampled_from((0.0, 0.3)),
)
def test_lai_and_yang_over_any_channels(
    seed: int, protocol: str, fifo: bool, duplicate: float
) -> None:
    check_whole(with_snapshots(protocol, LAI_YANG, reordering(fifo, duplicate=duplicate)), seed)


def test_chandy_and_lamport_break_where_channels_reorder() -> None:
    broken = 0
    for seed in range(6):
        result, run = recorded(with_snapshots("idr", CHANDY_LAMPORT, reordering(False)), seed)
        rows = list(events(run))
        for one in result.snapshots:
            broken += bool(one.contradictions)
            for witness in one.contradictions or ():
                if witness.what == UNSENT_RECEIVED:
                    assert (
                        _position(rows, SEND, witness.id, witness.source) > one.cut[witness.source]
                    )
                    at = _position(rows, RECEIVE, witness.id, witness.target)
                    assert at <= one.cut[witness.target]
        figures = result.figures
        assert figures["snapshots.inconsistent"] == sum(
            bool(one.contradictions) for one in result.snapshots
        )
    assert broken >= 6


def _position(rows: list[Any], kind: str, message: str, member: str) -> int:
    own = [row for row in rows if row.member == member]
    return 1 + next(k for k, row in enumerate(own) if (row.kind, row.id) == (kind, message))


def test_a_lost_message_leaves_lai_and_yang_waiting_for_its_sender() -> None:
    config = with_snapshots("unordered", LAI_YANG, reordering(False, loss=0.1))
    result, run = recorded(config, 3)
    assert result.figures["lost"] > 0
    one = result.snapshots[-1]
    assert not one.is_complete
    assert one.cut.keys() == {"peer0", "peer1", "peer2", "peer3"}
    there = {(row.id, row.member) for row in events(run) if row.kind == RECEIVE}
    seen, never = dict.fromkeys(one.cut, 0), set()
    for row in events(run):
        assert row.member is not None
        seen[row.member] += 1
        if row.kind == SEND and seen[row.member] <= one.cut[row.member]:
            never |= {(row.member, to) for to in one.cut if (row.id, to) not in there}
    never = {(source, target) for source, target in never if source != target}
    assert never
    assert all(source in one.waiting[target] for source, target in never)


def test_a_lost_marker_is_told_and_nothing_is_judged_that_was_not_recorded() -> None:
    seen = False
    for seed in range(8):
        config = with_snapshots("unordered", CHANDY_LAMPORT, reordering(True, loss=0.4))
        for one in recorded(config, seed)[0].snapshots:
            if one.unrecorded:
                assert one.contradictions is None
                assert not one.is_complete
            seen |= not one.is_complete
            assert one.is_complete or one.waiting or one.unrecorded
    assert seen


def test_a_run_is_the_same_beside_its_snapshots_where_channels_reorder() -> None:
    config = with_snapshots("idr", LAI_YANG, reordering(False, loss=0.05, duplicate=0.1))
    beside, alone = (
        simulate(config, 5),
        simulate(replace(config, snapshots=None), 5, "reference"),
    )
    rest = {k: v for k, v in beside.figures.items() if not k.startswith("snapshots.")}
    lost = alone.figures["lost"]
    assert rest.pop("lost") >= lost  # lost markers are among them
    assert rest == {k: v for k, v in alone.figures.items() if k != "lost"}


def test_one_member_alone_has_its_snapshot_at_once() -> None:
    config = SimulationConfig(Mesh(1), "idr", snapshots=SnapshotPlan(CHANDY_LAMPORT, (1.0,)))
    (one,) = simulate(config, 0).snapshots
    assert (one.started_s, one.completed_s, one.markers, one.contradictions) == (1.0, 1.0, 0, ())


def test_the_trace_bears_the_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = with_snapshots("idr", CHANDY_LAMPORT, reordering(False))
    result, run = recorded(config, 1)
    one = next(state for state in result.snapshots if state.contradictions)
    table = pa.Table.from_batches([to_batch(list(events(run)))])
    states = States(Causality(table))
    assert states.find_marked_cut(f"snapshot {one.number}") == one.cut
    verdict = states.cut(one.cut)
    early = {each.id for each in one.contradictions or () if each.what == UNSENT_RECEIVED}
    assert {crossing.cause.id for crossing in verdict.proof} == early
    path = tmp_path / "run.parquet"
    write_trace(run, path)
    assert main(["cut", str(path), "--marker", f"snapshot {one.number}"]) == (1 if early else 0)
    assert main(["cut", str(path), "--marker", "snapshot 9"]) == 2
    assert "no event contains the text 'snapshot 9'" in capsys.readouterr().err
    assert main(["cut", str(path), "peer0=1", "--marker", "snapshot 1"]) == 2
    # What is replayed are the messages.
    again = SimulationConfig(
        Mesh(4), "idr", workload=Workload("replay", path=str(path)), duration_s=9
    )
    assert len(replay_trace(again).parents) == result.figures["sent"]


def test_marks_of_some_leave_the_others_outside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "kind,id,member,text\nsend,a,P,\nevent,p,P,saved\nsend,b,P,\ndeliver,b,Q,\nevent,x,P,saved\n"
    )
    assert main(["cut", str(path), "--marker", "saved"]) == 0
    said = capsys.readouterr().out
    assert "P=2" in said
    assert "members without the marker, with no event inside: Q" in said


# -- the file and the command ------------------------------------------------------------------

FILE = """
[topology]
kind = "mesh"
peers = 4
[links]
delay = "50-250 ms"
[run]
duration_s = 2
[snapshots]
algorithm = "chandy-lamport"
at_s = 1
by = [0, 3]
"""


def test_the_table_is_read_and_written_back(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(FILE)
    config = read_config(path)
    assert config.snapshots == SnapshotPlan(CHANDY_LAMPORT, (1.0,), (0, 3))
    assert config_from(json.loads(json.dumps(config_mapping(config)))) == config
    write_config(config, tmp_path / "again.toml")
    assert read_config(tmp_path / "again.toml") == config


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            '"chandy-lamport"',
            '"lamport"',
            "snapshots.algorithm: unknown algorithm 'lamport'; choose from chandy-lamport",
        ),
        (
            "at_s = 1",
            "at_s = 2",
            "snapshots.at_s: snapshot at 2 s; expected less than duration_s = 2 s",
        ),
        ("at_s = 1", "at_s = -1", "snapshots.at_s: -1 s; expected 0 or more"),
        ("at_s = 1", "at_s = [1, 1]", "snapshots.at_s: 1 s after 1 s; expected ascending times"),
        ("at_s = 1", "at_s = []", "snapshots.at_s: empty; expected at least one time"),
        ("at_s = 1", 'at_s = "1 s"', "snapshots.at_s: '1 s'; expected a number"),
        ("at_s = 1\n", "", "snapshots.at_s: missing"),
        ("[0, 3]", "4", "snapshots.by: unknown address 4; choose from 0 to 3"),
        ("[0, 3]", "[0, 0]", "snapshots.by: expected at least one address, without duplicates"),
        ("by = ", "who = ", "snapshots.who: unknown key"),
        (
            'kind = "mesh"\npeers = 4',
            'kind = "hierarchy"\ngroups = [2]\n[protocol]\nname = "hierarchical"',
            "snapshots: a hierarchy has no channels between all members",
        ),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, old: str, new: str, words: str) -> None:
    path = tmp_path / "run.toml"
    path.write_text(FILE.replace(old, new))
    with pytest.raises(ConfigError) as error:
        read_config(path)
    assert words in str(error.value)


def test_no_compiled_engine_runs_them() -> None:
    config = with_snapshots("idr", LAI_YANG, reordering(False))
    with pytest.raises(ConfigError, match="only the reference engine records snapshots"):
        simulate(config, 0, "compiled")


def test_the_command_tells_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.toml"
    path.write_text(FILE)
    trace = tmp_path / "run.parquet"
    assert main(["simulate", str(path), "--seed", "1", "--trace", str(trace)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "chandy-lamport: 1 of 1 snapshot complete, 1 of 1 checked inconsis" in said
    assert "1: by peer0, peer3 at 1 s, complete after" in said
    assert "received inside, sent" in said
    assert f"Recorded cut: antecede cut {trace} --marker 'snapshot 1'" in said
    assert main(["simulate", str(path), "--seed", "1", "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["runs"][0]["snapshots"]
    states = States(Causality(read([str(trace)])))
    assert states.find_marked_cut("snapshot 1") == one["cut"]
    assert one["consistent"] is False
    assert one["contradictions"]
    assert one["complete"] is True
    assert any(each["what"] == UNSENT_RECEIVED for each in one["contradictions"])
    assert main(["simulate", str(path), "--seeds", "2"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "2 of 2 snapshots complete" in said
    assert "messages in channels" in said
