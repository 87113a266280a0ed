"""Recorder with real processes and sockets; the oracle checks the trace."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from antecede.cli import main
from antecede.core.oracle.history import History
from antecede.errors import LocalError
from antecede.lab.record import recorder, workload
from antecede.lab.record.recorder import RecordedTrace, make_member_names, record
from antecede.lab.record.regions import REGIONS, compute_base_delay_ms, draw_delay_s
from antecede.tables.trace.schema import DELIVER, RECEIVE, SEND, Event


@pytest.fixture(scope="module")
def recording() -> RecordedTrace:
    return record(4, 1.5, seed=3)


@pytest.mark.slow
def test_every_copy_arrives_and_is_delivered_once(recording: RecordedTrace) -> None:
    assert recording.sent > 0
    assert recording.received == recording.delivered == recording.expected
    delivered = [(e.member, e.id) for e in recording.events if e.kind == DELIVER]
    assert len(delivered) == len(set(delivered))


@pytest.mark.slow
def test_no_member_delivered_an_effect_before_its_cause(recording: RecordedTrace) -> None:
    history = History(recording.events)
    assert history.early("delivery") == []
    assert history.faults("delivery") == []


@pytest.mark.slow
def test_without_order_effects_come_before_causes() -> None:
    chaos = record(4, 2.5, order="none", seed=3)
    assert History(chaos.events).early("delivery"), (
        "the emulated delays reorder, or the recorder is too kind"
    )


def test_receipts_name_the_causes_that_the_sender_had_delivered(recording: RecordedTrace) -> None:
    known: dict[str, set[str]] = {}
    for event in recording.events:
        at = known.setdefault(event.member or "", set())
        if event.kind == SEND:
            assert set(event.causes) <= at
        if event.kind in (SEND, DELIVER):
            at.add(event.id)


def test_causes_of_a_receipt_are_those_of_the_sending(recording: RecordedTrace) -> None:
    sent = {e.id: e.causes for e in recording.events if e.kind == SEND}
    receipts = [e for e in recording.events if e.kind == RECEIVE]
    assert receipts
    assert all(sorted(e.causes) == sorted(sent[e.id]) for e in receipts)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["reply", "linear", "matrix", "htbc", "total"])
def test_every_order_is_driven_so_that_all_is_delivered(order: str) -> None:
    of = record(8, 1.5, order=order, seed=3)
    assert of.sent > 5
    assert of.received == of.delivered == of.expected
    assert of.complete
    assert of.undelivered == ()


@pytest.mark.slow
def test_an_answer_names_what_it_answers() -> None:
    of = record(8, 2.5, order="reply", seed=3)
    words = {e.id: e.text for e in of.events if e.kind == SEND}
    causes = {e.id: e.causes for e in of.events if e.kind == SEND}
    answers = [name for name, text in words.items() if text in workload._REPLIES]
    assert answers
    assert all(len(causes[name]) == 1 for name in answers)
    assert not any(causes[name] for name in words if name not in answers)


def test_what_arrived_and_was_not_delivered_is_told(tmp_path: Path, monkeypatch: Any) -> None:
    events = [
        Event(kind=SEND, id="a-1", member="a", arrival=1),
        Event(kind=RECEIVE, id="a-1", member="b", arrival=2),
        Event(kind=RECEIVE, id="a-1", member="c", arrival=2),
        Event(kind=DELIVER, id="a-1", member="c", arrival=3),
        Event(kind=DELIVER, id="a-1", member="a", arrival=3),
    ]
    of = recorder._make_recording(events, 3)
    assert (of.expected, of.received, of.delivered) == (2, 2, 1)
    assert of.undelivered == (("a-1", "b"),)
    told = recorder.summary(of, 3)
    assert "1 copy that arrived was not delivered by the end, a-1 to b the first" in told
    assert "no message has a cause" in told
    monkeypatch.setattr("antecede.cli.experiments.record.record", lambda *_, **__: of)
    assert main(["record", "-o", str(tmp_path / "r.csv")]) == 1
    assert (tmp_path / "r.csv").read_text().startswith('"kind","id"')


@pytest.mark.parametrize("members", [1, 0, 65])
def test_an_impossible_number_of_members(members: int) -> None:
    with pytest.raises(LocalError, match="choose 2 to 64"):
        record(members, 0.1)


def test_names_repeat_the_regions_with_numbers() -> None:
    names = make_member_names(18)
    assert names[:8] == tuple(region.name for region in REGIONS)
    assert names[8] == REGIONS[0].name + "2"
    assert names[17] == REGIONS[1].name + "3"
    assert len(set(names)) == 18


def test_delays_are_never_below_the_empty_route() -> None:
    rng = random.Random(1)
    for a in REGIONS:
        for b in REGIONS:
            assert draw_delay_s(a, b, rng) * 1000 >= compute_base_delay_ms(a, b) >= 0
    assert compute_base_delay_ms(REGIONS[0], REGIONS[7]) == pytest.approx(123, rel=0.05)


def test_a_saying_survives_the_wire() -> None:
    rng = random.Random(2)
    asked = workload.make_question(rng)
    assert workload.MessageContent.from_bytes(asked.to_bytes()) == asked
    answers = [workload.make_reply(rng, asked, ("bob", 3)) for _ in range(50)]
    given = [answer for answer in answers if answer is not None]
    assert 0 < len(given) < 50
    assert all(workload.MessageContent.from_bytes(answer.to_bytes()) == answer for answer in given)
