"""The reference engine: every protocol runs, nothing comes too early, the same run every time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from antecede.core.protocols.base import Relation
from antecede.core.protocols.registry import ENTRIES
from antecede.errors import ConfigError, InputError
from antecede.lab.simulate.config.compatibility import topologies_of
from antecede.lab.simulate.config.model import Links, Partition, SimulationConfig, Workload
from antecede.lab.simulate.delays import US, Delay
from antecede.lab.simulate.outputs.counters import IdrBaseline
from antecede.lab.simulate.outputs.violations import check_recording, find_violations
from antecede.lab.simulate.reference_engine import run_readable
from antecede.lab.simulate.schedule import list_active_senders
from antecede.lab.simulate.topology import Hierarchy, Mesh
from tests.lab.simulate.small_configs import TALK, TOPOLOGIES, config_of


def variants() -> list[tuple[str, str]]:
    return [
        (entry.name, variant)
        for entry in ENTRIES.values()
        for variant in ("", *entry.variants)
        if variant not in entry.defective
    ]


@pytest.mark.parametrize(("name", "variant"), variants())
def test_every_protocol_keeps_its_promise(name: str, variant: str) -> None:
    workload = replace(config_of(name).workload, reply_fraction=0.6)
    config = config_of(name, variant=variant, workload=workload)
    result, run = run_readable(config, 3, record=True)
    figures = result.figures
    assert figures["sent"] == len(run.sender) > 20
    assert figures["promise_violations"] == 0
    owed = sum(len(run.receivers(message)) for message in range(len(run.sender)))
    if run.relation is Relation.TOTAL:  # a sender has its own in their turn
        owed += len(run.sender)
    assert figures["deliveries"] + figures.get("undelivered", 0) == owed
    if "undelivered" in figures:  # it was given up
        assert (name, variant) in {("sb", "refusing"), ("sb", "dropping")}
    else:
        assert figures["held_at_end"] == 0


@pytest.mark.parametrize("name", list(ENTRIES))
def test_the_same_run_every_time_and_another_for_another_seed(name: str) -> None:
    config = config_of(name)
    first, events = run_readable(config, 5, record=True)
    again, others = run_readable(config, 5, record=True)
    assert first == again
    assert list(events.events()) == list(others.events())
    assert events.transmissions == others.transmissions
    assert run_readable(config, 6).figures != first.figures


@pytest.mark.parametrize("name", list(ENTRIES))
def test_topologies_that_a_protocol_cannot_run_on(name: str) -> None:
    for kind, topology in TOPOLOGIES.items():
        if kind not in topologies_of(name):
            with pytest.raises(ConfigError, match=r"protocol\.name: .* needs topology\.kind = "):
                run_readable(config_of(name, topology=topology, workload=TALK), 1)


def test_clocks_too_far_off_for_physical_time() -> None:
    """Tsuneizumi et al., section 4.2: without linear time the least delay must exceed the clocks'
    difference.
    """
    with pytest.raises(ConfigError, match=r"protocol\.options: physical.*use linear-physical"):
        run_readable(config_of("physical", links=Links(Delay(0.0, 0.2))), 1)


DEFECTS = [
    ("hierarchical", "listing6", "promise_violations"),
    ("hierarchical", "listing12", "promise_violations"),
    ("sb", "algorithm-1", "promise_violations"),
    ("ses", "as-published", "promise_violations"),
    ("linear", "equal-times", "promise_violations"),
    ("bss", "as-published", "held_at_end"),
    ("linear", "dseq", "held_at_end"),
]


@pytest.mark.parametrize(("name", "variant", "figure"), DEFECTS)
def test_a_published_defect_is_seen(name: str, variant: str, figure: str) -> None:
    links = Links(Delay(0.001, 0.5, "uniform"))
    config = config_of(name, links=links, duration_s=3.0)
    workload = replace(config.workload, reply_fraction=0.7, fanout=1 if name == "ses" else None)
    config = replace(config, workload=workload)
    assert run_readable(config, 1).figures[figure] == 0
    assert run_readable(replace(config, variant=variant), 1).figures[figure] > 0


def test_no_order_is_judged_by_what_it_lacks() -> None:
    result, run = run_readable(config_of("unordered"), 1, record=True)
    assert result.figures["promise_violations"] == 0
    early = result.figures["violations.by_delivery"]
    assert early == find_violations(run, Relation.BY_DELIVERY).violations > 0
    # What had arrived had been delivered here, so the two causalities are one.
    assert result.figures["violations.by_receipt"] == early
    assert result.figures["wait_ms.max"] == 0


def test_causes_that_are_only_looked_for_in_part_are_said_to_be() -> None:
    given = SimulationConfig(Mesh(4), "unordered", duration_s=15.0)
    result, run = run_readable(given, 1, record=True)
    assert not result.caveats
    _, caveats = check_recording(run, max_messages=50)
    assert set(caveats) == {"promise_violations", "violations.by_delivery", "violations.by_receipt"}
    assert "were checked as causes" in caveats["violations.by_delivery"]


# -- what is counted --------------------------------------------------------------------------


def test_figures_of_two_peers_by_hand() -> None:
    workload = Workload("random", messages=2)
    links = Links(Delay(0.1, 0.1, "constant"))
    config = SimulationConfig(
        Mesh(2), "bss", links=links, workload=workload, duration_s=1, sample_s=0.5
    )
    result, run = run_readable(config, 1, record=True)
    figures = result.figures
    assert (figures["sent"], figures["arrivals"], figures["deliveries"]) == (2, 2, 2)
    assert figures["wait_ms.max"] == figures["held.mean"] == 0
    sizes = [one.control_bytes for one in run.transmissions]
    assert figures["peer.control_bytes"] == sum(sizes) / 2
    assert result.series["time_s"] == [0.0, 0.5]
    times = [(one.time_us, one.kind) for one in run.events()]
    sent = [time_us for time_us, kind in times if kind == 0]
    assert sorted(time_us for time_us, kind in times if kind) == sorted(
        [at + 100_000 for at in sent] * 2
    )


def test_only_messages_after_the_warm_up_count() -> None:
    early, late = (config_of("idr", warm_s=warm_s) for warm_s in (0.0, 1.0))
    (whole, run), (part, again) = (run_readable(one, 2, record=True) for one in (early, late))
    assert list(run.events()) == list(again.events())
    sizes = [one.control_bytes for one in run.transmissions]
    counted = [one.control_bytes for one in run.transmissions if one.time_us >= US]
    assert whole.figures["peer.control_bytes"] == sum(sizes) / len(sizes)
    assert part.figures["peer.control_bytes"] == sum(counted) / len(counted)
    assert part.series["time_s"][0] == 1.0


def test_bytes_of_a_hierarchy_are_counted_where_000_counts_them() -> None:
    config = config_of("hierarchical", warm_s=0.0)
    result, run = run_readable(config, 1, record=True)
    topology = config.topology
    inside, outside = [], []
    for one in run.transmissions:
        source, target = topology.role(one.source), topology.role(one.targets[0])
        if source == "super" and target == "internal":
            inside.append(one.control_bytes)
        elif source != "internal":
            outside.append(one.control_bytes)
    figures = result.figures
    assert figures["internal.control_bytes"] == sum(inside) / len(inside)
    assert figures["external.control_bytes"] == sum(outside) / len(outside)
    assert len(inside) == 2 * figures["sent"]
    assert len(outside) == figures["sent"]
    assert figures["internal.entropy_bytes"] <= figures["internal.wire_bytes"]
    assert figures["tt.max"] > 0


def test_lemma_3_of_000_in_every_vector_that_peers_make() -> None:
    figures = run_readable(config_of("hierarchical", duration_s=3.0), 4).figures
    assert (figures["lemma3.missing"], figures["lemma3.extra"]) == (0, 0)
    figures = run_readable(config_of("hierarchical", variant="listing6"), 4).figures
    assert figures["lemma3.missing"] > 0


def test_the_idr_shadow_is_idr() -> None:
    config = config_of("idr", topology=Mesh(6), warm_s=0.0)
    result, run = run_readable(config, 2, record=True)
    shadow = IdrBaseline(range(6))
    for _, kind, member, message in run.events():
        if kind == 0:
            shadow.on_send(member, message, True)
        elif kind == 2:
            shadow.on_deliver(member, message)
    found = shadow.sizes.compute_metrics("peer")
    assert found == {name: result.figures[name] for name in found}


def test_passive_peers_are_taken_from_every_role_in_proportion() -> None:
    topology = Hierarchy((4, 8), 12)
    speaking = list_active_senders(topology, 12).tolist()
    by_role = [
        sum(topology.role(at) == role for at in speaking) for role in ("internal", "external")
    ]
    assert by_role == [6, 6]
    config = config_of("hierarchical", topology=topology, workload=replace(TALK, silent=12))
    result, run = run_readable(config, 1, record=True)
    assert set(run.sender) <= set(speaking)
    assert result.figures["deliveries"] == 23 * result.figures["sent"]


# -- the network ------------------------------------------------------------------------------

LOSSY = Links(Delay(0.02, 0.1, "uniform"), loss=0.1)
RECOVERING = [("linear", "recovery"), ("linear-physical", "recovery"), ("matrix", "recovering")]


def test_loss_without_recovery_leaves_messages_held() -> None:
    figures = run_readable(config_of("bss", links=LOSSY), 1).figures
    assert figures["lost"] > 0
    assert figures["held_at_end"] > 0
    assert figures["promise_violations"] == 0


@pytest.mark.parametrize(("name", "variant"), RECOVERING)
def test_loss_with_recovery_leaves_none(name: str, variant: str) -> None:
    figures = run_readable(config_of(name, variant=variant, links=LOSSY), 1).figures
    assert figures["lost"] > 0
    assert figures["control_messages"] > 0
    assert figures["held_at_end"] == figures.get("undelivered", 0) == 0
    assert figures["promise_violations"] == 0


def test_duplicates_are_delivered_once() -> None:
    links = Links(Delay(0.02, 0.2, "uniform"), duplicate=0.5)
    result, run = run_readable(config_of("idr", links=links), 1, record=True)
    figures = result.figures
    assert figures["duplicates"] > 0
    assert figures["arrivals"] == 3 * figures["sent"] + figures["duplicates"]
    assert figures["deliveries"] == 3 * figures["sent"]
    pairs = [(member, message) for _, member, message in run.deliveries()]
    assert len(pairs) == len(set(pairs))


def test_a_partition_delays_or_loses() -> None:
    cut = Partition(0.4, 0.9, (0,))
    links = Links(Delay(0.02, 0.05, "uniform"), partitions=(cut,))
    result, run = run_readable(config_of("idr", links=links), 1, record=True)
    assert result.figures["held_at_end"] == 0
    crossing = [
        one.time_us
        for one in run.events()
        if one.kind == 1 and (one.member == 0) != (run.sender[one.message] == 0)
    ]
    assert not [at for at in crossing if 0.45 * US < at < 0.92 * US]
    assert [at for at in crossing if 0.92 * US <= at <= 0.95 * US]
    lost = replace(links, partitions=(replace(cut, lost=True),))
    figures = run_readable(config_of("idr", links=lost), 1).figures
    assert figures["lost"] > 0
    assert figures["undelivered"] >= figures["lost"]


def test_a_receiver_without_room_loses_copies() -> None:
    links = Links(Delay(0.02, 0.05, "uniform"), buffer=2, service_s=0.03)
    figures = run_readable(config_of("unordered", links=links), 1).figures
    assert 0 < figures["overruns"] == figures["lost"] < figures["sent"] * 3
    assert figures["arrivals"] == 3 * figures["sent"] - figures["overruns"]
    roomy = run_readable(config_of("unordered", links=replace(links, buffer=None)), 1).figures
    assert roomy["arrivals"] == 3 * roomy["sent"]


def test_fifo_channels_do_not_reorder() -> None:
    for fifo in (True, False):
        links = Links(Delay(0.0, 0.5, "uniform"), fifo=fifo)
        config = config_of("unordered", links=links, workload=replace(TALK, rate_hz=30))
        _, run = run_readable(config, 1, record=True)
        newest: dict[tuple[int, int], int] = {}
        overtaken = 0
        for one in run.events():
            channel = run.sender[one.message], one.member
            if one.kind == 1:
                overtaken += one.message < newest.get(channel, -1)
                newest[channel] = max(one.message, newest.get(channel, -1))
        assert (overtaken == 0) is fifo


# -- a protocol of one's own ------------------------------------------------------------------

OWN = """
from antecede.core.protocols.base import Deliver, Guarantee, Protocol, Relation, Transmit
from typing import NamedTuple


class Message(NamedTuple):
    sender: int
    seq: int
    payload: object


class Eager(Protocol):
    guarantee = Guarantee(Relation.BY_DELIVERY)

    def __init__(self, me, members):
        super().__init__(me, members)
        self.sent = 0

    def send(self, payload, *, now=None, after=()):
        self.sent += 1
        return (Transmit(self.others(), Message(self.me, self.sent, payload)),)

    def receive(self, message, *, now=None):
        return (Deliver(message),)
"""


def test_a_protocol_of_ones_own(tmp_path: Path) -> None:
    """It counts no bytes, so there are no figures of them; that it orders nothing is seen."""
    path = tmp_path / "own.py"
    path.write_text(OWN)
    config = config_of("unordered")
    figures = run_readable(replace(config, protocol=f"{path}:Eager"), 1).figures
    assert figures["deliveries"] == 3 * figures["sent"]
    assert figures["promise_violations"] > 0
    assert "peer.control_bytes" not in figures
    with pytest.raises(ConfigError, match=r"protocol\.name"):
        run_readable(replace(config, protocol=f"{path}:Eager", topology=Hierarchy((2,), 1)), 1)
    with pytest.raises(InputError, match="unknown class or function Lazy"):
        run_readable(replace(config, protocol=f"{path}:Lazy"), 1)


@pytest.mark.parametrize("variant", ["deliver", "drop", ""])
def test_patience_ends_in_a_run_as_it_does_elsewhere(variant: str) -> None:
    options = {"patience_s": 0.5} if variant else {}
    links, work = Links(Delay(0.05, 0.1), loss=0.2), Workload(reply_fraction=0.9)
    lossy = SimulationConfig(Mesh(4), "sb", variant, options, links, work, duration_s=3.0)
    figures = run_readable(lossy, 0).figures
    assert figures["lost"] > 0
    assert (figures["held_at_end"] > 0) == (variant == "")
    assert (figures.get("delivered_incomplete", 0) > 0) == (variant == "deliver")
