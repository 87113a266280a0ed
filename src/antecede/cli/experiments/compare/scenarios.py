"""Scenarios of `antecede compare`, one for each cell, from words and options.

A word is NAME, NAME/VARIANT or FILE.py:CLASS; NAME=VALUE words after it are its options.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from antecede.core.protocols import ENTRIES, Addressing, entry, of_order
from antecede.core.protocols.options import read_options, split_options
from antecede.errors import InputError, ScenarioError
from antecede.lab.check import is_file_target, load_class
from antecede.lab.simulate import (
    LONGEST_S,
    Delay,
    Hierarchy,
    Mesh,
    PubSub,
    Topology,
    config,
    parse_delay,
)

JITTER = 0.125
"""Part of the mean by which intervals vary: 70-90 ms, as in Evropeytsev et al. 2016."""
WARM_DELAYS = 4
"""Longest delays until a group is steady (Evropeytsev et al. 2016: 1 s at 50-250 ms)."""
ARRIVALS, MOST_SECONDS, LEAST_SECONDS = 30_000, 4.0, 0.5
"""Arrivals after the warm-up (about a second of work), and bounds of the simulated time."""
TOPICS, SUBSCRIBED, PUBLISHED = 10, 4, 2
LAN = 0.1
"""Delays inside a subgroup by those between (Nakayama 2017, section 3: 16 and 160)."""
OPTIONS = {"loss": "--loss", "answers": "--answers", "duration_s": "--seconds"}
"""Attribute of a scenario -> the option that sets it."""


class Asked(NamedTuple):
    """One protocol to compare."""

    target: str
    variant: str = ""
    options: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """Name in the table."""
        name = self.target + (f"/{self.variant}" if self.variant else "")
        return " ".join([name, *(f"{key}={text}" for key, text in self.options)])


def protocols_of(words: Sequence[str]) -> list[Asked]:
    """Return what is to be compared, nothing twice; raises InputError for a word that is none."""
    found: list[Asked] = []
    for word in words:
        if "=" in word and not is_file_target(word.partition("=")[0]):
            if not found:
                raise InputError(f"{word}: options stand after their protocol: bss {word}")
            options = split_options([f"{k}={v}" for k, v in found[-1].options] + [word])
            found[-1] = found[-1]._replace(options=tuple(options))
        else:
            found.append(_asked(word))
    return list(dict.fromkeys(found))


def _asked(word: str) -> Asked:
    if is_file_target(word):
        return Asked(word)
    protocol, _, variant = word.partition("/")
    if protocol not in ENTRIES:
        near = of_order(protocol) or config.choices(protocol, ENTRIES)
        raise InputError(f"no protocol is called {protocol!r}; {near}; or your own, FILE.py:CLASS")
    if variant and variant not in entry(protocol).variants:
        near = config.choices(variant, entry(protocol).variants)
        raise InputError(f"{protocol} has no variant {variant!r}; {near}")
    return Asked(protocol, variant)


def sizes_of(text: str) -> list[int]:
    """Return the sizes of groups that `--members` asks for, in its order; raises InputError."""
    sizes = []
    for word in text.split(","):
        if not word.strip().isdecimal():
            raise InputError(f"--members {text}: whole numbers with commas between: 10,30,100")
        sizes.append(int(word))
        if sizes[-1] < 1:
            raise InputError(f"--members {sizes[-1]}: a group has 1 or more")
    return list(dict.fromkeys(sizes))


def scenario_of(one: Asked, args: argparse.Namespace, size: int) -> config.Scenario:
    """Return the scenario of one protocol at one size; raises InputError that names the option."""
    options: dict[str, Any] = {}
    if one.options:  # by the types of the constructor
        own = is_file_target(one.target)
        made = load_class(one.target) if own else entry(one.target).load()
        options = read_options(one.target, made, one.options)
    delay = _delay("--delay", args.delay)
    topology = _topology(one, size, args.topology)
    if not 0 < args.rate < math.inf:
        raise InputError(f"--rate {args.rate}: messages a second, above 0")
    if (1 - JITTER) / args.rate < 1 / config.FASTEST_HZ:
        raise InputError(f"--rate {args.rate:g}: a peer sends one message a microsecond at most")
    if (1 + JITTER) / args.rate > LONGEST_S:
        raise InputError(f"--rate {args.rate:g}: a message in {1 / args.rate:g} s; too seldom")
    warm_s, seconds = _seconds(args, delay, size)
    try:
        scenario = config.Scenario(
            topology,
            one.target,
            one.variant,
            options=options,
            links=_links(topology, delay, args),
            workload=_workload(topology, args),
            clocks=config.Clocks(_delay("--accuracy", args.accuracy).high_s),
            duration_s=warm_s + seconds,
            warm_s=warm_s,
        )
        config.check_fit(scenario)
    except ScenarioError as error:
        raise InputError(as_option(error.message)) from error
    return scenario


def as_option(message: str) -> str:
    """Return what a scenario says of a key, said of the option that sets it."""
    head, _, rest = message.partition(": ")
    if head in OPTIONS:
        return f"{OPTIONS[head]}: {rest}"
    for key in ("protocol.name: ", "protocol.options: "):
        message = message.removeprefix(key)
    return message.replace("topology.kind = ", "--topology ")


def _delay(option: str, text: str) -> Delay:
    try:
        return parse_delay(text, "ms")
    except ScenarioError as error:
        raise InputError(f"{option}: {error.message}") from error


def _topology(one: Asked, members: int, kind: str) -> Topology:
    flat = is_file_target(one.target) or config.topologies_of(one.target) == ("mesh",)
    if kind == "hierarchy" and not flat:
        if members < 2:
            raise InputError(f"--members {members}: a hierarchy has peers inside and outside, 2")
        return Hierarchy((members - members // 2,), members // 2)
    # A protocol of the user's without topics runs on a mesh.
    own = is_file_target(one.target)
    if kind == "pubsub" and not (
        own and load_class(one.target).addressing is not Addressing.TOPICS
    ):
        halves = (members - members // 2, members // 2)
        return PubSub(tuple(size for size in halves if size), TOPICS, SUBSCRIBED)
    return Mesh(members)


def _links(topology: Topology, delay: Delay, args: argparse.Namespace) -> config.Links:
    special: tuple[config.Special, ...] = ()
    if isinstance(topology, PubSub):
        groups = [f"group:{number}" for number in range(len(topology.subgroups))]
        special = tuple(config.Special(group, group, delay.scale(LAN)) for group in groups)
    return config.Links(delay, special, fifo=args.fifo, loss=args.loss)


def _workload(topology: Topology, args: argparse.Namespace) -> config.Workload:
    mean_s = 1 / args.rate
    answers = args.answers
    if answers is None:
        answers = 0.5 if any(word.partition("/")[0] == "sb" for word in args.protocols) else 0.0
    return config.Workload(
        interval=Delay(mean_s * (1 - JITTER), mean_s * (1 + JITTER)),
        topics=PUBLISHED if isinstance(topology, PubSub) else 1,
        answers=answers,
    )


def _seconds(args: argparse.Namespace, delay: Delay, members: int) -> tuple[float, float]:
    """Return how long members send before figures count, and after that."""
    warm_s = WARM_DELAYS * delay.high_s
    if args.seconds is not None:
        if not 0 < args.seconds < math.inf:
            raise InputError(f"--seconds {args.seconds}: above 0")
        warm_s = min(warm_s, args.seconds / 2)
        return warm_s, args.seconds - warm_s
    enough: float = ARRIVALS / (args.rate * members * max(members - 1, 1))
    return warm_s, round(min(max(enough, LEAST_SECONDS), MOST_SECONDS), 1)
