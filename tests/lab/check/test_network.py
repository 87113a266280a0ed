"""The test network applies effects, joins and leaves, without checks."""

from __future__ import annotations

from antecede.core.protocols.basic.fifo import Fifo
from antecede.lab.check.harness.network import DELIVERED, DISCARDED, HELD, Step, World
from antecede.lab.check.harness.timing import InFlight


def fifo_world(size: int = 3) -> World:
    return World({me: Fifo(me, range(size)) for me in range(size)})


def test_every_step_is_written_down() -> None:
    world = fifo_world(2)
    world.send(0, "a")
    world.send(0, "b")
    assert world.arrive(1, "b")[1:] == [Step(1, HELD, "b", ("a",))]
    assert [step.label for step in world.arrive(1, "a") if step.kind == DELIVERED] == ["a", "b"]
    assert world.in_flight == []


def test_a_newcomer_is_owed_what_its_sponsor_has_not_delivered() -> None:
    world = fifo_world()
    world.send(0, "a")
    world.arrive(1, "a")
    world.send(0, "b")
    world.send(2, "c")
    world.join(3, Fifo(3, range(4)), sponsor=1)
    owed = [copy.message.payload for copy in world.in_flight if copy.target == 3]
    assert owed == ["b", "c"]
    for label in owed:
        assert world.arrive(3, label)[-1] == Step(3, DELIVERED, label)
    world.send(3, "d")
    assert world.arrive(0, "d")[-1] == Step(0, DELIVERED, "d")


def test_copies_from_a_member_that_left_arrive_and_copies_to_it_vanish() -> None:
    world = fifo_world()
    world.send(0, "a")
    world.send(1, "b")
    world.leave(0)
    assert {copy.target for copy in world.in_flight} == {1, 2}
    assert world.arrive(2, "a")[-1] == Step(2, DELIVERED, "a")
    world.send(1, "c")
    assert all(copy.target != 0 for copy in world.in_flight)


def test_a_copy_handed_over_twice_is_a_duplicate() -> None:
    world = fifo_world(2)
    world.send(0, "a")
    copy: InFlight = world.in_flight[0]
    world.arrive(1, "a")
    assert world.hand_over(copy)[-1].kind == DISCARDED
