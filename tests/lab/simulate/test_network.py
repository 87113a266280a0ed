"""Channels: delays by name, by end and by place; what was drawn does not depend on who asks."""

from __future__ import annotations

from antecede.lab.simulate.config.model import Links, SimulationConfig, Special
from antecede.lab.simulate.delays import US, Delay, pick
from antecede.lab.simulate.network import Network, ReceiveQueue, make_channels
from antecede.lab.simulate.random_streams import Stream, draw, make_key
from antecede.lab.simulate.topology import Hierarchy, Mesh

SLOW, FAST, NEAR = Delay(0.2, 0.4), Delay(0.0, 0.05), Delay(0.001, 0.002, "uniform")


def test_a_delay_is_drawn_by_message_and_channel() -> None:
    config = SimulationConfig(Mesh(5))
    table = config.links.delay.quantiles()
    copies = Network(config, 9).send_message(17, 1000, 2, [0, 1, 3, 4])
    for copy in copies:
        word = draw(make_key(9, Stream.DELAY), 17, 2 * 5 + copy.target)
        assert copy.arrival_us == 1000 + pick(table, word)
    alone = Network(config, 9).send_message(17, 1000, 2, [3])
    assert alone == [copies[2]]


def test_notes_are_drawn_by_their_count() -> None:
    config = SimulationConfig(Mesh(3))
    (copy,) = Network(config, 9).send_control(4, 0, 1, [2])
    word = draw(make_key(9, Stream.CONTROL_DELAY), 4, 1 * 3 + 2)
    assert copy.arrival_us == pick(config.links.delay.quantiles(), word)


def test_loss_and_duplicates_are_drawn_by_message_and_channel() -> None:
    config = SimulationConfig(Mesh(40), links=Links(SLOW, loss=0.3, duplicate=0.2))
    network = Network(config, 2)
    copies = network.send_message(0, 0, 0, list(range(1, 40)))
    assert [copy.target for copy in copies] == sorted(copy.target for copy in copies)
    assert len(copies) == 39 - network.lost + network.duplicates
    assert 0 < network.lost < 20
    assert 0 < network.duplicates < 20
    times: dict[int, set[int]] = {}
    for copy in copies:
        times.setdefault(copy.target, set()).add(copy.arrival_us)
    assert sum(len(found) == 2 for found in times.values()) > 0


def test_the_first_special_delay_that_matches_holds() -> None:
    topology = Hierarchy((2, 2), 1)  # 0, 1 super; 2, 3 and 4, 5 internal; 6 external
    special = (
        Special("3", "any", NEAR),
        Special("group:0", "super", FAST),
        Special("any", "external", SLOW),
    )
    of = make_channels(topology, Links(Delay(0.1, 0.1, "constant"), special=special))
    bounds = {
        name: tuple(int(us) for us in (delay.quantiles()[0], delay.quantiles()[-1]))
        for name, delay in (("near", NEAR), ("fast", FAST), ("slow", SLOW))
    }
    assert of.bounds_us(3, 0) == of.bounds_us(3, 6) == bounds["near"]
    assert of.bounds_us(2, 0) == of.bounds_us(0, 1) == bounds["fast"]
    assert of.bounds_us(0, 6) == of.bounds_us(4, 6) == bounds["slow"]
    assert of.bounds_us(0, 2) == of.bounds_us(4, 1) == (100_000, 100_000)


def test_a_matrix_is_added_and_asymmetric() -> None:
    matrix = ((0.0, 0.01, 0.02), (0.03, 0.0, 0.04), (0.05, 0.06, 0.0))
    of = make_channels(Mesh(5), Links(Delay(0.001, 0.001, "constant"), matrix=matrix))
    assert of.bounds_us(0, 1)[0] == 11_000
    assert of.bounds_us(1, 0)[0] == 31_000
    assert of.bounds_us(4, 2)[0] == of.bounds_us(1, 2)[0] == 41_000
    assert of.bounds_us(0, 3)[0] == 1_000
    network = Network(SimulationConfig(Mesh(5), links=Links(NEAR, matrix=matrix)), 1)
    for copy in network.send_message(0, 0, 1, [0, 2, 3, 4]):
        low, high = network.channels.bounds_us(1, copy.target)
        assert low <= copy.arrival_us <= high


def test_fifo_counts_what_was_put_on_the_channel_last() -> None:
    config = SimulationConfig(Mesh(2), links=Links(Delay(0.0, 1.0, "uniform"), fifo=True))
    network, free = (
        Network(config, 1),
        Network(SimulationConfig(Mesh(2), links=Links(Delay(0.0, 1.0, "uniform"))), 1),
    )
    newest = 0
    for message in range(50):
        (copy,), (drawn,) = (
            one.send_message(message, message * 1000, 0, [1]) for one in (network, free)
        )
        newest = max(newest, drawn.arrival_us)
        assert copy.arrival_us == newest


def test_a_buffer_has_room_and_takes_time() -> None:
    intake = ReceiveQueue(Links(buffer=2, service_s=0.001), 2)
    assert intake.accept(0, 0) == 1000
    assert intake.accept(100, 0) == 2000
    assert intake.accept(200, 0) is None
    assert intake.accept(200, 1) == 1200
    assert intake.accept(1000, 0) == 3000  # the first has just left
    assert intake.accept(9000, 0) == 10000
    assert ReceiveQueue(Links(service_s=0.0, buffer=1), 1).accept(5, 0) == 5


def test_copies_depart_in_microseconds() -> None:
    config = SimulationConfig(Mesh(2), links=Links(Delay(0.25, 0.25, "constant")))
    (copy,) = Network(config, 1).send_message(0, 7, 0, [1])
    assert copy.arrival_us == 7 + US // 4
