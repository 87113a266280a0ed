"""Recorder of global states of a run, which the oracle checks.

Every member with an application runs a snapshot algorithm below its protocol. A message counts as
sent when the application sends it, and as received when its first copy arrives. Markers travel like
control messages. A recorded local state is a number of the member's rows in the run's trace,
including the row of the recording. Causality is that of the application's messages.

`antecede.core.oracle.cuts` checks rows alone. A message that never arrives is in flight in no
state. Collecting the parts of a snapshot is not simulated.
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
from antecede.core.oracle import DELIVER, EVENT, RECEIVE, SEND, Channel, Cuts, OracleEvent, Witness
from antecede.errors import RemoteError
from antecede.lab.simulate.config.model import SnapshotPlan
from antecede.lab.simulate.delays import US
from antecede.lab.simulate.outputs.recording import ARRIVED, RECORDED, SENT, Recording, StateMark
from antecede.lab.simulate.topology import Topology, list_names


class RecordedState(NamedTuple):
    """A snapshot of a run. Members have the names of the trace."""

    number: int
    initiators: tuple[str, ...]  # Members that started it without receiving a marker
    started_s: float
    completed_s: float | None
    """Time at which the last member knew its part (None: not before the end)."""
    cut: Mapping[str, int]
    """Member -> number of its row that records its state, from 1. All rows up to it are inside."""
    channels: Mapping[Channel, tuple[str, ...]]
    """Messages recorded as in flight, without empty channels."""
    markers: int  # Copies of markers that were sent
    marker_bytes: int
    rejected_markers: int  # Markers that arrived out of order, or after a lost one
    unrecorded: tuple[str, ...]  # Members that recorded no state
    waiting: Mapping[str, tuple[str, ...]]
    """Member -> members whose markers it lacked at the end of the run."""
    contradictions: tuple[Witness, ...] | None
    """Contradictions of states and channels, or of states alone if some channels are unknown. None:
    not checked, as some member recorded no state."""

    @property
    def is_complete(self) -> bool:
        """True if every member knew its part, channels included."""
        return self.completed_s is not None


class _Snapshot:
    def __init__(self, started_us: int) -> None:
        self.started_us, self.completed_us = started_us, started_us
        self.initiators: list[str] = []
        self.recorded: set[str] = set()
        self.channels: dict[Channel, tuple[str, ...]] = {}
        self.completed: set[str] = set()
        self.markers = self.marker_bytes = self.rejected_markers = 0


class SnapshotRecorder:
    """The members' snapshot algorithms. The caller sends returned `Tell` effects first."""

    def __init__(self, topology: Topology, plan: SnapshotPlan, run: Recording) -> None:
        self.plan, self.run = plan, run
        names = list_names(topology)
        self.names = {address: names[address] for address in topology.senders()}
        self.address = {name: address for address, name in self.names.items()}
        make = ALGORITHMS[plan.algorithm]
        self.algorithms: dict[int, Algorithm] = {
            address: make(name, self.address) for address, name in self.names.items()
        }
        self.carries_stamps = make.stamped
        self.snapshots: dict[int, _Snapshot] = {}
        self.stamps: dict[int, int] = {}  # message -> what it carries
        self.stamp_bytes = 0

    def start(self, now_us: int, number: int) -> Iterator[tuple[int, Sequence[Tell]]]:
        """Yield address and markers of each initiator that does not know the snapshot yet."""
        for address in self.plan.by:
            end, effects = self.algorithms[address], list[Effect]()
            if end.number < number:
                self._get_snapshot(number, now_us).initiators.append(self.names[address])
            while end.number < number:  # also record earlier snapshots that it missed
                effects += end.begin()
            yield address, self._apply_effects(now_us, address, effects)

    def on_send(self, address: int, message: int, targets: Sequence[int]) -> None:
        """Record that a message is sent to these addresses."""
        stamps = [self.algorithms[address].send(self.names[target]) for target in targets]
        self.stamps[message] = max(stamps, default=0)
        if self.carries_stamps:
            self.stamp_bytes += len(targets) * varint_size(self.stamps[message])

    def on_arrive(self, now_us: int, address: int, message: int) -> Sequence[Tell]:
        """Record the first copy of a message, before the run has a row for it."""
        sender = self.names[self.run.sender[message]]
        try:
            effects = self.algorithms[address].arrive(sender, self.stamps[message], f"m{message}")
        except RemoteError:  # impossible snapshot number
            self._get_snapshot(self.stamps[message], now_us).rejected_markers += 1
            return ()
        return self._apply_effects(now_us, address, effects)

    def on_marker(self, now_us: int, address: int, source: int, marker: Marker) -> Sequence[Tell]:
        """Receive a marker. A rejected marker is counted."""
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
                snapshot = self._get_snapshot(effect.marker.number, now_us)
                snapshot.markers += 1
                snapshot.marker_bytes += self._measure_marker(effect.marker)
                continue
            snapshot = self._get_snapshot(effect.number, now_us)
            if isinstance(effect, Record):
                snapshot.recorded.add(name)
                self.run.marks.append(StateMark(len(self.run), now_us, address, effect.number))
            elif isinstance(effect, Content):
                kept = tuple(map(str, effect.messages))
                if kept:
                    snapshot.channels[Channel(effect.source, name)] = kept
            elif isinstance(effect, Complete):
                snapshot.completed.add(name)
                snapshot.completed_us = now_us
        return tells

    def _measure_marker(self, marker: Marker) -> int:
        """Return the bytes of a marker: kind, number and, for counting algorithms, the count."""
        return (
            1
            + varint_size(marker.number)
            + (varint_size(marker.sent) if self.carries_stamps else 0)
        )

    def check_states(self) -> list[RecordedState]:
        """Return every snapshot of the run, checked."""
        if not self.snapshots:
            return []
        cuts, addressed = (
            Cuts(_make_events(self.run, self.names)),
            _collect_arrivals(self.run, self.names),
        )
        positions = self._find_positions()
        return [
            self._check_snapshot(k, snapshot, positions.get(k, {}), cuts, addressed)
            for k, snapshot in sorted(self.snapshots.items())
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
            for address, end in self.algorithms.items()
            if (name := self.names[address]) in snapshot.recorded and name not in snapshot.completed
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
        found: dict[int, dict[str, int]] = {}
        rows = dict.fromkeys(self.names, 0)
        for event in self.run.rows():
            rows[event.member] += 1
            if event.kind == RECORDED:
                snapshot = found.setdefault(event.message, {})
                snapshot[self.names[event.member]] = rows[event.member]
        return found


def compute_metrics(states: Sequence[RecordedState], stamp_bytes: int) -> dict[str, float]:
    """Return the metrics of a run's snapshots (see `outputs.result`)."""
    complete = [state for state in states if state.completed_s is not None]
    found: dict[str, float] = {
        "snapshots.started": len(states),
        "snapshots.completed": len(complete),
        "snapshots.inconsistent": sum(bool(state.contradictions) for state in states),
        "snapshots.markers": sum(state.markers for state in states),
        "snapshots.marker_bytes": sum(state.marker_bytes for state in states),
        "snapshots.stamp_bytes": stamp_bytes,
    }
    if complete:
        spans = [
            state.completed_s - state.started_s
            for state in complete
            if state.completed_s is not None
        ]
        kept = [sum(map(len, state.channels.values())) for state in complete]
        found["snapshots.duration_s"] = sum(spans) / len(spans)
        found["snapshots.in_channels"] = sum(kept) / len(kept)
    return found


def snapshot_name(number: int) -> str:
    """Return the text of trace rows at which members recorded their states."""
    return f"snapshot {number}"


def _make_events(run: Recording, names: Mapping[int, str]) -> Iterator[OracleEvent]:
    kinds = {SENT: SEND, ARRIVED: RECEIVE, RECORDED: EVENT}
    for event in run.rows():
        kind = kinds.get(event.kind, DELIVER)
        yield OracleEvent(kind=kind, id=f"m{event.message}", member=names[event.member])


def _collect_arrivals(run: Recording, names: Mapping[int, str]) -> dict[str, tuple[str, ...]]:
    found: dict[int, list[str]] = {}
    for event in run.events():
        if event.kind == SENT:
            found.setdefault(event.message, [])
        elif event.kind == ARRIVED:
            found.setdefault(event.message, []).append(names[event.member])
    return {f"m{message}": tuple(there) for message, there in found.items()}
