"""The study of a hundred thousand peers: its grid, and its claim at small sizes."""

from __future__ import annotations

import pyarrow as pa

from antecede.lab.reproductions.framework.execute import run_locally
from antecede.lab.reproductions.framework.results import Results
from antecede.lab.reproductions.framework.study import check_runs
from antecede.lab.reproductions.scale.study import STUDY
from tests.lab.reproductions.conftest import mean


def test_it_ends_at_a_hundred_thousand_peers_in_a_thousand_groups() -> None:
    runs = check_runs(STUDY.runs(False))
    largest = max(runs, key=lambda run: run.parameters["groups"])
    assert (largest.parameters["groups"], largest.parameters["peers"]) == (1000, 100_000)
    assert len(largest.load_config().topology.senders()) == 100_000
    assert largest.load_config().workload.total_hz == 1000


def test_inside_groups_overhead_follows_the_density() -> None:
    """Evropeytsev et al. 2016, Scalability Analysis: the same total rate, three times the peers,
    the same overhead.
    """
    runs = [run for run in check_runs(STUDY.runs(True)) if run.parameters["peers"] in (1000, 3000)]
    table = pa.concat_tables(list(run_locally(STUDY, runs)))
    results = Results(table, runs)
    low, high = (
        mean(results, "internal.control_bytes", groups=groups, size=100) for groups in (10, 30)
    )
    assert abs(high / low - 1) < 0.1
    found = STUDY.findings(results, True)
    assert "Of all deliveries: causal violations: 0." in found.finding
    assert [section.title for section in found.sections][-1] == "Cost of the simulation"
    assert len(found.sections[-1].table) == 3
