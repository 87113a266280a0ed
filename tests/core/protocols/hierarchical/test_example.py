"""The scenario of Evropeytsev et al. 2016, section 3.1.4 (figure 3), with every value that the
text states.

P(e)3 sends m1, P(e)2 answers with m2, P(i)2 sends m3 after both, P(e)2 sends m4 after m3.
Addresses: Sp1 = 1, P(e)2 = 2, P(e)3 = 3 as in the text; P(i)1 = 4, P(i)2 = 5.
"""

from __future__ import annotations

from typing import Any

from antecede.core.protocols.hierarchical.external import ExternalPeer
from antecede.core.protocols.hierarchical.internal import InternalPeer, format_window
from antecede.core.protocols.hierarchical.messages import Downward, External, Upward
from antecede.core.protocols.hierarchical.roles import Topology, hierarchical
from antecede.core.protocols.hierarchical.super_peer import SuperPeer
from antecede.lab.check.harness.network import DELIVERED, HELD, Step, World

SP1, PE2, PE3, PI1, PI2 = 1, 2, 3, 4, 5


class Example:
    """The world of the scenario, and the messages in it by label and kind."""

    def __init__(self) -> None:
        self.world = World(hierarchical(Topology({SP1: (PI1, PI2)}, (PE2, PE3))))

    def state(self, at: int) -> dict[str, str]:
        member = self.world.members[at]
        assert isinstance(member, InternalPeer | ExternalPeer | SuperPeer)
        return member.describe()

    def message(self, label: str, kind: type) -> Any:
        copies = self.world.sent[label]
        found = [copy.message for copy in copies if isinstance(copy.message, kind)]
        assert len(found) == 1
        return found[0]

    def arrive(self, at: int, label: str) -> list[Step]:
        return self.world.arrive(at, label)[1:]


def _after_m2() -> Example:
    """Bring the scenario to where the text begins: m1 and m2 are everywhere but at P(e)3."""
    example = Example()
    example.world.send(PE3, "m1")
    example.arrive(PE2, "m1")
    example.world.send(PE2, "m2")
    for label in ("m1", "m2"):
        for at in (SP1, PI1, PI2):
            example.arrive(at, label)
    return example


def test_m2_and_its_translation() -> None:
    example = _after_m2()
    m2 = example.message("m2", External)
    assert m2 == External(PE2, 1, ((PE3, 1),), (), (0, 0), "m2")
    inward = example.message("m2", Downward)
    assert (inward.seq, inward.last, format_window(inward.dv)) == (2, 0, "1")
    assert example.state(SP1) == {
        "VTx": "(2, 1, 1)",
        "LR": "(<0, 0>, <0, 0>)",
        "TT": "2: <1, 2>; 3: <1, 1>",
        "I": "11",
    }
    assert example.state(PI1) == {"SN": "0", "RV": "11", "DV": "01"}


def test_diffusion_of_m3_at_pi2() -> None:
    example = _after_m2()
    example.world.send(PI2, "m3")
    m3 = example.message("m3", Upward)
    assert (m3.sender, m3.seq, format_window(m3.dv), m3.payload) == (PI2, 1, "01", "m3")
    assert example.state(PI2)["DV"] == "Ø"
    example.arrive(SP1, "m3")
    outside = example.message("m3", External)
    assert (outside.sender, outside.seq) == (SP1, 3)
    assert outside.counts == ((PE2, 1),)
    assert outside.vectors == ()
    assert format_window(outside.translated) == "11"
    inside = example.message("m3", Downward)
    assert (inside.sender, inside.seq, inside.last, format_window(inside.dv)) == (PI2, 3, 0, "01")
    assert example.state(SP1)["LR"] == "(<0, 0>, <1, 3>)"
    assert example.state(SP1)["I"] == "Ø"


def _at_pe3() -> Example:
    example = _after_m2()
    example.world.send(PI2, "m3")
    example.arrive(SP1, "m3")
    return example


def test_m3_before_m2_at_pe3() -> None:
    example = _at_pe3()
    assert example.arrive(PE3, "m3") == [Step(PE3, HELD, "m3", ("m2",))]
    assert example.state(PE3)["VTx"] == "(11, 0, 1)"  # Listing 10 on receipt
    member = example.world.members[PE3]
    before = member.snapshot()
    steps = example.arrive(PE3, "m2")
    assert steps == [Step(PE3, DELIVERED, "m2"), Step(PE3, DELIVERED, "m3")]
    assert example.state(PE3) == {"VTx": "(111, 1, 1)", "CI": "<1, 001>"}
    # Between the two deliveries: VTx = (11, 1, 1), CI = <2, 1>.
    member.restore(before)
    assert isinstance(member, ExternalPeer)
    member.clock.held.clear()
    member.clock.waiting.clear()
    member.receive(example.message("m2", External))
    assert member.describe() == {"VTx": "(11, 1, 1)", "CI": "<2, 1>"}


def _after_m4() -> Example:
    example = _at_pe3()
    example.arrive(PE3, "m3")
    example.arrive(PE3, "m2")
    example.arrive(PE2, "m3")
    assert example.state(PE2) == {"VTx": "(111, 1, 1)", "CI": "<1, 001>"}
    example.world.send(PE2, "m4")
    return example


def test_diffusion_and_reception_of_m4_outside() -> None:
    example = _after_m4()
    assert example.state(PE2) == {"VTx": "(111, 2, 1)", "CI": "Ø"}
    m4 = example.message("m4", External)
    assert (m4.sender, m4.seq, m4.counts) == (PE2, 2, ())
    assert [(p, format_window(v)) for p, v in m4.vectors] == [(SP1, "001")]
    assert format_window(m4.translated) == "Ø"
    assert example.arrive(PE3, "m4") == [Step(PE3, DELIVERED, "m4")]
    assert example.state(PE3) == {"VTx": "(111, 2, 1)", "CI": "<2, 2>"}


def test_m4_at_the_super_peer_and_inside() -> None:
    example = _after_m4()
    example.arrive(SP1, "m4")
    assert example.state(SP1)["VTx"] == "(4, 2, 1)"
    inside = example.message("m4", Downward)
    assert (inside.sender, inside.seq, inside.last) == (SP1, 4, 2)  # printed Id: 0
    assert format_window(inside.dv) == "001"

    own = example.arrive(PI2, "m3")
    assert [(step.kind, step.detail) for step in own] == [("discard", ("own message",))]
    assert example.state(PI2) == {"SN": "1", "RV": "111", "DV": "Ø"}
    assert example.arrive(PI2, "m4") == [Step(PI2, DELIVERED, "m4")]
    assert example.state(PI2) == {"SN": "1", "RV": "1111", "DV": "0001"}

    assert example.state(PI1)["RV"] == "11"
    assert example.arrive(PI1, "m4") == [Step(PI1, HELD, "m4", ("m3",))]
    assert example.state(PI1) == {"SN": "0", "RV": "11", "DV": "01"}
    # m3 alone gives RV = 111, DV = 001; the held m4 follows at once.
    alone = InternalPeer(PI1, (PI1, PI2, SP1), SP1)
    for label in ("m1", "m2", "m3"):
        alone.receive(example.message(label, Downward))
    assert alone.describe() == {"SN": "0", "RV": "111", "DV": "001"}
    steps = example.arrive(PI1, "m3")
    assert steps == [Step(PI1, DELIVERED, "m3"), Step(PI1, DELIVERED, "m4")]
    assert example.state(PI1) == {"SN": "0", "RV": "1111", "DV": "0001"}
    assert {(copy.target, copy.message.payload) for copy in example.world.in_flight} == {
        (PE3, "m4")
    }
