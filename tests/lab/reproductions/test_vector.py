"""The study of Sahai et al. 2020: its grid, and what its quick runs show."""

from __future__ import annotations

from collections import defaultdict

import pytest

from antecede.lab.reproductions.framework.results import Results
from antecede.lab.reproductions.framework.study import check_runs
from antecede.lab.reproductions.vector.study import BROADCAST, FANOUTS, LOSS_PROTOCOLS, SIZES, STUDY
from antecede.lab.simulate.run import simulate
from antecede.lab.simulate.topology import Hierarchy, Mesh
from tests.lab.reproductions.conftest import Carried, mean

FLAT = [protocol for protocol in BROADCAST if protocol != "hierarchical"]


@pytest.mark.parametrize("quick", [True, False])
def test_protocols_and_sizes(quick: bool) -> None:
    runs = check_runs(STUDY.runs(quick))
    for kind, name, values in (
        ("members", "members", SIZES),
        ("addressees", "addressees", FANOUTS),
    ):
        there = {run.parameters[name] for run in runs if run.kind == kind}
        assert len(there) >= 3
        assert quick or there == set(values)
    assert {run.parameters["protocol"] for run in runs if run.kind == "members"} == set(BROADCAST)
    assert {run.parameters["protocol"] for run in runs if run.kind == "loss"} == set(LOSS_PROTOCOLS)
    for run in runs:
        given = run.load_config()
        hierarchical = run.parameters["protocol"] == "hierarchical"
        assert isinstance(given.topology, Hierarchy if hierarchical else Mesh)
        assert len(given.topology.senders()) == run.parameters.get(
            "members", 16 if run.kind == "addressees" else 10
        )


def test_vectors_grow_with_the_members_and_matrices_with_their_square(carried_out: Carried) -> None:
    """Sahai et al. 2020: 4 bytes a member; a matrix has the number of members squared."""
    results = carried_out("vector").results
    for members in results.list_parameter_values("members", kind="members"):
        vector, matrix = (
            mean(results, "peer.control_bytes", kind="members", protocol=name, members=members)
            for name in ("bss", "sent")
        )
        assert vector == 4 * members
        assert matrix == pytest.approx(4 * members**2, rel=0.2)


def test_the_same_arrivals_give_the_same_waits(carried_out: Carried) -> None:
    done = carried_out("vector")
    for name in ("wait_ms.mean", "wait_ms.p50", "wait_ms.p99", "wait_ms.max", "deliveries"):
        found = defaultdict(list)
        for run in done.results.find_runs(kind="members"):
            if run.parameters["protocol"] in FLAT:
                found[run.parameters["members"], run.seed].append(
                    done.results.get_metrics(run)[name]
                )
        for values in found.values():
            assert len(values) == len(FLAT)
            assert values == pytest.approx([values[0]] * len(values), rel=1e-9)
    section = next(s for s in done.findings.sections if s.title.startswith("Waits"))
    assert [claim.holds for claim in section.claims] == [True]


def test_messages_to_fewer_carry_no_more(carried_out: Carried) -> None:
    results = carried_out("vector").results
    for protocol in ("ses", "sent"):
        line = results.line(
            "", "peer.control_bytes", "addressees", kind="addressees", protocol=protocol
        )
        assert list(line.x) == [1.0, 4.0, 15.0]
        assert line.y[0] <= line.y[-1]


def lost_by(results: Results, protocol: str, copies: str, figure: str) -> float:
    return sum(results.values(figure, kind="loss", protocol=protocol, copies=copies))


def test_what_one_lost_message_does(carried_out: Carried) -> None:
    results = carried_out("vector").results
    for copies, lost in (("one", 1), ("all", 9)):
        never = {
            protocol: lost_by(results, protocol, copies, "undelivered")
            for protocol in LOSS_PROTOCOLS
        }
        gone = {protocol: lost_by(results, protocol, copies, "lost") for protocol in LOSS_PROTOCOLS}
        del gone["hierarchical"]  # whose external peer sends to fewer
        assert set(gone.values()) == {lost}
        assert never["unordered"] == lost
        assert never["matrix/recovering"] == 0
        assert never["unordered"] < never["fifo"] <= never["bss"]
        assert never["bss"] == never["idr"] == never["ses"] == never["sent"]
    assert lost_by(results, "fifo", "one", "undelivered") < lost_by(
        results, "bss", "one", "undelivered"
    )


def test_losses_break_no_promise(carried_out: Carried) -> None:
    results = carried_out("vector").results
    assert not sum(results.values("promise_violations", kind="loss"))


def test_nothing_else_is_lost() -> None:
    run = next(
        r
        for r in STUDY.runs(True)
        if r.kind == "loss" and r.parameters == {"protocol": "bss", "copies": "one"}
    )
    given = run.load_config()
    (cut,) = given.links.partitions
    assert cut.lost
    assert cut.start_s >= 1
    assert cut.end_s - cut.start_s == pytest.approx(1e-6)
    assert simulate(given, run.seed).figures["lost"] == 1


def test_every_protocol_that_loses_has_its_lines(carried_out: Carried) -> None:
    table = carried_out("vector").findings.sections[-1].table
    assert sorted(line[1] for line in table) == sorted((*LOSS_PROTOCOLS, *LOSS_PROTOCOLS))
