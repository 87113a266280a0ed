"""How much memory a run needs, told before it starts.

The compiled engines allocate everything at the beginning and know exactly. For the readable engine
it is an estimate from constants measured over all kinds of protocols (tests hold runs against
it): what a delivery leaves behind, what a message does, and what members keep. It is meant to be
right within a factor of two and to err upwards.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from antecede.check.loader import is_file_target
from antecede.errors import InputError
from antecede.protocols.registry import ENTRIES
from antecede.simulate.free_memory import free_bytes
from antecede.simulate.outputs.violations import FULL, SAMPLED
from antecede.simulate.run import AUTO, READABLE
from antecede.simulate.scenario.compatibility import kind_of
from antecede.simulate.scenario.model import Scenario
from antecede.simulate.topology import Hierarchy, Mesh, PubSub

GIB = 1 << 30
BASE = 16 << 20
DELIVERY = 90
"""Bytes of the events of a delivery, and of its wait."""
DELIVERY_AGAIN = 220
"""More, where copies can come again: what was carried and delivered is remembered."""
MESSAGE = 400
COPY = 250
"""Of a copy that is under way."""
ENTRY = 120
"""Of what a member keeps of another."""
LANE = 5
"""Bytes of a member in a packed vector (40 bits)."""
CELL = 12
"""Of an entry of a matrix that a message carries or a member keeps."""
MATRICES = ("ses", "sent", "matrix")
LISTS = ("idr", "ds", "bss", "hierarchical", "tv-vt")
TIMED = ("linear", "physical", "linear-physical", "tv", "tv-lt", "tv-pt", "tv-vt", "htbc")
"""Protocols whose copies can come again, or whose messages wait for time."""
ALIVE = {"matrix": 3, **dict.fromkeys(TIMED, 6)}
"""How long a message is kept, in mean delays; others: 1."""
TOPIC = 350
"""Of a topic: its name, subscriptions, and the draws of one message."""
SEND = 64
"""Of a message in the schedule."""
BYTES_A_LINE = 40
"""Of a trace that is replayed, at least."""


class Need(NamedTuple):
    """Bytes, by what they are for."""

    events: int
    """Grows with messages and receivers."""
    causes: int
    """The oracle's bit masks: grows with the square of the messages."""
    members: int
    """Grows with the square of the members, or faster."""
    under_way: int
    """Grows with rate, members and delay."""

    @property
    def total(self) -> int:
        """All of it."""
        return BASE + sum(self)


def needed_bytes(scenario: Scenario, engine: str = AUTO, seed: int = 0) -> int:
    """Return what a run needs beside what the process has already. Raises ScenarioError."""
    compiled = None if engine == READABLE else _compiled_bytes(scenario, seed)
    return readable_need(scenario).total if compiled is None else compiled


def check_memory(
    scenario: Scenario,
    engine: str = AUTO,
    *,
    free: int | None = None,
    loosen: Mapping[str, str] | None = None,
) -> None:
    """Raise InputError where a run would need more memory than there is.

    `free`: bytes (None: what this process may take now). `loosen` has other names for the keys
    to lower ("topology", "workload", "run"), for commands with options in their place.
    """
    have = free_bytes() if free is None else free
    need = readable_need(scenario)
    schedule = BASE + round(SEND * _drawn(scenario))
    most, what = schedule, "the schedule"
    if schedule <= have:
        most, what = needed_bytes(scenario, engine), _largest(need)
    if most <= have:
        return
    raise InputError(
        f"this run would need about {_size(most)} of memory and {_size(have)} are free; most of "
        f"it is for {what}. Lower {_lower(scenario, what, loosen or {})}"
    )


def readable_need(scenario: Scenario) -> Need:
    """Return the estimate for the readable engine."""
    name, size = scenario.protocol, scenario.topology.size
    count = messages_of(scenario)
    deliveries = count * _receivers(scenario)
    again = name in TIMED or is_file_target(name) or scenario.links.duplicate > 0
    bits = min(count, FULL) if count <= FULL else SAMPLED
    control = CELL * size**2 if name in MATRICES else LANE * size if name in LISTS else 0
    delay_s = scenario.links.delay.mean_s + _matrix_s(scenario)
    seconds = min(delay_s * ALIVE.get(name, 1), scenario.duration_s)
    alive = count * seconds / scenario.duration_s
    kept = size * (size * ENTRY + (control if name in MATRICES else 0))
    if isinstance(scenario.topology, PubSub):
        kept += TOPIC * scenario.topology.topics
    return Need(
        round(MESSAGE * count + deliveries * (DELIVERY + (DELIVERY_AGAIN if again else 0))),
        round(count * bits / 8 * 2.2),
        round(kept),
        round(alive * (COPY * _receivers(scenario) + control)),
    )


def messages_of(scenario: Scenario) -> float:
    """Return how many messages a run sends, about."""
    workload = scenario.workload
    senders = len(scenario.topology.senders()) - workload.silent
    if workload.kind == "random":
        return float(workload.messages or 0)
    if workload.kind == "replay":
        path = Path(workload.path or "")
        return path.stat().st_size / BYTES_A_LINE if path.is_file() else 0.0
    if workload.total_hz is not None:
        return workload.total_hz * scenario.duration_s
    hz = workload.rate_hz if workload.kind == "poisson" else 1 / max(workload.interval.mean_s, 1e-6)
    return senders * hz * scenario.duration_s


def _drawn(scenario: Scenario) -> float:
    """Return how many intervals the schedule draws: as if all were the shortest."""
    workload = scenario.workload
    if workload.kind != "periodic":
        return messages_of(scenario)
    part = workload.interval.low_s / workload.interval.mean_s if workload.interval.mean_s else 1
    return messages_of(scenario) / max(part, 1e-6)


def _receivers(scenario: Scenario) -> int:
    fanout, everybody = scenario.workload.fanout, len(scenario.topology.senders()) - 1
    return everybody if fanout is None else min(fanout, everybody)


def _matrix_s(scenario: Scenario) -> float:
    matrix = scenario.links.matrix
    return sum(map(sum, matrix)) / len(matrix) ** 2 if matrix else 0.0


def _compiled_bytes(scenario: Scenario, seed: int) -> int | None:
    """Return what the compiled engine that would run this asks for; None: none would."""
    if is_file_target(scenario.protocol) or scenario.protocol not in ENTRIES:
        return None
    for kind, name in ((Mesh, "mesh"), (Hierarchy, "hierarchy")):
        if not isinstance(scenario.topology, kind):
            continue
        try:
            module = importlib.import_module(f"antecede.simulate.compiled.{name}.engine")
        except ModuleNotFoundError as error:
            if error.name != "numba":
                raise
            return None
        if getattr(module, f"can_run_{name}")(scenario) is None:
            return int(getattr(module, f"{name}_bytes")(scenario, seed))
    return None


def _largest(need: Need) -> str:
    names = {
        need.events: "what happens",
        need.causes: "the causes of every message",
        need.members: "what members keep of each other",
        need.under_way: "what is under way",
    }
    return names[max(need)]


def _lower(scenario: Scenario, what: str, names: Mapping[str, str]) -> str:
    of_kind = {"mesh": "peers", "hierarchy": "groups", "pubsub": "subgroups"}
    members = names.get("topology", f"topology.{of_kind[kind_of(scenario.topology)]}")
    run = names.get("run", "run.duration_s")
    rate = names.get("workload", f"workload.{_rate_key(scenario)}")
    if what == "what members keep of each other":
        topics = isinstance(scenario.topology, PubSub) and "topology" not in names
        return f"topology.topics or {members}" if topics else members
    if scenario.workload.kind == "random":
        return rate
    return f"{rate} or {members}" if what == "what is under way" else f"{run}, {rate} or {members}"


def _rate_key(scenario: Scenario) -> str:
    workload = scenario.workload
    if workload.kind in ("random", "replay"):
        return "messages" if workload.kind == "random" else "path"
    if workload.total_hz is not None:
        return "total_hz"
    return "rate_hz" if workload.kind == "poisson" else "interval (a longer one)"


def _size(count: int) -> str:
    return f"{count / GIB:,.1f} GiB" if count >= GIB // 10 else f"{count / (1 << 20):,.0f} MiB"
