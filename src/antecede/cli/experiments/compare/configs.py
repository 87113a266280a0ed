"""Simulation configs of `antecede compare`, from arguments and options.

An argument is NAME, NAME/VARIANT or FILE.py:CLASS; NAME=VALUE arguments after it are its options.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from antecede.core.protocols import ENTRIES, Addressing, entry, of_order
from antecede.core.protocols.options import read_options, split_options
from antecede.errors import ConfigError, InputError
from antecede.lab.check import is_file_target, load_class
from antecede.lab.simulate import (
    LONGEST_S,
    Delay,
    Hierarchy,
    Mesh,
    PubSub,
    Topology,
    parse_delay,
)
from antecede.lab.simulate.config import (
    FASTEST_HZ,
    Clocks,
    Links,
    SimulationConfig,
    Special,
    Workload,
    check_fit,
    choices,
    topologies_of,
)

JITTER = 0.125
"""Variation of intervals, as a fraction: 70-90 ms, as in Evropeytsev et al. 2016."""
WARM_DELAYS = 4
"""Warm-up in maximum delays (Evropeytsev et al. 2016: 1 s at 50-250 ms)."""
ARRIVALS, MOST_SECONDS, LEAST_SECONDS = 30_000, 4.0, 0.5
"""Arrivals after the warm-up (about a second of work), and bounds of the simulated time, s."""
TOPICS, SUBSCRIBED, PUBLISHED = 10, 4, 2
LAN = 0.1
"""Ratio of delays in a subgroup to those between (Nakayama 2017, section 3: 16 and 160)."""
OPTIONS = {"loss": "--loss", "reply_fraction": "--reply-fraction", "duration_s": "--seconds"}
"""Attribute of a config -> option that sets it."""


class ProtocolChoice(NamedTuple):
    """Protocol to compare."""

    target: str
    variant: str = ""
    options: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """Name in the table."""
        name = self.target + (f"/{self.variant}" if self.variant else "")
        return " ".join([name, *(f"{key}={text}" for key, text in self.options)])


def parse_protocols(words: Sequence[str]) -> list[ProtocolChoice]:
    """Return the protocols to compare, without repetitions. Raise InputError."""
    found: list[ProtocolChoice] = []
    for word in words:
        if "=" in word and not is_file_target(word.partition("=")[0]):
            if not found:
                raise InputError(
                    f"{word}: expected a protocol before its options, such as bss {word}"
                )
            options = split_options([f"{k}={v}" for k, v in found[-1].options] + [word])
            found[-1] = found[-1]._replace(options=tuple(options))
        else:
            found.append(_parse_protocol(word))
    return list(dict.fromkeys(found))


def _parse_protocol(word: str) -> ProtocolChoice:
    if is_file_target(word):
        return ProtocolChoice(word)
    protocol, _, variant = word.partition("/")
    if protocol not in ENTRIES:
        near = of_order(protocol) or choices(protocol, ENTRIES)
        raise InputError(
            f"unknown protocol {protocol!r}; {near}; or NAME/VARIANT, or your own, FILE.py:CLASS"
        )
    if variant and variant not in entry(protocol).variants:
        near = choices(variant, entry(protocol).variants)
        raise InputError(f"unknown variant {variant!r} of {protocol}; {near}")
    return ProtocolChoice(protocol, variant)


def parse_sizes(text: str) -> list[int]:
    """Return the group sizes of `--members`, in its order. Raise InputError."""
    sizes = []
    for word in text.split(","):
        if not word.strip().isdecimal():
            raise InputError(f"--members {text}: expected whole numbers such as 10,30,100")
        sizes.append(int(word))
        if sizes[-1] < 1:
            raise InputError(f"--members {sizes[-1]}: expected 1 or more")
    return list(dict.fromkeys(sizes))


def build_config(one: ProtocolChoice, args: argparse.Namespace, size: int) -> SimulationConfig:
    """Return the config of a protocol at a size. Raise InputError, which names the option."""
    options: dict[str, Any] = {}
    if one.options:  # by the types of the constructor
        own = is_file_target(one.target)
        made = load_class(one.target) if own else entry(one.target).load()
        options = read_options(one.target, made, one.options)
    delay = _parse_delay("--delay", args.delay)
    topology = _build_topology(one, size, args.topology)
    if not 0 < args.rate < math.inf:
        raise InputError(f"--rate {args.rate}: expected messages per second above 0")
    if (1 - JITTER) / args.rate < 1 / FASTEST_HZ:
        raise InputError(f"--rate {args.rate:g}: expected at most one message per microsecond")
    if (1 + JITTER) / args.rate > LONGEST_S:
        raise InputError(f"--rate {args.rate:g}: one message in {1 / args.rate:g} s is too few")
    warm_s, seconds = _choose_seconds(args, delay, size)
    try:
        config = SimulationConfig(
            topology,
            one.target,
            one.variant,
            options=options,
            links=_build_links(topology, delay, args),
            workload=_build_workload(topology, args),
            clocks=Clocks(_parse_delay("--accuracy", args.accuracy).high_s),
            duration_s=warm_s + seconds,
            warm_s=warm_s,
        )
        check_fit(config)
    except ConfigError as error:
        raise InputError(name_option(error.message)) from error
    return config


def name_option(message: str) -> str:
    """Return an error about a key of a config as one about its option."""
    head, _, rest = message.partition(": ")
    if head in OPTIONS:
        return f"{OPTIONS[head]}: {rest}"
    for key in ("protocol.name: ", "protocol.options: "):
        message = message.removeprefix(key)
    return message.replace("topology.kind = ", "--topology ")


def _parse_delay(option: str, text: str) -> Delay:
    try:
        return parse_delay(text, "ms")
    except ConfigError as error:
        raise InputError(f"{option}: {error.message}") from error


def _build_topology(one: ProtocolChoice, members: int, kind: str) -> Topology:
    flat = is_file_target(one.target) or topologies_of(one.target) == ("mesh",)
    if kind == "hierarchy" and not flat:
        if members < 2:
            raise InputError(f"--members {members}: expected 2 or more for a hierarchy")
        return Hierarchy((members - members // 2,), members // 2)
    # A user's protocol without topics runs on a mesh.
    own = is_file_target(one.target)
    if kind == "pubsub" and not (
        own and load_class(one.target).addressing is not Addressing.TOPICS
    ):
        halves = (members - members // 2, members // 2)
        return PubSub(tuple(size for size in halves if size), TOPICS, SUBSCRIBED)
    return Mesh(members)


def _build_links(topology: Topology, delay: Delay, args: argparse.Namespace) -> Links:
    special: tuple[Special, ...] = ()
    if isinstance(topology, PubSub):
        groups = [f"group:{number}" for number in range(len(topology.subgroups))]
        special = tuple(Special(group, group, delay.scale(LAN)) for group in groups)
    return Links(delay, special, fifo=args.fifo, loss=args.loss)


def _build_workload(topology: Topology, args: argparse.Namespace) -> Workload:
    mean_s = 1 / args.rate
    reply_fraction = args.reply_fraction
    if reply_fraction is None:
        has_sb = any(word.partition("/")[0] == "sb" for word in args.protocols)
        reply_fraction = 0.5 if has_sb else 0.0
    return Workload(
        interval=Delay(mean_s * (1 - JITTER), mean_s * (1 + JITTER)),
        topics=PUBLISHED if isinstance(topology, PubSub) else 1,
        reply_fraction=reply_fraction,
    )


def _choose_seconds(args: argparse.Namespace, delay: Delay, members: int) -> tuple[float, float]:
    """Return the warm-up and the measured time, s."""
    warm_s = WARM_DELAYS * delay.high_s
    if args.seconds is not None:
        if not 0 < args.seconds < math.inf:
            raise InputError(f"--seconds {args.seconds}: expected a number above 0")
        warm_s = min(warm_s, args.seconds / 2)
        return warm_s, args.seconds - warm_s
    enough: float = ARRIVALS / (args.rate * members * max(members - 1, 1))
    return warm_s, round(min(max(enough, LEAST_SECONDS), MOST_SECONDS), 1)
