"""Stamps of a run's messages, and the pairs that ordering rules by receipt order.

Stamps are linear, physical and vector time and topic vectors. The relations of Tsuneizumi et
al. and Nakayama 2017 go by RECEIPT: a timestamp follows from arrivals at the sender, and arrivals
do not depend on a protocol without control messages. So all copies of a run are drawn at once and
sorted by event order (sends of a microsecond first, then arrivals by message and receiver, as in
`reference_engine`). The clocks run over that list once, compiled
(`tables.false_causality.kernels.timestamps`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from antecede.errors import ConfigError
from antecede.lab.simulate.clocks import MemberClocks, compute_bounds
from antecede.lab.simulate.config.model import SimulationConfig
from antecede.lab.simulate.network import Channels, make_channels
from antecede.lab.simulate.random_streams import Stream, draw_array, draw_unit_array, make_key
from antecede.lab.simulate.topology import Hierarchy, PubSub
from antecede.lab.simulate.workload import Traffic
from antecede.tables.false_causality import (
    ALL_TOPICS,
    RULES,
    ClockColumns,
    Happenings,
    Stamps,
    Words,
    clocks_of,
    count_rules,
    limits_of,
)
from antecede.tables.kernels import Bools, Ints

_MAX_TOPICS = 64
_UNSUPPORTED_LINK_KEYS = ("partitions", "buffer", "service_s", "duplicate")
"""Keys of `links` that must have their default here."""


class ArrivedCopies(NamedTuple):
    """Arrived copies, in the order of their arrival."""

    message: Ints
    member: Ints
    time_us: Ints


def compute_timestamps(
    config: SimulationConfig,
    seed: int,
    observers: Collection[int] | None = None,
    *,
    broadcast: bool = False,
) -> dict[int, Stamps]:
    """Return observer -> timestamps of the messages that it received, in the order of arrival.

    `observers`: addresses (None: all). `broadcast`: events go to every peer, whatever it subscribes
    to (Nakayama 2017, section 3), not only to their targets (section 4). Physical time keeps the
    bounds of the configured clocks and channels. Raises ConfigError for hierarchies, replies, and
    networks with partitions, duplicates or slow receivers.
    """
    _check(config)
    traffic = Traffic(config, seed)
    channel = make_channels(config.topology, config.links)
    size = config.topology.size
    topics = _encode_topics(traffic)
    wanted = None if broadcast else _find_recipients(traffic, topics)
    copies = _draw_arrivals(config, seed, traffic, channel, wanted)
    clocks = _run_clocks(traffic, copies, size, topics)
    everything = _collect_timestamps(config, seed, traffic, clocks, topics)
    limits = limits_of(compute_bounds(config, channel), range(size), range(size))
    everything = everything._replace(limits=limits)
    chosen = range(size) if observers is None else observers
    return {at: _select_received(everything, copies, at, traffic) for at in chosen}


def _check(config: SimulationConfig) -> None:
    if isinstance(config.topology, Hierarchy):
        raise ConfigError("topology: timestamps need a flat group: mesh or pubsub")
    usual = type(config.links)()
    for name in _UNSUPPORTED_LINK_KEYS:
        if getattr(config.links, name) != getattr(usual, name):
            raise ConfigError(f"links.{name}: not supported for timestamps; remove the key")
    if config.workload.reply_fraction or config.workload.fanout is not None:
        raise ConfigError("workload: timestamps need messages to all members, without replies")


def _encode_topics(traffic: Traffic) -> Words:
    """Return the topics of each message as bits; 0 without topics [messages]."""
    count = len(traffic.schedule.sender)
    if len(traffic.topics) > _MAX_TOPICS:
        raise ConfigError(f"topology.topics: {len(traffic.topics)}; timestamps support up to 64")
    bit = {topic: 1 << index for index, topic in enumerate(traffic.topics)}
    found = np.zeros(count, dtype=np.uint64)
    if bit:
        for message in range(count):
            found[message] = sum(bit[topic] for topic in traffic.choose_topics(message))
    return found


def _find_recipients(traffic: Traffic, topics: Words) -> Bools | None:
    if not traffic.subscriptions:
        return None
    own = np.array(
        [_encode_subscription(traffic, at) for at in range(traffic.size)], dtype=np.uint64
    )
    found: Bools = (topics[:, None] & own[None, :]) != 0
    return found


def _encode_subscription(traffic: Traffic, address: int) -> int:
    if not traffic.subscriptions:
        return ALL_TOPICS
    return sum(
        1 << index
        for index, topic in enumerate(traffic.topics)
        if topic in traffic.subscriptions[address]
    )


def _draw_arrivals(
    config: SimulationConfig,
    seed: int,
    traffic: Traffic,
    channels: Channels,
    recipients: Bools | None,
) -> ArrivedCopies:
    sender, size = traffic.schedule.sender, traffic.size
    message = np.repeat(np.arange(len(sender)), size)
    target = np.tile(np.arange(size), len(sender))
    source = sender[message]
    there = target != source
    if recipients is not None:
        there &= recipients.reshape(-1)
    channel = source * size + target
    if config.links.loss:
        there &= draw_unit_array(make_key(seed, Stream.LOSS), message, channel) >= config.links.loss
    message, target, source, channel = (x[there] for x in (message, target, source, channel))
    words = draw_array(make_key(seed, Stream.DELAY), message, channel)
    time_us = traffic.schedule.time_us[message] + channels.delays_us(words, source, target)
    if config.links.fifo:
        time_us = _enforce_fifo(time_us, channel)
    order = np.lexsort((target, message, time_us))
    return ArrivedCopies(message[order], target[order], time_us[order])


def _enforce_fifo(time_us: Ints, channel: Ints) -> Ints:
    order = np.argsort(channel, kind="stable")
    found = time_us.copy()
    starts = np.flatnonzero(np.r_[True, np.diff(channel[order]) != 0])
    for first, last in zip(starts, np.r_[starts[1:], len(order)], strict=True):
        here = order[first:last]
        found[here] = np.maximum.accumulate(time_us[here])
    return found


def _run_clocks(traffic: Traffic, copies: ArrivedCopies, size: int, topics: Words) -> ClockColumns:
    count = len(traffic.schedule.sender)
    times = np.r_[traffic.schedule.time_us, copies.time_us]
    sends = np.r_[np.ones(count, np.bool_), np.zeros(len(copies.time_us), np.bool_)]
    rows = Happenings(
        sends,
        np.r_[traffic.schedule.sender, copies.member],
        np.r_[np.arange(count), copies.message],
        ~sends,
    )
    steps = np.lexsort((np.arange(len(times)), times))  # sends precede arrivals of the same time
    return clocks_of(rows, steps, np.arange(size), size, topics, len(traffic.topics))


def _collect_timestamps(
    config: SimulationConfig, seed: int, traffic: Traffic, clocks: ClockColumns, topics: Words
) -> Stamps:
    sender, times = traffic.schedule.sender, traffic.schedule.time_us
    member_clocks = MemberClocks(config.clocks, seed)
    shown = np.array(
        [
            member_clocks.read_us(at, now)
            for at, now in zip(sender.tolist(), times.tolist(), strict=True)
        ],
        dtype=np.int64,
    )
    own = clocks.vector[np.arange(len(sender)), sender].astype(np.int64)
    stamps = Stamps(sender, own, clocks.lt, shown, clocks.vector, np.zeros(len(sender), np.int64))
    stamps = stamps._replace(lt_printed=clocks.lt_printed)
    if traffic.topics:
        stamps = stamps._replace(topics=topics, counts=clocks.counts)
    return stamps


def _select_received(
    timestamps: Stamps, copies: ArrivedCopies, address: int, traffic: Traffic
) -> Stamps:
    came = copies.message[copies.member == address]
    names = ("sender", "seq", "lt", "pt_us", "vector", "topics", "counts", "lt_printed")
    columns = {
        name: getattr(timestamps, name)[came]
        for name in names
        if getattr(timestamps, name) is not None
    }
    return timestamps._replace(
        **columns, arrival=np.arange(len(came)), subscription=_encode_subscription(traffic, address)
    )


def list_rules(config: SimulationConfig) -> list[str]:
    """Return the names of the rules that apply to a configuration's messages."""
    topics = isinstance(config.topology, PubSub)
    return [name for name, rule in RULES.items() if topics or not rule.topics]


def meter_figures(
    config: SimulationConfig, seed: int, rules: Sequence[str] | None = None
) -> dict[str, float]:
    """Return `false_causality.RULE.causal`, `.ordered`, `.false_pairs`, `.missed_pairs`.

    Values are sums over observers. `rules`: None for all that apply. Raises ConfigError like
    `stamped`, InputError for an unknown rule, LocalError for one that does not apply.
    """
    chosen = list_rules(config) if rules is None else list(rules)
    found: dict[str, float] = {}
    for stamps in compute_timestamps(config, seed).values():
        for name, counts in zip(chosen, count_rules(stamps, chosen), strict=True):
            pairs = {
                "causal": counts.causal,
                "ordered": counts.ordered,
                "false_pairs": counts.false_pairs,
                "missed_pairs": counts.missed_pairs,
            }
            for kind, count in pairs.items():
                metric = f"false_causality.{name}.{kind}"
                found[metric] = found.get(metric, 0.0) + count
    return found
