"""Random scenarios that can run, for property tests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from antecede.core.clocks.bounds import Bounds
from antecede.lab.simulate.config.model import (
    Clocks,
    Links,
    Partition,
    SimulationConfig,
    Special,
    Workload,
)
from antecede.lab.simulate.delays import Delay
from antecede.lab.simulate.topology import Hierarchy, Mesh, PubSub

SECONDS = st.floats(1e-6, 100, allow_subnormal=False)
PARTS = st.floats(0, 0.999)
SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple)


@st.composite
def delays(draw: st.DrawFn) -> Delay:
    low, high = sorted((draw(SECONDS), draw(SECONDS)))
    kind = draw(st.sampled_from(("constant", "uniform", "normal", "lognormal")))
    if kind == "lognormal":
        high = min(high, low * 100)
    return Delay(low, low if kind == "constant" else high, kind)


@st.composite
def settings_of(draw: st.DrawFn) -> dict[str, Any]:
    """Topology, protocol, variant and options that go together."""
    kind = draw(st.sampled_from(("mesh", "hierarchy", "pubsub")))
    if kind == "hierarchy":
        topology: Any = Hierarchy(draw(SIZES), draw(st.integers(0, 9)))
        choices = [("hierarchical", ""), ("hierarchical", "no-pruning")]
        options: dict[str, Any] = draw(st.sampled_from(({}, {"ack_after": 0})))
    elif kind == "pubsub":
        topics = draw(st.integers(1, 6))
        topology = PubSub(draw(SIZES), topics, draw(st.none() | st.integers(1, topics)))
        choices = [("tv", ""), ("tv", "some-topics"), ("htbc", "")]
        bounds: Bounds[int] = Bounds(0.1, 0.2, 0.3, {0: 0.5}, {(0, 1): (0.1, 2.0)})
        options = draw(st.sampled_from(({}, {"bounds": bounds})))
    else:
        topology = Mesh(draw(st.integers(2, 40)))
        choices = [("idr", ""), ("bss", "differences"), ("linear", ""), ("ses", "")]
    protocol, variant = draw(st.sampled_from(choices))
    if kind == "mesh":
        some: tuple[dict[str, Any], ...] = (
            {},
            {"heartbeat_s": None, "as_published": ("equal-times",), "max_clock_lead": 300},
        )
        options = draw(st.sampled_from(some)) if protocol == "linear" else {}
    return {"topology": topology, "protocol": protocol, "variant": variant, "options": options}


@st.composite
def partitions(draw: st.DrawFn, size: int) -> Partition:
    start = draw(SECONDS)
    side = draw(
        st.lists(st.integers(0, size - 1), min_size=1, max_size=min(3, size - 1), unique=True)
    )
    return Partition(start, start + draw(SECONDS), tuple(side), draw(st.booleans()))


@st.composite
def links(draw: st.DrawFn, size: int) -> Links:
    ends = st.sampled_from(("any", "0", "group:0", str(size - 1)))
    special = st.builds(Special, ends, ends, delays())
    side = draw(st.integers(1, 4))
    row = st.lists(st.floats(0, 10), min_size=side, max_size=side).map(tuple)
    matrix = st.none() | st.lists(row, min_size=side, max_size=side).map(tuple)
    return Links(
        draw(delays()),
        tuple(draw(st.lists(special, max_size=2))),
        draw(matrix),
        draw(st.booleans()),
        draw(PARTS),
        draw(PARTS),
        tuple(draw(st.lists(partitions(size), max_size=2))) if size > 1 else (),
        draw(st.none() | st.integers(1, 99)),
        draw(st.floats(0.001, 1)),
    )


@st.composite
def workloads(draw: st.DrawFn, setting: dict[str, Any], *, unused: bool) -> Workload:
    """A workload; `unused`: with values that its kind does not use, too."""
    kind = draw(st.sampled_from(("periodic", "poisson", "random", "replay")))
    given: dict[str, Any] = {"kind": kind}
    if kind == "periodic" or unused:
        given["interval"] = draw(delays())
    if kind == "poisson" or unused:
        given["rate_hz"] = draw(st.floats(0.001, 1000))
    if kind in ("periodic", "poisson") or unused:
        given["total_hz"] = draw(st.none() | st.floats(0.001, 1000))
        if given["total_hz"] is not None and kind == "poisson" and not unused:
            del given["rate_hz"]
    if kind == "random" or unused:
        given["messages"] = draw(st.integers(0, 99))
    if kind == "replay" or unused:
        given["path"] = draw(st.text(max_size=9))
    if kind != "replay" or unused:
        given["reply_fraction"] = draw(st.floats(0, 1))
        if given["reply_fraction"] or unused:
            given["recent"] = draw(st.integers(1, 9))
    topology = setting["topology"]
    if isinstance(topology, PubSub):
        given["topics"] = draw(st.integers(1, topology.topics))
    if setting["protocol"] == "ses":
        given["fanout"] = draw(st.none() | st.integers(1, topology.size - 1))
    given["silent"] = draw(st.integers(0, len(topology.senders()) - 1))
    return Workload(**given)


@st.composite
def configs(draw: st.DrawFn, *, unused: bool = False) -> SimulationConfig:
    setting = draw(settings_of())
    duration = draw(SECONDS)
    drift = draw(st.sampled_from((0.0, 10.0)))
    return SimulationConfig(
        **setting,
        links=draw(links(setting["topology"].size)),
        workload=draw(workloads(setting, unused=unused)),
        clocks=Clocks(draw(st.floats(0.001, 1)), drift, 1.0 if drift else 0.0),
        duration_s=duration,
        warm_s=duration * draw(PARTS),
        sample_s=draw(SECONDS),
        name=draw(st.text(max_size=9)),
    )
