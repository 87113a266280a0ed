"""Channel models in audits: compared with the oracle, printed, and merged over runs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from hypothesis import given

from antecede.core.oracle import channels
from antecede.core.oracle.channels import Model
from antecede.tables.audit import audit_events
from antecede.tables.audit.channels import channel_models, describe_channels, merge_channels
from antecede.tables.trace.arrow import write_events
from antecede.tables.trace.rows import conform
from antecede.tables.trace.schema import DELIVER, RECEIVE, SEND, Event
from tests.core.oracle.executions import executions
from tests.tables.conftest import Command
from tests.tables.events import moves, table_of


def as_oracle(model: Model, copies: int, undelivered: int) -> dict[str, object]:
    witness = model.witness
    return {
        "model": model.name,
        "copies": copies,
        "undelivered": undelivered,
        "overtaken_in_channel": len(model.fifo),
        "overtaken_causally": len(model.causal),
        "witness": witness and (witness.message, witness.member, witness.by, witness.never),
    }


def flat(found: dict[str, object]) -> dict[str, object]:
    witness = found["witness"]
    if isinstance(witness, dict):
        keys = ("message", "member", "by", "never")
        return found | {"witness": tuple(witness[key] for key in keys)}
    return found


@given(executions())
def test_the_counts_are_those_of_the_oracle(rows: list[Event]) -> None:
    found = channel_models(table_of(rows))
    sender = {row.id: row.member for row in rows if row.kind == SEND}
    came = {
        kind: {(r.id, r.member) for r in rows if r.kind == kind and sender[r.id] != r.member}
        for kind in (RECEIVE, DELIVER)
    }
    for name, kind, judge in (
        ("arrivals", RECEIVE, channels.arrivals),
        ("deliveries", DELIVER, channels.deliveries),
    ):
        assert (name in found) == bool(came[kind])
        if name in found:
            delivering = {member for _, member in came[kind]}
            only = came[RECEIVE] - came[kind]
            missing = sum(member in delivering for _, member in only)
            assert flat(found[name]) == as_oracle(judge(rows), len(came[kind]), missing)


@given(executions())
def test_members_written_one_after_the_other_give_the_same_models(rows: list[Event]) -> None:
    by_member = sorted(rows, key=lambda row: str(row.member))
    kept = ("model", "copies", "overtaken_in_channel", "overtaken_causally")
    found, again = channel_models(table_of(rows)), channel_models(table_of(by_member))
    assert found.keys() == again.keys()
    for name in found:
        assert all(found[name][key] == again[name][key] for key in kept)


TRIANGLE = moves("P!a Q?a Q.a Q!b<a R?b R?a R.a R.b")


def test_fifo_channels_and_what_a_causal_protocol_made_of_them() -> None:
    report = audit_events(table_of(TRIANGLE))
    assert describe_channels(report.details["channels"]) == [
        "arrivals: FIFO, not causal (first a after b at R), 1 (33.3%) of 3 copies too late",
        "deliveries: causal, all 3 copies",
    ]
    assert report.details["channels"]["arrivals"]["witness"] == {
        "message": "a",
        "member": "R",
        "by": "b",
        "run": None,
        "file_order": 5,
        "never": False,
    }


def test_the_command_shows_the_models(tmp_path: Path, command: Command) -> None:
    write_events(TRIANGLE, tmp_path / "run.parquet")
    assert "\n  arrivals: FIFO, not causal" in command("audit", tmp_path / "run.parquet").out


def test_a_trace_without_receipts_says_nothing_of_channels() -> None:
    report = audit_events(table_of([Event(id="a"), Event(kind=SEND, id="b", member="P")]))
    assert "channels" not in report.details
    assert "Channels" not in report.summary()


def test_what_arrived_and_was_not_delivered_was_overtaken_for_ever() -> None:
    held = moves("P!a Q?a Q.a Q!b<a R?b R?a R.b")
    found = channel_models(table_of(held))["deliveries"]
    assert (found["model"], found["copies"], found["undelivered"]) == ("FIFO", 2, 1)
    assert describe_channels({"deliveries": found}) == [
        "deliveries: FIFO, not causal (first b without a at R), 1 (33.3%) of 3 copies too late"
    ]


def test_receipts_before_their_sends_in_a_circle() -> None:
    """Neither send can come first, so happened-before is undefined."""
    found = channel_models(table_of(moves("P?b P!a Q?a Q!b")))["arrivals"]
    assert (found["model"], found["overtaken_causally"]) == ("circular", None)
    assert "cycle" in describe_channels({"arrivals": found})[0]


@given(executions(), executions())
def test_runs_counted_apart_add_up(one: list[Event], other: list[Event]) -> None:
    rows = [row._replace(run="1") for row in one] + [row._replace(run="2") for row in other]
    both = table_of(rows)
    runs = both["run"].to_pylist()
    apart = [
        both.filter(pa.array([run == name for run in runs], pa.bool_())) for name in ("1", "2")
    ]
    assert merge_channels(channel_models(conform(part)) for part in apart) == channel_models(both)


def test_what_was_not_delivered_overtakes_nothing() -> None:
    """Q delivers x; of P's next two messages the later arrives first, and neither is delivered."""
    rows = moves("P!x P!a P!b Q?x Q?b Q?a Q.x")
    found = channel_models(table_of(rows))
    assert (found["arrivals"]["model"], found["deliveries"]["model"]) == ("non-FIFO", "causal")
    assert found["deliveries"]["undelivered"] == 2
    assert channels.deliveries(rows).name == "causal"
