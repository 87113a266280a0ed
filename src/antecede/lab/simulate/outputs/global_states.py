"""Global states recorded during a run, judged by the oracle.

Every member with an application has an end of a snapshot algorithm below its protocol. A message
counts as sent when the application sends it, as received when its first copy arrives. Markers
travel the network like notes. A recorded local state is a number of the member's rows in the run's
trace, including the row of the recording. Causality is that of the application's messages.

`antecede.core.oracle.cuts` judges from rows alone. A message that arrives nowhere is under way in
no state. Collecting the parts of a snapshot is not simulated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from antecede.core.clocks.encoding import varint_size
from antecede.core.global_snapshots import (
    ALGORITHMS,
    Algorithm,
    Complete,
    Content,
    Effect,
    Marker,
    Record,
    Tell,
)
from antecede.core.oracle import DELIVER, EVENT, RECEIVE, SEND, Channel, Cuts, Event, Witness
from antecede.errors import RemoteError
from antecede.lab.simulate.config.model import SnapshotPlan
from antecede.lab.simulate.delays import US
from antecede.lab.simulate.outputs.recording import ARRIVED, RECORDED, SENT, Recording, StateMark
from antecede.lab.simulate.topology import Topology, list_names


class RecordedState(NamedTuple):
    """One snapshot of a run, members by the names that they have in the trace."""

    number: int
    initiators: tuple[str, ...]  # who began it, and did not merely hear of it
    started_s: float
    completed_s: float | None  # when the last member knew its part; None: the run ended before
    cut: Mapping[str, int]
    """Member -> which of its rows says that it recorded its state, from 1: all up to there is
    inside."""
    channels: Mapping[Channel, tuple[str, ...]]
    """Messages recorded as under way; empty channels are left out."""
    markers: int  # copies of markers that were sent for it
    marker_bytes: int
    rejected_markers: int
    """Markers that arrived out of order, or after a lost one."""
    unrecorded: tuple[str, ...]  # members that never recorded a state for it
    waiting: Mapping[str, tuple[str, ...]]
    """Member -> from whom something lacked at the end of the run."""
    contradictions: tuple[Witness, ...] | None
    """What contradicts it: states and channels, or states alone where channels were not all
    known; None: some member recorded none, and there is nothing to judge."""

    @property
    def is_complete(self) -> bool:
        """Every member knew its part, channels included."""
        return self.completed_s is not None


class _Snapshot:
    """Notes on a snapshot during the run."""

    def __init__(self, started_us: int) -> None:
        self.started_us, self.completed_us = started_us, started_us
        self.initiators: list[str] = []
        self.recorded: set[str] = set()
        self.channels: dict[Channel, tuple[str, ...]] = {}
        self.completed: set[str] = set()
        self.markers = self.marker_bytes = self.rejected_markers = 0


class SnapshotRecorder:
    """The members' ends of a snapshot algorithm in one run.

    The caller sends returned `Tell` effects before anything else.
    """

    def __init__(self, topology: Topology, plan: SnapshotPlan, run: Recording) -> None:
        self.plan, self.run = plan, run
        names = list_names(topology)
        self.names = {at: names[at] for at in topology.senders()}
        self.address = {name: at for at, name in self.names.items()}
        make = ALGORITHMS[plan.algorithm]
        self.algorithms: dict[int, Algorithm] = {
            at: make(name, self.address) for at, name in self.names.items()
        }
        self.carries_stamps = make.stamped
        self.snapshots: dict[int, _Snapshot] = {}
        self.stamps: dict[int, int] = {}  # message -> what it carries
        self.stamp_bytes = 0

    def start(self, now_us: int, number: int) -> Iterator[tuple[int, Sequence[Tell]]]:
        """Yield address and markers of each initiator that has not heard of the snapshot yet."""
        for at in self.plan.by:
            end, effects = self.algorithms[at], list[Effect]()
            if end.number < number:
                self._get_snapshot(number, now_us).initiators.append(self.names[at])
            while end.number < number:  # one that never heard of an earlier one records it too
                effects += end.begin()
            yield at, self._apply_effects(now_us, at, effects)

    def on_send(self, address: int, message: int, targets: Sequence[int]) -> None:
        """Take note that a message goes to these addresses."""
        stamps = [self.algorithms[address].send(self.names[target]) for target in targets]
        self.stamps[message] = max(stamps, default=0)
        if self.carries_stamps:
            self.stamp_bytes += len(targets) * varint_size(self.stamps[message])

    def on_arrive(self, now_us: int, address: int, message: int) -> Sequence[Tell]:
        """Take note of the first copy of a message, before the run has a row of it."""
        sender = self.names[self.run.sender[message]]
        try:
            effects = self.algorithms[address].arrive(sender, self.stamps[message], f"m{message}")
        except RemoteError:  # it is further ahead than can be
            self._get_snapshot(self.stamps[message], now_us).rejected_markers += 1
            return ()
        return self._apply_effects(now_us, address, effects)

    def on_marker(self, now_us: int, address: int, source: int, marker: Marker) -> Sequence[Tell]:
        """Take in a marker; one that its receiver cannot take is counted."""
        try:
            effects = self.algorithms[address].marker(self.names[source], marker)
        except RemoteError:
            self._get_snapshot(marker.number, now_us).rejected_markers += 1
            return ()
        return self._apply_effects(now_us, address, effects)

    def _get_snapshot(self, number: int, now_us: int) -> _Snapshot:
        return self.snapshots.setdefault(number, _Snapshot(now_us))

    def _apply_effects(self, now_us: int, address: int, effects: Sequence[Effect]) -> list[Tell]:
        name, tells = self.names[address], list[Tell]()
        for effect in effects:
            if isinstance(effect, Tell):
                tells.append(effect)
                of = self._get_snapshot(effect.marker.number, now_us)
                of.markers += 1
                of.marker_bytes += self._measure_marker(effect.marker)
                continue
            of = self._get_snapshot(effect.number, now_us)
            if isinstance(effect, Record):
                of.recorded.add(name)
                self.run.marks.append(StateMark(len(self.run), now_us, address, effect.number))
            elif isinstance(effect, Content):
                kept = tuple(map(str, effect.messages))
                if kept:
                    of.channels[Channel(effect.source, name)] = kept
            elif isinstance(effect, Complete):
                of.completed.add(name)
                of.completed_us = now_us
        return tells

    def _measure_marker(self, marker: Marker) -> int:
        """Return the bytes of a marker: its kind, its number and, where it counts, the count."""
        return (
            1
            + varint_size(marker.number)
            + (varint_size(marker.sent) if self.carries_stamps else 0)
        )

    def check_states(self) -> list[RecordedState]:
        """Return every snapshot of the run, judged."""
        if not self.snapshots:
            return []
        cuts, addressed = (
            Cuts(_make_events(self.run, self.names)),
            _collect_arrivals(self.run, self.names),
        )
        positions = self._find_positions()
        return [
            self._check_snapshot(k, of, positions.get(k, {}), cuts, addressed)
            for k, of in sorted(self.snapshots.items())
        ]

    def _check_snapshot(
        self,
        number: int,
        snapshot: _Snapshot,
        cut: Mapping[str, int],
        cuts: Cuts,
        addressed: Mapping[str, tuple[str, ...]],
    ) -> RecordedState:
        complete = len(snapshot.completed) == len(self.algorithms)
        recorded = len(snapshot.recorded) == len(self.algorithms)
        wrong = cuts.wrongs(cut, snapshot.channels if complete else None, addressed)
        open_at = {
            name: end.open_channels(number)
            for at, end in self.algorithms.items()
            if (name := self.names[at]) in snapshot.recorded and name not in snapshot.completed
        }
        return RecordedState(
            number,
            tuple(snapshot.initiators),
            snapshot.started_us / US,
            snapshot.completed_us / US if complete else None,
            cut,
            dict(sorted(snapshot.channels.items())),
            snapshot.markers,
            snapshot.marker_bytes,
            snapshot.rejected_markers,
            tuple(name for name in self.address if name not in snapshot.recorded),
            open_at,
            tuple(wrong) if recorded else None,
        )

    def _find_positions(self) -> dict[int, dict[str, int]]:
        """Return of each snapshot which row of each member is the last inside."""
        found: dict[int, dict[str, int]] = {}
        rows = dict.fromkeys(self.names, 0)
        for event in self.run.rows():
            rows[event.member] += 1
            if event.kind == RECORDED:
                of = found.setdefault(event.message, {})
                of[self.names[event.member]] = rows[event.member]
        return found


def compute_metrics(states: Sequence[RecordedState], stamp_bytes: int) -> dict[str, float]:
    """Return the figures of a run's snapshots; see `outputs.result`."""
    complete = [one for one in states if one.completed_s is not None]
    found: dict[str, float] = {
        "snapshots.started": len(states),
        "snapshots.completed": len(complete),
        "snapshots.inconsistent": sum(bool(one.contradictions) for one in states),
        "snapshots.markers": sum(one.markers for one in states),
        "snapshots.marker_bytes": sum(one.marker_bytes for one in states),
        "snapshots.stamp_bytes": stamp_bytes,
    }
    if complete:
        spans = [one.completed_s - one.started_s for one in complete if one.completed_s is not None]
        kept = [sum(map(len, one.channels.values())) for one in complete]
        found["snapshots.duration_s"] = sum(spans) / len(spans)
        found["snapshots.in_channels"] = sum(kept) / len(kept)
    return found


def snapshot_name(number: int) -> str:
    """Return what the rows of a trace say where members recorded their states for a snapshot."""
    return f"snapshot {number}"


def _make_events(run: Recording, names: Mapping[int, str]) -> Iterator[Event]:
    kinds = {SENT: SEND, ARRIVED: RECEIVE, RECORDED: EVENT}
    for event in run.rows():
        kind = kinds.get(event.kind, DELIVER)
        yield Event(kind=kind, id=f"m{event.message}", member=names[event.member])


def _collect_arrivals(run: Recording, names: Mapping[int, str]) -> dict[str, tuple[str, ...]]:
    """Return of every message where it arrived at all."""
    found: dict[int, list[str]] = {}
    for event in run.events():
        if event.kind == SENT:
            found.setdefault(event.message, [])
        elif event.kind == ARRIVED:
            found.setdefault(event.message, []).append(names[event.member])
    return {f"m{message}": tuple(there) for message, there in found.items()}
