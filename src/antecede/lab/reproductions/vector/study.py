"""Study of Sahai et al. 2020: bytes and waits of vectors, matrices and immediate dependencies.

One lost message shows the cost of missing recovery. The source is a lecture without an evaluation;
this one is ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from antecede.lab.reproductions.framework.page_builder import findings_from_package
from antecede.lab.reproductions.framework.runs import Run
from antecede.lab.reproductions.framework.study import (
    Study,
    make_seed_runs,
    make_simulation_run,
    simulate_run,
)
from antecede.lab.simulate import US, Delay, Hierarchy, Mesh, Topology, build_schedule
from antecede.lab.simulate.config import Links, Partition, SimulationConfig, Workload

BROADCAST = ("bss", "bss/differences", "idr", "hierarchical", "ses", "sent")
SIZES, QUICK_SIZES = (6, 10, 20, 40, 60), (6, 10, 20)
FANOUTS, QUICK_FANOUTS = (1, 2, 4, 8, 15), (1, 4, 15)
ADDRESSED = ("ses", "sent")
ADDRESSED_MEMBERS = 16
LOSS_PROTOCOLS = (
    "unordered",
    "fifo",
    "bss",
    "idr",
    "hierarchical",
    "ses",
    "sent",
    "matrix/recovering",
)
LOSS_MEMBERS = 10
LOST_AFTER_S = 1.0
DELAY = Delay(0.05, 0.25)
MICROSECOND_S = 1 / US
SEEDS, QUICK_SEEDS = (1, 2, 3), (1,)


def list_runs(quick: bool) -> Sequence[Run]:
    """Return runs over the members, over the addressees, and with one lost message."""
    return [*_make_member_runs(quick), *_make_fanout_runs(quick), *_make_loss_runs(quick)]


def _make_member_runs(quick: bool) -> Iterator[Run]:
    for protocol in BROADCAST:
        for members in QUICK_SIZES if quick else SIZES:
            yield from make_seed_runs(
                QUICK_SEEDS if quick else SEEDS,
                f"members/{protocol}/{members}",
                _make_config(protocol, members, 1.0 if quick else 2.0),
                2e-5 * members**2 * (members if protocol in ADDRESSED else 10),
                "members",
                protocol=protocol,
                members=members,
            )


def _make_fanout_runs(quick: bool) -> Iterator[Run]:
    for protocol in ADDRESSED:
        for fanout in QUICK_FANOUTS if quick else FANOUTS:
            measured_s, load = 1.0 if quick else 3.0, Workload(fanout=fanout)
            yield from make_seed_runs(
                QUICK_SEEDS if quick else SEEDS,
                f"addressees/{protocol}/{fanout}",
                _make_config(protocol, ADDRESSED_MEMBERS, measured_s, load),
                0.02 * (1 + fanout),
                "addressees",
                protocol=protocol,
                addressees=fanout,
            )


def _make_loss_runs(quick: bool) -> Iterator[Run]:
    for protocol in LOSS_PROTOCOLS:
        for copies in ("one", "all"):
            for seed in QUICK_SEEDS if quick else SEEDS:
                config = _make_config(protocol, LOSS_MEMBERS, 3.0)
                yield make_simulation_run(
                    f"loss/{protocol}/{copies}/seed {seed}",
                    _add_loss(config, seed, copies),
                    seed,
                    0.5,
                    "loss",
                    protocol=protocol,
                    copies=copies,
                )


def _make_config(
    protocol: str, members: int, measured_s: float, workload: Workload | None = None
) -> SimulationConfig:
    name, _, variant = protocol.partition("/")
    topology: Topology = Mesh(members)
    if name == "hierarchical":
        topology = Hierarchy((members // 2,), members - members // 2)
    return SimulationConfig(
        topology,
        name,
        variant,
        links=Links(DELAY),
        workload=workload or Workload(),
        duration_s=1.0 + measured_s,
        warm_s=1.0,
    )


def _add_loss(config: SimulationConfig, seed: int, copies: str) -> SimulationConfig:
    """Return the configuration in which one copy of a message is lost, or all, and nothing else.

    The message is the first that a peer (in a hierarchy: an external one) sends after a second.
    """
    sent, topology = build_schedule(config, seed), config.topology
    role = topology.role(topology.size - 1)
    message = next(
        m
        for m in range(int((sent.time_us < LOST_AFTER_S * US).sum()), len(sent.sender))
        if topology.role(int(sent.sender[m])) == role
    )
    sender = int(sent.sender[message])
    receiver = topology.size - 1 if sender != topology.size - 1 else topology.size - 2
    at_s = float(sent.time_us[message]) / US
    side = (sender if copies == "all" else receiver,)
    cut = Partition(at_s, at_s + MICROSECOND_S, side, lost=True)
    return replace(config, links=Links(DELAY, partitions=(cut,)))


STUDY = Study(
    "vector",
    "Vectors, matrices and immediate dependencies over the members",
    "Sahai et al. 2020; the source has no evaluation: this one is ours",
    list_runs,
    simulate_run,
    findings_from_package("antecede.lab.reproductions.vector"),
)
