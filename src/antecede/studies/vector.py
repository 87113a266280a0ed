"""001, and ours: what the vector protocols put on messages, and how long they hold them."""

from __future__ import annotations

from collections.abc import Iterator

from antecede.simulate.delays import Delay
from antecede.simulate.scenario import Links, Scenario
from antecede.simulate.topology import Mesh
from antecede.studies.findings import Findings, Plot, Row, Section
from antecede.studies.results import Results
from antecede.studies.study import Figures, Run, Study, simulated, simulation

PROTOCOLS = ("bss", "idr")
MEMBERS = (5, 10, 20)
SEEDS = (1, 2, 3)
DELAY = Delay(0.05, 0.25)


def runs(quick: bool) -> list[Run]:
    """Return a run a protocol, size and seed."""
    return [
        simulation(
            f"{protocol}/{members} members/seed {seed}",
            Scenario(
                Mesh(members),
                protocol,
                links=Links(DELAY),
                duration_s=2.0 if quick else 10.0,
                warm_s=1.0,
            ),
            seed,
            cost_s=0.0005 * members**2 * (2 if quick else 10),
            protocol=protocol,
            members=members,
        )
        for protocol in PROTOCOLS
        for members in MEMBERS
        for seed in (SEEDS[:1] if quick else SEEDS)
    ]


def execute(run: Run) -> Figures:
    """Simulate."""
    return simulated(run)


def findings(results: Results, quick: bool) -> Findings:
    """Return the control information of a message over the members."""
    overhead = "peer.overhead_bytes"
    lines = [
        results.line(protocol, overhead, "members", protocol=protocol) for protocol in PROTOCOLS
    ]
    plot = Plot(
        "overhead",
        "Control information of a message",
        "members",
        "bytes a message",
        [line for line in lines if line.x],
    )
    return Findings(
        study="vector",
        title="Vectors over the members",
        source="001; the source has no evaluation: this one is ours",
        finding="A vector grows with the members; immediate dependencies with the messages.",
        reading=["Bytes are those of the sources' accounting."],
        conditions=[f"Full mesh, delays {DELAY.low_s * 1000:g} to {DELAY.high_s * 1000:g} ms."],
        sections=[Section("Overhead", "Bytes a message.", list(_rows(results, overhead)), [plot])],
    )


def _rows(results: Results, quantity: str) -> Iterator[Row]:
    for protocol in PROTOCOLS:
        for members in MEMBERS:
            spread = results.spread(quantity, protocol=protocol, members=members)
            if spread is not None:
                what = f"{protocol} overhead"
                yield Row("ours", what, f"{members} members", None, spread.mean, "bytes")


STUDY = Study(
    "vector",
    "Vectors over the members",
    "001; the source has no evaluation: this one is ours",
    runs,
    execute,
    findings,
)
