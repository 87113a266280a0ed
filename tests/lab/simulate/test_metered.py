"""The meter's pairs of a run: the same from its scenario and from its trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from antecede.errors import ConfigError
from antecede.lab.simulate.config.model import Links, SimulationConfig, Workload
from antecede.lab.simulate.delays import Delay
from antecede.lab.simulate.outputs.timestamps import list_rules, meter_figures
from antecede.lab.simulate.outputs.trace import write_trace
from antecede.lab.simulate.reference_engine import run_readable
from antecede.lab.simulate.topology import Hierarchy, Mesh, PubSub
from antecede.tables.false_causality.measure import measure
from antecede.tables.trace.arrow import read

RULES = ("linear", "linear:published", "arrival", "timestamp")


def test_the_trace_of_a_run_says_the_same(tmp_path: Path) -> None:
    config = SimulationConfig(Mesh(5), "unordered", links=Links(Delay(0.0, 0.3)), duration_s=2.0)
    _, recording = run_readable(config, 3, record=True)
    path = tmp_path / "run.parquet"
    write_trace(recording, path)
    table = measure(read([str(path)]).events, RULES, relation="receipt")
    figures = meter_figures(config, 3, RULES)
    for rule in RULES:
        rows = [row for row in table.to_pylist() if row["rule"] == rule]
        assert len(rows) == 5
        keys = ("causal", "ordered", "false_pairs", "missed_pairs")
        for key, column in zip(
            keys, ("causal", "ordered", "false_pairs", "missed_pairs"), strict=True
        ):
            assert figures[f"false_causality.{rule}.{key}"] == sum(row[column] for row in rows)
    assert figures["false_causality.timestamp.false_pairs"] > 0


def test_rules_of_topics_for_topics_alone() -> None:
    assert not any(
        name.startswith(("tv", "htbc")) for name in list_rules(SimulationConfig(Mesh(3)))
    )
    config = SimulationConfig(
        PubSub((2, 2), 4, 2), "htbc", workload=Workload("random", messages=60, topics=2)
    )
    figures = meter_figures(config, 1)
    assert figures["false_causality.htbc.missed_pairs"] == 0
    assert figures["false_causality.tv-vt.false_pairs"] == 0
    assert figures["false_causality.tv.ordered"] >= figures["false_causality.htbc.ordered"]


def test_hierarchies_have_no_stamps() -> None:
    with pytest.raises(ConfigError, match="topology"):
        meter_figures(SimulationConfig(Hierarchy((2,), 2), "hierarchical"), 1)
