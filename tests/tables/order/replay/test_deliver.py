"""Replay against a plain loop over `Group`, for every protocol of the registry."""

from __future__ import annotations

import dataclasses
import datetime as dt
import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antecede.core.clocks.bounds import Bounds
from antecede.core.group.group import Group
from antecede.core.protocols.base import NOTHING, Deliver, Effect, Held, Hold, Protocol
from antecede.core.protocols.basic.unordered import Unordered
from antecede.core.protocols.options.checks import with_trial
from antecede.core.protocols.registry import ENTRIES
from antecede.core.protocols.topics.subscriptions import Subscriptions
from antecede.errors import InputError
from antecede.lab.record.example_logs import Talk, record_log
from antecede.tables.order.replay.member import ReplayedMember
from antecede.tables.order.replay.spec import DeliverSpec
from antecede.tables.order.replay.table import deliver_table, deliver_wide, read_log, take_all
from tests.core.group.test_hierarchical import NAMES as ADDRESSES
from tests.core.group.test_hierarchical import SUPER_PEERS, role
from tests.tables.order.logs import NAMES, filter_status, log_of, replay_in_loop, with_defects

BSS = DeliverSpec(order="bss", members=NAMES, tiebreak="number", sent="sent")
SB = {"several_parents": True, "missing_parent": "release", "patience_s": 0.15}


class Slow(Unordered):
    """Protocol that delivers every message a fixed time after its arrival, by (sender, number)."""

    delay_ns = 50_000_000

    def __init__(self, me: int, members: Sequence[int]) -> None:
        super().__init__(me, members)
        self.due: dict[tuple[int, int], tuple[int, Any]] = {}

    def receive(self, message: Any, *, now: int | None = None) -> Sequence[Effect]:
        effects = super().receive(message, now=now)
        if isinstance(effects[0], Deliver):
            assert now is not None
            self.due[message.sender, message.seq] = now + self.delay_ns, message
            return (Hold(message, ()),)
        return effects

    def tick(self, now: int) -> Sequence[Effect]:
        ready = sorted(key for key, (due, _) in self.due.items() if due <= now)
        return tuple(Deliver(self.due.pop(key)[1]) for key in ready) if ready else NOTHING

    def list_held(self) -> tuple[Held, ...]:
        return tuple(Held(message, ()) for _, message in self.due.values())


def slow(observer: str, group: Any) -> Group:
    members = tuple(sorted(NAMES))
    protocol: Protocol = Slow(members.index(observer), range(len(members)))
    return Group.from_protocol(protocol, dict(enumerate(members)), order="unordered")


def hierarchical(observer: str, group: Any) -> Group:
    return Group.from_protocol(role(observer), ADDRESSES, order="hierarchical")


def flat_specs() -> list[Any]:
    """Return one spec a protocol and kind of group, also of protocols registered later."""
    found = []
    for name, entry in ENTRIES.items():
        if not entry.flat:
            continue
        options = with_trial(entry.load(), range(len(NAMES)), {})
        if "bounds" in options:
            options["bounds"] = Bounds(accuracy_s=0.0001, least_s=0.001, most_s=0.2)
        if "subscriptions" in options:
            topics = options["subscriptions"].topics
            options["subscriptions"] = Subscriptions({NAMES[k]: t for k, t in topics.items()})
        if "heartbeat_s" in options:
            options["heartbeat_s"] = 0.1
        found.append(DeliverSpec(order=name, members=NAMES, options=options, sent="sent"))
        if entry.load().mentions is not Protocol.mentions and not options:
            found.append(DeliverSpec(order=name, sent="sent"))
    found.append(DeliverSpec(order="sb", members=NAMES, options=SB, sent="sent"))
    found.append(DeliverSpec(make=slow, sent="sent"))
    return [
        pytest.param(
            dataclasses.replace(spec, tiebreak="number", to="to", topics="topics", finish_s=2.0),
            id=f"{spec.order}{' open' * (not spec.members)}{' timed' * spec.told_time}"
            if spec.make is None
            else "slow",
        )
        for spec in found
    ]


def shuffle_rows(table: pa.Table, seed: int) -> pa.Table:
    """Return the same rows in another order and in chunks."""
    order = random.Random(seed).sample(range(len(table)), len(table))
    half = len(order) // 2
    return pa.concat_tables([table.take(order[:half]), table.take(order[half:])])


def by_number(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.sort_by("number").to_pylist()
    return rows


def list_deliveries(table: pa.Table) -> dict[str, list[tuple[str, int, bytes]]]:
    """Return the deliveries of each observer in the order of their positions, without gaps."""
    found: dict[str, list[tuple[str, int, bytes]]] = {}
    rows = table.sort_by("position").to_pylist()
    for row in rows:
        if row["position"] is not None:
            got = found.setdefault(row["observer"], [])
            assert row["position"] == len(got)
            got.append((row["sender"], row["seq"], row["payload"]))
    return found


@pytest.mark.few(3)
@pytest.mark.parametrize("spec", flat_specs())
def test_deliveries_are_those_of_a_plain_loop_over_group(spec: DeliverSpec) -> None:
    table = log_of(spec, 7, messages=60, lost=0.03)
    made = deliver_table(shuffle_rows(table, 1), spec)
    rows = by_number(made)
    assert [row["number"] for row in rows] == list(range(len(table)))
    assert {row["reason"] for row in rows if row["status"] == "sent"} == {None}
    assert {row["status"] for row in rows} >= {"delivered", "sent", "duplicate"}
    payloads = {
        row["wire"]: row["payload"]
        for row in rows
        if row["status"] in ("sent", "delivered") or (row["sent"] and row["payload"] is not None)
    }
    loop = pa.Table.from_pylist([{**row, "payload": payloads.get(row["wire"])} for row in rows])
    expected = {name: got for name, got in replay_in_loop(loop, spec).items() if got}
    assert expected
    assert list_deliveries(made) == expected
    for seed in (2, 3):
        assert by_number(deliver_table(shuffle_rows(table, seed), spec)) == rows
    for row in rows:
        if row["status"] == "delivered" and row["waits_for"]:
            assert row["waited_ms"] > 0


@pytest.mark.few(8)
@pytest.mark.parametrize("spec", flat_specs())
def test_bad_rows_are_refused_and_change_nothing(spec: DeliverSpec) -> None:
    table = log_of(spec, 3, messages=60)
    spoilt = with_defects(table)
    made = by_number(deliver_table(shuffle_rows(spoilt, 1), spec))
    good = by_number(deliver_table(table, spec))
    assert made[: len(good)] == good
    bad = made[len(good) :]
    assert len(bad) == len(spoilt) - len(table) >= 14
    assert {row["status"] for row in bad} == {"rejected"}
    reasons = " ".join(row["reason"] for row in bad)
    for words in (
        "no bytes",
        "not a message of",
        "another protocol",
        "no observer",
        "no valid time",
    ):
        assert words in reasons


@given(seed=st.integers(0, 2**20), data=st.data())
def test_forged_bytes_never_raise(seed: int, data: st.DataObject) -> None:
    spec = data.draw(st.sampled_from([BSS, DeliverSpec(order="sb", sent="sent")]))
    rows = log_of(spec, seed, messages=6).to_pylist()
    row = data.draw(st.sampled_from(rows))
    wire = bytearray(row["wire"])
    for _ in range(data.draw(st.integers(1, 3))):
        wire[data.draw(st.integers(0, len(wire) - 1))] = data.draw(st.integers(0, 255))
    forged = {**row, "wire": bytes(wire), "number": 900, "sent": data.draw(st.booleans())}
    table = pa.Table.from_pylist([*rows, forged])
    made = deliver_table(table, spec)
    assert len(made) == len(rows) + 1
    assert made["status"].null_count == 0


@pytest.mark.slow
@pytest.mark.parametrize("spec", [spec for spec in flat_specs() if spec.values[0].told_time])
@settings(max_examples=8)
@given(seed=st.integers(0, 2**20))
def test_ticks_found_by_bisection_are_those_of_every_multiple(spec: DeliverSpec, seed: int) -> None:
    table = log_of(spec, seed, messages=8, pause_us=300_000, lost=0.2, tick_us=4_000)
    coarse = dataclasses.replace(spec, tick_s=0.004)
    made = deliver_table(table, coarse)
    rows = by_number(made)
    sent = {row["reason"] for row in rows if row["status"] == "sent"}
    assert sent == {None}, "heartbeats that went out in between are in the bytes"
    payloads = {row["wire"]: row["payload"] for row in rows if row["payload"] is not None}
    loop = pa.Table.from_pylist([{**row, "payload": payloads.get(row["wire"])} for row in rows])
    expected = {name: got for name, got in replay_in_loop(loop, coarse).items() if got}
    assert list_deliveries(made) == expected


@pytest.mark.parametrize("spec", [spec for spec in flat_specs() if spec.values[0].told_time])
def test_ticks_that_are_taken_back_are_not_counted(spec: DeliverSpec) -> None:
    table = log_of(spec, 3, messages=12, pause_us=300_000, tick_us=4_000)
    handed = 0
    for key, rows in read_log(table, spec).rows.items():
        observer = ReplayedMember(spec, key.observer)
        left = [*take_all(observer, rows), *observer.finish(spec.finish_s)]
        placed = sum(outcome.position is not None for outcome in left)
        assert observer.group.stats().delivered == placed
        handed += placed
    assert handed


@pytest.mark.parametrize("order", ["total", "total-agreed"])
def test_in_total_order_a_position_is_the_same_everywhere_and_own_messages_have_one(
    order: str,
) -> None:
    spec = DeliverSpec(order=order, members=NAMES, tiebreak="number", sent="sent")
    rows = deliver_table(log_of(spec, 5, messages=60), spec).to_pylist()
    placed = [row for row in rows if row["position"] is not None]
    at = {(row["observer"], row["position"]): (row["sender"], row["seq"]) for row in placed}
    assert len(placed) == len(at) == 60 * len(NAMES)
    assert all(at[name, k] == at[NAMES[0], k] for name in NAMES for k in range(60))
    own = [row for row in placed if row["sent"]]
    assert len(own) == 60
    assert {row["status"] for row in own} == {"sent"}
    assert all(row["sender"] == row["observer"] for row in own)
    assert any(row["waited_ms"] > 0 for row in own)


@pytest.mark.parametrize("order", ["total", "total-agreed"])
def test_an_own_message_whose_turn_does_not_come_is_held_and_says_why(order: str) -> None:
    spec = DeliverSpec(order=order, members=NAMES, tiebreak="number", sent="sent")
    table = log_of(spec, messages=20)
    own = [row["sent"] and row["observer"] == "bob" for row in table.to_pylist()]
    bob = table.filter(pa.array(own))
    made = by_number(deliver_table(bob, spec))
    waits = [row for row in made if row["payload"] is not None]
    assert waits
    assert {row["status"] for row in waits} == {"held"}
    assert {row["position"] for row in made} == {None}
    assert all("of ann" in row["reason"] for row in waits)
    patient = by_number(deliver_table(bob, dataclasses.replace(spec, patience_s=0.5)))
    assert {row["status"] for row in patient if row["payload"] is not None} == {"expired"}


def test_a_time_bound_protocol_delivers_at_the_tick_after_the_bound() -> None:
    spec = DeliverSpec(make=slow, sent="sent", tiebreak="number")
    rows = deliver_table(log_of(spec, messages=30), spec).to_pylist()
    waits = [row["waited_ms"] for row in rows if row["status"] == "delivered"]
    assert len(waits) > 60
    assert all(50 <= wait < 60 for wait in waits)
    assert {row["status"] for row in rows} == {"delivered", "sent", "duplicate"}
    cut = deliver_table(log_of(spec, messages=30), dataclasses.replace(spec, finish_s=0.0))
    assert filter_status(cut, {"held"}).num_rows > 0, (
        "without time after the last row, some stay held"
    )


@pytest.mark.slow
@given(seed=st.integers(0, 2**20), every=st.integers(1, 5))
@pytest.mark.parametrize(
    "spec",
    [
        BSS,
        DeliverSpec(make=slow, sent="sent", patience_s=0.03),
        DeliverSpec(order="total-agreed", members=NAMES, sent="sent", patience_s=0.3),
    ],
)
def test_a_restart_from_a_snapshot_changes_nothing(
    spec: DeliverSpec, seed: int, every: int
) -> None:
    table = log_of(spec, seed, messages=8, lost=0.1)
    for key, rows in read_log(table, spec).rows.items():
        one, other = (ReplayedMember(spec, key.observer) for _ in range(2))
        for k, row in enumerate(rows):
            assert one.process_row(row) == other.process_row(row)
            if k % every == 0:
                state = other.snapshot()
                other = ReplayedMember(spec, key.observer)
                other.restore(state)
        assert one.finish(9.0) == other.finish(9.0)


def test_patience_sets_aside_what_never_becomes_deliverable() -> None:
    spec = dataclasses.replace(BSS, patience_s=0.5)
    table = log_of(BSS, 2, messages=120, lost=0.02)
    endless, made = (by_number(deliver_table(table, s)) for s in (BSS, spec))
    aside = [row for row in made if row["status"] == "expired"]
    assert aside
    assert {row["waited_ms"] for row in aside} == {500.0}
    assert all(row["waits_for"] and row["position"] is None for row in aside)
    for patient, row in zip(endless, made, strict=True):
        if row["status"] == "delivered":
            assert (patient["status"], patient["payload"]) == ("delivered", row["payload"])
        elif patient["status"] == "held":
            assert row["status"] == "expired"
            assert patient["waits_for"]
            assert patient["sender"]
            assert patient["payload"]


def test_a_row_that_expired_takes_no_position_when_its_cause_comes_after_all() -> None:
    ann, bob = Group("ann", ("ann", "bob"), order="fifo"), ("ann", "bob")
    first, second, third = (ann.send(payload) for payload in (b"1", b"2", b"3"))
    rows = [
        {"observer": "bob", "wire": wire, "time": at}
        for wire, at in ((second, 0.0), (first, 5.0), (third, 5.1), (second, 5.2))
    ]
    spec = DeliverSpec(order="fifo", members=bob, patience_s=1.0)
    made = deliver_table(pa.Table.from_pylist(rows), spec).to_pylist()
    assert [(row["status"], row["position"]) for row in made] == [
        ("expired", None),
        ("delivered", 0),
        ("delivered", 1),
        ("duplicate", None),
    ]
    assert made[0]["waits_for"] == ["ann:1"]


def test_roles_of_the_hierarchical_protocol_deliver_through_make() -> None:
    spec = DeliverSpec(make=hierarchical, sent="sent", tiebreak="number")
    groups = {name: hierarchical(name, None) for name in ADDRESSES.values()}
    table = record_log(groups, Talk(messages=40), seed=5)
    rows = by_number(deliver_table(shuffle_rows(table, 1), spec))
    peers = len(ADDRESSES) - len(SUPER_PEERS)
    got = [row for row in rows if row["status"] == "delivered"]
    assert len(got) == 40 * (peers - 1)
    assert {row["sender"] for row in got}.isdisjoint(SUPER_PEERS)
    assert {row["reason"] for row in rows if row["status"] == "sent"} == {None}
    of_super_peers = {row["status"] for row in rows if row["observer"] in SUPER_PEERS}
    assert of_super_peers <= {"control", "duplicate", "discarded"}
    assert {row["status"] for row in rows} <= {
        "delivered",
        "sent",
        "duplicate",
        "control",
        "discarded",
    }


def test_a_newcomer_begins_from_its_invitation() -> None:
    ann, bob = (Group(name, ("ann", "bob"), order="idr") for name in ("ann", "bob"))
    before = ann.send(b"before")
    bob.receive(before)
    invitation = bob.invite("eve")
    ann.join("eve")
    after = ann.send(b"after")

    def make(observer: str, group: Any) -> Group:
        return Group.accept(observer, invitation)

    rows = [{"observer": "eve", "wire": w, "time": t} for t, w in enumerate((before, after))]
    made = deliver_table(pa.Table.from_pylist(rows), DeliverSpec(make=make)).to_pylist()
    assert [row["status"] for row in made] == ["duplicate", "delivered"]


def test_a_log_without_the_own_messages_says_what_is_wrong() -> None:
    table = log_of(BSS, messages=40)
    received = table.filter(pa.compute.invert(table["sent"]))
    made = deliver_table(received, BSS).to_pylist()
    refused = [row["reason"] for row in made if row["status"] == "rejected"]
    assert refused
    assert all("depends on message" in reason for reason in refused)
    missing = [row for row in by_number(table) if not row["sent"] or row["number"] % 2]
    made = deliver_table(pa.Table.from_pylist(missing), BSS).to_pylist()
    assert "the protocol sends other bytes here: the log may be incomplete" in {
        row["reason"] for row in made if row["status"] == "sent"
    }


def test_several_copies_of_a_sending_are_sent_once() -> None:
    table = log_of(BSS, messages=30)
    sent = table.filter(table["sent"])
    made = deliver_table(pa.concat_tables([table, sent]), BSS)
    assert filter_status(made, {"sent"}).num_rows == sent.num_rows
    assert list_deliveries(made) == list_deliveries(deliver_table(table, BSS))


@pytest.mark.parametrize(
    "kind", [pa.timestamp("ns"), pa.timestamp("s", "UTC"), pa.int32(), pa.float64(), pa.float32()]
)
def test_any_kind_of_time_serves(kind: Any) -> None:
    ann = Group("ann", ("ann", "bob"), order="fifo")
    first, second = ann.send(b"1"), ann.send(b"2")
    seconds = pa.array([4, 1, None], pa.int64())
    is_stamp = pa.types.is_timestamp(kind)
    times = (seconds.cast(pa.timestamp("s")) if is_stamp else seconds).cast(kind)
    table = pa.table({"observer": ["bob"] * 3, "wire": [first, second, first], "time": times})
    made = deliver_table(table, DeliverSpec(order="fifo", members=("ann", "bob"))).to_pylist()
    assert [row["waited_ms"] for row in made] == [0.0, 3000.0, None]
    assert [row["status"] for row in made] == ["delivered", "delivered", "rejected"]
    assert made[1]["waits_for"] == ["ann:1"]


def test_times_that_cannot_be_are_refused() -> None:
    wire = Group("ann", ("ann", "bob"), order="fifo").send(b"1")
    spec = DeliverSpec(order="fifo", members=("ann", "bob"))
    for times in ([float("nan"), float("inf"), 1.0], [2**62, -(2**62), 1]):
        table = pa.table({"observer": ["bob"] * 3, "wire": [wire] * 3, "time": times})
        made = deliver_table(table, spec)
        assert made["status"].to_pylist() == ["rejected", "rejected", "delivered"]


def test_ties_go_by_the_tiebreak_then_by_the_bytes() -> None:
    ann = Group("ann", ("ann", "bob"), order="fifo")
    wires = [ann.send(b"1"), ann.send(b"2")]
    for numbers, statuses in (([1, 2], (0.0, 0.0)), ([2, 1], (0.0, 0.0)), ([None, 1], (0.0, 0.0))):
        table = pa.table({"observer": ["bob"] * 2, "wire": wires, "time": [1, 1], "n": numbers})
        spec = DeliverSpec(order="fifo", members=("ann", "bob"), tiebreak="n")
        made = deliver_table(table, spec).to_pylist()
        assert tuple(row["waited_ms"] for row in made) == statuses
        held_first = made[1]["waits_for"] == ["ann:1"]
        assert held_first == (numbers != [1, 2])


def test_wide_tables_keep_columns_of_any_type() -> None:
    table = log_of(BSS, messages=20)
    odd = table.append_column("odd", pa.array([{"a": k} for k in range(len(table))]))
    late = odd.set_column(2, "time", odd["time"].cast(pa.timestamp("ns", "Europe/Berlin")))
    made = deliver_wide(late, BSS)
    assert made.schema.names[: len(late.schema)] == late.schema.names
    assert made.select(late.schema.names).equals(late)
    plain = deliver_table(table, BSS)
    for name in BSS.added_columns:
        assert made[name].to_pylist() == plain[name].to_pylist()


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"order": "casual"}, "cannot create a group of order 'casual'"),
        ({"order": "hierarchical"}, "several roles"),
        ({"options": {"speed": 3}}, "speed"),
        ({"members": ()}, "members= is empty"),
        ({"make": slow, "members": ("a",)}, "members= and options= have no effect"),
        ({"tick_s": 0.0}, "tick_s=0.0: expected"),
        ({"patience_s": -1.0}, "patience_s"),
        ({"finish_s": float("nan")}, "finish_s"),
        ({"time_unit": "h"}, "unknown time_unit 'h'"),
        ({"shards": 0}, "shards"),
    ],
)
def test_choices_that_make_no_sense_are_refused_at_once(choice: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        DeliverSpec(**choice)


def test_columns_that_cannot_serve_are_told_by_name() -> None:
    table = pa.table({"observer": ["a"], "wire": [b""], "time": [1], "status": [1]})
    with pytest.raises(InputError, match="column status already; rename it, or give prefix"):
        deliver_table(table, DeliverSpec())
    assert "x_status" in deliver_table(table, DeliverSpec(prefix="x_")).column_names
    with pytest.raises(InputError, match="column time must be binary; it is int64"):
        deliver_table(table, DeliverSpec(wire="time", prefix="x_"))
    with pytest.raises(InputError, match="no column at; there are observer"):
        deliver_table(table, DeliverSpec(time="at"))


def test_a_stranger_in_a_closed_group_is_refused_by_name() -> None:
    table = pa.table({"observer": ["eve"], "wire": [b"x"], "time": [dt.datetime(2027, 1, 1)]})
    (row,) = deliver_table(table, DeliverSpec(order="bss", members=NAMES)).to_pylist()
    assert row["status"] == "rejected"
    assert "lacks this member, 'eve'" in row["reason"]
