"""`antecede compare`: the same messages, several protocols; what the table says and refuses."""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from antecede.cli.experiments.compare.command import add_arguments
from antecede.cli.experiments.compare.configs import build_config, parse_protocols, parse_sizes
from antecede.core.protocols.registry import ENTRIES
from antecede.lab.simulate.config.compatibility import topologies_of
from antecede.lab.simulate.config.file import config_from
from antecede.lab.simulate.config.model import SimulationConfig
from antecede.lab.simulate.delays import Delay
from antecede.lab.simulate.outputs.needless_holds import wait_counts
from antecede.lab.simulate.reference_engine import run_readable
from antecede.lab.simulate.topology import Hierarchy, Mesh, PubSub
from tests.helpers.fixtures import Call, Patch

SHORT = ("--seconds", "1", "--members", "6")

Told = Callable[..., dict[str, dict[str, Any]]]


@pytest.fixture(autouse=True)
def wide(monkeypatch: Patch) -> None:
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture
def text(said: Call) -> Call:
    """Return a function: words of the command -> its output with single blanks."""
    return lambda *given: " ".join(said("compare", *given).split())


@pytest.fixture
def told(said: Call) -> Callable[..., dict[str, dict[str, Any]]]:
    """Return a function: words of the command -> what JSON says of each protocol."""

    def call(*given: object) -> dict[str, dict[str, Any]]:
        found = json.loads(said("compare", *given, "--json"))["protocols"]
        return {one["name"]: one for one in found}

    return call


def cells(text: str, name: str) -> list[str]:
    """Return the cells of a protocol's line."""
    return next(line.split() for line in text.splitlines() if line.startswith(f"{name} "))


def make_config(words: str, name: str = "") -> SimulationConfig:
    """Return the config of a protocol (the first) in a call."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    args = parser.parse_args(words.split())
    (asked,) = parse_protocols([name or args.protocols[0]])
    return build_config(asked, args, parse_sizes(args.members)[0])


# -- the question ----------------------------------------------------------------------------


def test_the_question_of_the_papers() -> None:
    """Evropeytsev et al. 2016, section 3.2: a peer sends every 70 to 90 ms."""
    given = make_config("bss --members 10 --delay 50-250")
    assert given.topology == Mesh(10)
    assert given.links.delay == Delay(0.05, 0.25)
    assert given.workload.interval == Delay(0.07, 0.09)


def test_topologies_are_made_of_the_same_number_of_members() -> None:
    tree = "hierarchical idr --members 7 --topology hierarchy"
    assert make_config(tree).topology == Hierarchy((4,), 3)
    assert make_config(tree, "idr").topology == Mesh(7)
    given = make_config("tv --members 7 --topology pubsub --delay 16-160")
    assert isinstance(given.topology, PubSub)
    assert given.topology.subgroups == (4, 3)
    assert [one.delay for one in given.links.special] == [Delay(0.0016, 0.016)] * 2


def test_figures_count_when_the_group_is_steady() -> None:
    """Evropeytsev et al. 2016: from 1 s on at 50-250 ms; many members send for a shorter time after
    that.
    """
    few, many = (make_config(f"idr --members {n}") for n in (10, 40))
    assert (few.warm_s, few.duration_s, many.warm_s) == (1.0, 5.0, 1.0)
    assert 1.5 <= many.duration_s < 3.0
    short = make_config("idr --seconds 1")
    assert (short.warm_s, short.duration_s) == (0.5, 1.0)


# -- the answer ------------------------------------------------------------------------------


def test_the_legend_says_which_deliveries_waits_and_held_are_of(told: Told, text: Call) -> None:
    one = told("bss", *SHORT)["bss"]
    run = run_readable(config_from(one["config"]), one["runs"][0]["seed"])
    assert one["mean"]["causal.checked"] == run.figures["deliveries"]  # all of them, warm or not
    shown = text("bss", *SHORT)
    assert "mean and p99, of messages sent after the warm-up; " in shown
    assert "held: fraction of deliveries that waited" in shown


def test_every_protocol_sees_the_same_messages_arrive(told: Told) -> None:
    found = told("unordered", "fifo", "bss", "idr", "ds", "ses", *SHORT)
    assert len({one["mean"]["arrivals"] for one in found.values()}) == 1
    names = ("wait_ms.mean", "wait_ms.p99", "causal.held", "held.mean")
    exact = [found[protocol]["mean"] for protocol in ("bss", "idr", "ds", "ses")]
    assert len({tuple(one[name] for name in names) for one in exact}) == 1


def test_what_a_protocol_does_not_promise_is_shown(told: Told) -> None:
    found = told("unordered", "fifo", "sb", "bss", "linear", *SHORT)
    early = {name: one["mean"]["causal.violations"] for name, one in found.items()}
    waits = {name: one["mean"]["causal.needless_holds"] for name, one in found.items()}
    assert early["unordered"] > early["fifo"] > 0
    assert early["sb"] > 0 == early["bss"] == early["linear"]
    assert waits["linear"] > 0 == waits["bss"] == waits["fifo"]
    orders = ["none", "fifo", "replies", "causal", "receipt"]
    assert [one["order"] for one in found.values()] == orders


def test_figures_are_those_of_the_runs(told: Told) -> None:
    found = told("idr", *SHORT, "--seed", "3", "--seeds", "2")["idr"]
    given = config_from(found["config"])
    for seed, run in zip((3, 4), found["runs"], strict=True):
        result, recording = run_readable(given, seed, True)
        seen = wait_counts(recording)
        assert seen is not None
        figures = {**result.figures, **seen.figures()}
        assert run == {"seed": seed, "metrics": figures, "caveats": {}}
    sent = [run["metrics"]["sent"] for run in found["runs"]]
    assert found["mean"]["sent"] == sum(sent) / 2


def test_the_table_says_what_json_says(told: Told, said: Call) -> None:
    mean = told("fifo", *SHORT)["fifo"]["mean"]
    shown = said("compare", "fifo", *SHORT)
    assert cells(shown, "fifo") == [
        "fifo",
        "fifo",
        *(f"{mean[f'peer.{name}_bytes']:.1f}" for name in ("control", "wire", "storage")),
        f"{mean['wait_ms.mean']:.1f}",
        f"{mean['wait_ms.p99']:.0f}",
        f"{100 * mean['causal.held'] / mean['causal.checked']:.1f}",
        f"{100 * mean['causal.violations'] / mean['causal.checked']:.2f}",
        f"{100 * mean['violations.by_receipt'] / mean['violations.checked']:.2f}",
        "0",
        "0",
    ]
    assert "6 peers in a mesh, delay 50-250 ms (normal, clipped), channels reorder" in shown
    assert "one every 70-90 ms (normal, clipped)" in " ".join(shown.split())


@pytest.mark.parametrize("kind", ["mesh", "hierarchy", "pubsub"])
def test_every_protocol_of_the_registry_can_be_asked_for(kind: str, told: Told) -> None:
    names = [name for name in ENTRIES if kind in topologies_of(name)]
    found = told(*names, "--topology", kind, "--members", "4", "--seconds", "0.5")
    assert list(found) == names
    assert all(one["mean"]["promise_violations"] == 0 for one in found.values())


def test_a_hierarchy_has_a_line_for_each_role(said: Call) -> None:
    shown = said("compare", "hierarchical", "idr", "--topology", "hierarchy", *SHORT)
    lines = shown.splitlines()
    roles = [k for k, line in enumerate(lines) if line.startswith(("  internal", "  external"))]
    assert len(roles) == 2
    assert lines[roles[0] - 2].startswith("hierarchical")
    assert lines[roles[0] - 1].startswith("  ±")  # a second of six members tells little
    assert any(line.startswith("idr  flat: as many peers") for line in lines)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("sb --reply-fraction 0", "it promises no order"),
        ("bss/as-published", "as published, with a known defect"),
        ("bss --loss 0.05", r"\d+ deliveries never happened: lost messages are not recover"),
        ("matrix --loss 0.05", r"are not recovered \(matrix/recovering does\)"),
        ("bss/as-published", r"[\d,]+ deliveries never happened: messages are held forever"),
        ("bss sb", "50% of them replies"),
        ("bss --seeds 2", "means of 2 seeds"),
        ("bss --fifo", "FIFO channels"),
        ("linear", "intervals are too narrow"),
        (
            "bss --rate 0.9 --members 1",
            r"1 peer in a mesh, delay 50-250 ms \(normal, clipped\), ch",
        ),
        ("bss --rate 0.9 --members 1", ": 1 message within 1 s bytes"),
        ("tv --topology pubsub --members 1", "1 peer in 1 subgroup, 10 topics, delay"),
    ],
)
def test_remarks(arguments: str, says: str, text: Call) -> None:
    assert re.search(says, text(*SHORT, *arguments.split()))


def test_a_broken_promise_is_told(told: Told, said: Call) -> None:
    """The Schiper-Eggli-Sandoz rules as printed in Sahai et al. 2020."""
    violations = told("ses/as-published", *SHORT)["ses/as-published"]["mean"]["promise_violations"]
    shown = said("compare", "ses/as-published", *SHORT)
    assert f"; {violations:.0f} of" in shown
    assert violations > 0


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_fits_the_terminal(width: int, monkeypatch: Patch, said: Call) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    names = ("bss/differences", "idr", "linear-physical", "sb", "ses")
    assert max(map(len, said("compare", *names, *SHORT).splitlines())) <= width


# -- sweeps, files, protocols of one's own ---------------------------------------------------

OWN = """
from antecede.core.protocols.basic.fifo import Fifo

class Mine(Fifo):
    def __init__(self, me, members, *, slack: int = 0):
        super().__init__(me, members)
        self.slack = slack
"""


def test_a_sweep_has_a_line_a_size(said: Call) -> None:
    shown = said("compare", "fifo", "bss", "--members", "3,5", "--seconds", "1")
    assert "3 and 5 peers in a mesh" in shown
    sizes = [line.split()[:2] for line in shown.splitlines() if line.startswith(("fifo ", "bss "))]
    assert sizes == [["fifo", "3"], ["bss", "3"], ["fifo", "5"], ["bss", "5"]]


def test_the_file_has_what_json_has_and_is_not_replaced_unasked(
    tmp_path: Path, said: Call, refused: Call
) -> None:
    out = tmp_path / "found.csv"
    call = ("compare", "fifo", "--members", "3,4", "--seconds", "1", "--output-csv", out, "--json")
    plain = json.loads(said(*call))["protocols"]
    before = out.read_bytes()
    rows = list(csv.DictReader(before.decode().splitlines()))
    assert [(row["protocol"], row["members"]) for row in rows] == [("fifo", "3"), ("fifo", "4")]
    for row, one in zip(rows, plain, strict=True):
        for name, value in one["measures"]["peer"].items():
            for cell, part in ((name, "value"), (f"{name}_ci95", "ci95")):
                assert row[cell] == ("" if value[part] is None else str(value[part]))
        assert float(row["violation_percent"]) > 0
    assert "exists" in refused(*call)
    assert out.read_bytes() == before


def test_markdown_is_one_table_with_intervals(said: Call) -> None:
    words = ("fifo", "hierarchical", "--topology", "hierarchy", "--markdown", *SHORT)
    lines = [line for line in said("compare", *words).splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in lines}) == 1
    names = [line.split("|")[1].strip() for line in lines[2:]]
    assert names == ["fifo", "hierarchical", "internal", "external"]
    assert " ± " in lines[2]


def test_a_protocol_of_ones_own_takes_part_with_its_options(
    tmp_path: Path, told: Told, refused: Call
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(OWN, encoding="utf-8")
    found = told("fifo", f"{path}:Mine", "slack=3", *SHORT)
    own = found[f"{path}:Mine slack=3"]
    assert own["config"]["protocol"]["options"] == {"slack": 3}
    assert own["mean"] == found["fifo"]["mean"]
    call = ("compare", f"{path}:Mine", *SHORT)
    assert "a whole number is allowed" in refused(*call, "slack=much")
    assert "is input of this command" in refused(*call, "--output-csv", path, "--force")
    assert path.read_text(encoding="utf-8") == OWN


NO_WIRE = """
from antecede.errors import LocalError
from antecede.core.protocols.vector.bss import Bss


class NoWire(Bss):
    def encode(self, message):
        raise LocalError("NoWire has no wire encoding")
"""


def test_control_bytes_are_shown_without_a_wire_format(
    tmp_path: Path, told: Told, said: Call
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(NO_WIRE, encoding="utf-8")
    name = f"{path}:NoWire"
    found = told("bss", name, *SHORT)
    mean, whole = found[name]["mean"], found["bss"]["mean"]
    assert mean["peer.control_bytes"] == whole["peer.control_bytes"] > 0
    assert "peer.wire_bytes" in whole.keys() - mean.keys()
    control = f"{mean['peer.control_bytes']:.1f}"
    assert control in cells(said("compare", name, *SHORT), name)


def test_intervals_come_from_the_seeds_or_from_batches(told: Told) -> None:
    several = told("linear", *SHORT, "--seeds", "3")["linear"]
    waits = [run["metrics"]["wait_ms.mean"] for run in several["runs"]]
    half = 4.303 * statistics.stdev(waits) / math.sqrt(3)
    found = several["measures"]["peer"]["wait_mean_ms"]
    assert found == {"value": pytest.approx(statistics.fmean(waits)), "ci95": pytest.approx(half)}
    long = told("linear", "--members", "6", "--seconds", "8")["linear"]
    single = long["measures"]["peer"]
    assert 0 < single["wait_mean_ms"]["ci95"] < half * 10
    assert single["promise_violation_percent"]["ci95"] is None


# -- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("bss --members 0", "--members 0: expected 1 or more"),
        ("bss --members 3,x", "--members 3,x: expected whole numbers"),
        ("r=10 bss", "r=10: expected a protocol before its options"),
        ("linear heartbeat=1", "linear has no option 'heartbeat'; options are: "),
        ("bss --output-csv /nowhere/x.csv", "the folder does not exist"),
        ("bss --output-csv found.parquet", "--output-csv: expected a file name that ends in .csv"),
        ("bss --delay fast", "--delay: invalid delay 'fast'; write, for example,"),
        ("bss --accuracy soon", "--accuracy: invalid delay 'soon'"),
        ("bss --seeds 0", "--seeds 0: expected 1 or more"),
        ("bss --seed -1", "--seed -1: expected 0 or more"),
        ("bss --seconds 1e12", "--seconds: 1000000000000.0 s; expected more than 0 and at most"),
        ("bss --loss 1.5", "--loss: 1.5; expected a probability below 1"),
        ("sb --reply-fraction 2", "--reply-fraction: 2.0; expected a probability"),
        ("bss --rate 0", "--rate 0.0: expected messages per second above 0"),
        ("own/my.py:Mine", "file not found"),
        (
            "bss --rate 1e300",
            "--rate 1e+300: expected at most one message per microsecond",
        ),
        ("bss --rate 1e-9", "--rate 1e-09: one message in 1e+09 s is too few"),
        ("bss --seconds nan", "--seconds nan: expected a number above 0"),
        ("tv", "tv needs --topology 'pubsub'; protocols for 'mesh': unordered"),
        ("bss --topology pubsub", "bss needs --topology 'mesh'; protocols for 'pubsub'"),
        ("hierarchical --topology hierarchy --members 1", "expected 2 or more for a hierarchy"),
        ("physical --delay 0-50", "physical: physical time alone cannot order members"),
        ("bss --members 100000", "bss: member numbers are 0 to 65535"),
    ],
)
def test_wrong_questions_are_refused(arguments: str, says: str, refused: Call) -> None:
    assert says in refused("compare", *arguments.split())
