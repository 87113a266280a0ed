"""Reference engine: an event loop over the protocols' own classes, also those of users.

Differential tests compare the compiled engines with it, event by event. Speed: 20,000 to 100,000
copies per second.

Theory of operation
-------------------
Time is whole microseconds. Events are ordered by (time, sequence). Sending message m has the
sequence m. Every arrival gets the next sequence when it is sent, by effect, then by receiver. So
sends of a microsecond precede its arrivals. A reply that waits for its parents is sent when they
are delivered, with the next sequence.

The payload of message m is m. Messages with another payload are control messages. Every `tick_us`
all members that need ticks get one, by address, with one sequence. Nothing is sent from
`duration_s` on; then copies in flight arrive. With ticks the run ends when everything is delivered,
or after `members.RunMembers.idle_timeout_us` without progress.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Literal, overload

from antecede.core import protocols
from antecede.core.global_snapshots import Tell
from antecede.errors import RemoteError
from antecede.lab.simulate.clocks import MemberClocks
from antecede.lab.simulate.config.model import SimulationConfig
from antecede.lab.simulate.delays import US
from antecede.lab.simulate.members import RunMembers, make_members
from antecede.lab.simulate.network import Copy, Network, ReceiveQueue
from antecede.lab.simulate.outputs import global_states, violations
from antecede.lab.simulate.outputs.counters import RunCounters
from antecede.lab.simulate.outputs.global_states import SnapshotRecorder
from antecede.lab.simulate.outputs.metrics import list_sample_times
from antecede.lab.simulate.outputs.recording import ARRIVED, DELIVERED, RELEASED, SENT, Recording
from antecede.lab.simulate.outputs.result import Result
from antecede.lab.simulate.random_streams import Stream
from antecede.lab.simulate.topology import Hierarchy
from antecede.lab.simulate.workload import ReplyTracker, Traffic

CONTROL = -1  # Number of a control message, in place of a message's number
MARKER = -2  # Number of a snapshot marker, in place of a message's number
MARKER_STREAMS = Stream.MARKER_DELAY, Stream.MARKER_LOSS
ARRIVE, ACCEPT, TICK, SEND, START_SNAPSHOT = range(5)


class EventLoop:
    """A run. `counters` gets all events that metrics need."""

    def __init__(
        self, config: SimulationConfig, seed: int, group: RunMembers, counters: RunCounters
    ) -> None:
        self.config, self.group, self.counters = config, group, counters
        self.members = group.members
        self.network = Network(config, seed)
        self.clocks = MemberClocks(config.clocks, seed)
        self.traffic = Traffic(config, seed)
        self.times: list[int] = self.traffic.schedule.time_us.tolist()
        self.senders: list[int] = self.traffic.schedule.sender.tolist()
        count = len(self.times)
        self.recording = Recording(
            config,
            seed,
            group.relation,
            self.senders,
            sent_us=[None] * count,
            parents=[()] * count,
            addressees=[None] * count,
            topics=[()] * count,
            subscriptions=self.traffic.subscriptions,
        )
        self.snapshots: SnapshotRecorder | None = None
        if config.snapshots is not None:
            self.snapshots = SnapshotRecorder(config.topology, config.snapshots, self.recording)
        slow = config.links.buffer is not None or config.links.service_s > 0
        self.receive_queue = ReceiveQueue(config.links, config.topology.size) if slow else None
        self.heap: list[tuple[int, int, int, int, Any, int]] = []
        """(time, sequence, kind, address, message, its number or CONTROL)."""
        self.sequence = len(self.times)
        self.control_sends = self.marker_sends = 0
        """Transmit effects so far with control messages or further copies; marker sends so far."""
        size = config.topology.size
        self.has_application = [address in config.topology.senders() for address in range(size)]
        self.arrived_us: list[dict[int, int]] = [{} for _ in range(size)]
        """By address: undelivered message -> arrival of its first copy."""
        self.finished: list[set[int]] = [set() for _ in range(size)]
        """By address: delivered or discarded messages, if copies can arrive again."""
        self.sent_copies: set[tuple[int, int]] = set()
        """(message, channel) of first copies, if copies can be sent again."""
        self.replies = ReplyTracker(self.traffic, group.members, config.workload.recent)
        self.undelivered = self.in_flight = self.last_progress_us = 0

    def run(self) -> None:
        """Process all events."""
        self.end_us = round(self.config.duration_s * US)
        samples = deque(list_sample_times(self.config))
        if self.group.tick_us is not None:
            self._schedule(self.group.tick_us, TICK, 0, None, CONTROL)
        if self.config.snapshots is not None:
            for number, at_s in enumerate(self.config.snapshots.at_s, 1):
                self._schedule(round(at_s * US), START_SNAPSHOT, 0, None, number)
        following, count = 0, len(self.times)
        while following < count or self.heap:
            sends = following < count and (
                not self.heap or self.times[following] <= self.heap[0][0]
            )
            now_us = self.times[following] if sends else self.heap[0][0]
            while samples and samples[0] <= now_us:
                self.counters.sample(samples.popleft(), self.arrived_us)
            if sends:
                self._send(now_us, following)
                following += 1
                continue
            _, _, kind, address, message, number = heapq.heappop(self.heap)
            if kind == ARRIVE:
                self._arrive(now_us, address, message, number)
            elif kind == ACCEPT:
                self._receive(now_us, address, message, number)
            elif kind == SEND:
                self._send(now_us, number)
            elif kind == START_SNAPSHOT:
                self._start_snapshot(now_us, number)
            elif not self._tick_members(now_us, following == count):
                break
        for time_us in samples:
            self.counters.sample(time_us, self.arrived_us)

    def _schedule(self, when_us: int, kind: int, address: int, message: Any, number: int) -> None:
        heapq.heappush(self.heap, (when_us, self.sequence, kind, address, message, number))
        self.sequence += 1

    def _tick_members(self, now_us: int, all_sent: bool) -> bool:
        """Tick every member. Return False when the run is over."""
        assert self.group.tick_us is not None
        for address, member in self.members.items():
            self._apply_effects(now_us, address, member.tick(self.clocks.read_ns(address, now_us)))
        waited_us = now_us - self.last_progress_us
        nothing = self.in_flight == 0 and (
            self.undelivered == 0 or waited_us > self.group.idle_timeout_us
        )
        if all_sent and now_us >= self.end_us and nothing:
            return False
        self._schedule(now_us + self.group.tick_us, TICK, 0, None, CONTROL)
        return True

    def _send(self, now_us: int, number: int) -> None:
        address = self.senders[number]
        member, run = self.members[address], self.recording
        parents = self.replies.find_parents(number, address)
        if parents is None:
            return
        options: dict[str, Any] = {}
        run.parents[number] = parents
        if parents and self.group.relation is protocols.Relation.BY_REPLY:
            options["after"] = [self.replies.ids[parent] for parent in parents]
        if member.addressing is protocols.Addressing.TOPICS:
            run.topics[number] = options["topics"] = self.traffic.choose_topics(number)
            run.addressees[number] = tuple(
                other
                for other, topics in enumerate(run.subscriptions)
                if other != address and not topics.isdisjoint(options["topics"])
            )
        elif member.addressing is protocols.Addressing.MEMBERS:
            run.addressees[number] = options["to"] = self.traffic.choose_addressees(number, address)
        run.sent_us[number] = self.last_progress_us = now_us
        run.record(now_us, SENT, address, number)
        given = run.addressees[number]
        others = len(self.config.topology.senders()) - 1
        self.undelivered += others if given is None else len(given)
        if self.snapshots is not None:
            self.snapshots.on_send(address, number, run.receivers(number))
        if self.group.relation is protocols.Relation.TOTAL:
            # An own message is held from its send until its turn, others from their arrival.
            self.undelivered += 1
            self.arrived_us[address][number] = now_us
        self.counters.on_send(now_us, address, number)
        reading_ns = self.clocks.read_ns(address, now_us)
        self._apply_effects(now_us, address, member.send(number, now=reading_ns, **options))
        self._schedule_replies(now_us, address, self.replies.on_send(address, number))

    def _apply_effects(
        self, now_us: int, address: int, effects: Iterable[protocols.Effect]
    ) -> None:
        for effect in effects:
            if isinstance(effect, protocols.Transmit):
                self._transmit(now_us, address, effect)
            elif isinstance(effect, protocols.Deliver | protocols.DeliverIncomplete):
                self._deliver(now_us, address, effect)
            elif isinstance(effect, protocols.Discard) and effect.reason not in (
                protocols.DUPLICATE,
                protocols.OWN,
            ):
                self._count_discarded(address, effect.message)

    def _transmit(self, now_us: int, address: int, effect: protocols.Transmit) -> None:
        member, message = self.members[address], effect.message
        targets = sorted(effect.to)
        if not targets:
            return  # alone in the group
        number = self._find_number(address, message)
        again: list[int] = (
            targets if number == CONTROL else self._find_repeated(address, number, targets)
        )
        first = [target for target in targets if target not in again] if again else targets
        copies: list[Copy] = []
        if first:
            copies += self.network.send_message(number, now_us, address, first)
            self.counters.on_transmit(now_us, address, member, message, number, first)
            self.replies.ids.setdefault(number, protocols.MessageId(message.sender, message.seq))
        if again:
            copies += self.network.send_control(self.control_sends, now_us, address, again)
            self.control_sends += 1
            self.counters.on_control(member, message, len(again))
        if first and again:
            copies.sort(key=lambda copy: copy.target)
        for arrival_us, target in copies:
            self._schedule(arrival_us, ARRIVE, target, message, number)
        if number != CONTROL:
            self.in_flight += len(copies)

    def _find_number(self, address: int, message: Any) -> int:
        if self.members[address].is_control(message) or type(message.payload) is not int:
            return CONTROL
        return int(message.payload)

    def _find_repeated(self, address: int, number: int, targets: list[int]) -> list[int]:
        if not self.group.can_repeat:
            return []
        size = self.config.topology.size
        again = []
        for target in targets:
            name = number, address * size + target
            if name in self.sent_copies:
                again.append(target)
            self.sent_copies.add(name)
        return again

    def _deliver(
        self, now_us: int, address: int, effect: protocols.Deliver | protocols.DeliverIncomplete
    ) -> None:
        number = effect.message.payload
        marked = isinstance(effect, protocols.DeliverIncomplete)
        arrived_us = self.arrived_us[address].pop(number, now_us)
        self.last_progress_us = now_us
        self.undelivered -= 1
        self.recording.record(now_us, RELEASED if marked else DELIVERED, address, number)
        self.counters.on_deliver(now_us, address, number, arrived_us, marked)
        if self.group.can_repeat:
            self.finished[address].add(number)
        self._schedule_replies(now_us, address, self.replies.on_deliver(address, number))

    def _schedule_replies(self, now_us: int, address: int, waiting: Iterable[int]) -> None:
        for number in waiting:
            self._schedule(now_us, SEND, address, None, number)

    def _count_discarded(self, address: int, message: Any) -> None:
        if self.arrived_us[address].pop(self._find_number(address, message), None) is not None:
            self.counters.counts["discarded"] += 1

    def _arrive(self, now_us: int, address: int, message: Any, number: int) -> None:
        when_us: int | None = now_us
        if self.receive_queue is not None:
            when_us = self.receive_queue.accept(now_us, address)
        if when_us is None:
            self.in_flight -= number != CONTROL
            self.counters.counts["overruns"] += 1
        elif when_us > now_us:
            self._schedule(when_us, ACCEPT, address, message, number)
        else:
            self._receive(now_us, address, message, number)

    def _receive(self, now_us: int, address: int, message: Any, number: int) -> None:
        if number == MARKER:
            assert self.snapshots is not None
            self.in_flight -= 1
            self._send_markers(now_us, address, self.snapshots.on_marker(now_us, address, *message))
            return
        if number != CONTROL:
            self.in_flight -= 1
            self.last_progress_us = now_us
            self.counters.arrivals += 1
            self._record_arrival(now_us, address, number)
        member: protocols.Protocol = self.members[address]
        try:
            effects = member.receive(message, now=self.clocks.read_ns(address, now_us))
        except RemoteError:
            self.counters.counts["rejected"] += 1
            self.arrived_us[address].pop(number, None)
            return
        self._apply_effects(now_us, address, effects)

    def _record_arrival(self, now_us: int, address: int, number: int) -> None:
        if not self.has_application[address] or self.senders[number] == address:
            return
        if number in self.arrived_us[address] or number in self.finished[address]:
            return
        if self.snapshots is not None:
            self._send_markers(now_us, address, self.snapshots.on_arrive(now_us, address, number))
        self.arrived_us[address][number] = now_us
        self.recording.record(now_us, ARRIVED, address, number)

    def _start_snapshot(self, now_us: int, number: int) -> None:
        assert self.snapshots is not None
        for address, tells in self.snapshots.start(now_us, number):
            self._send_markers(now_us, address, tells)

    def _send_markers(self, now_us: int, address: int, tells: Iterable[Tell]) -> None:
        assert self.snapshots is not None
        markers: dict[int, dict[int, Any]] = {}
        for tell in tells:
            target = self.snapshots.address[tell.to]
            markers.setdefault(tell.marker.number, {})[target] = tell.marker
        for of in markers.values():
            copies = self.network.send_control(
                self.marker_sends, now_us, address, sorted(of), MARKER_STREAMS
            )
            self.marker_sends += 1
            self.in_flight += len(copies)
            for arrival_us, target in copies:
                self._schedule(arrival_us, ARRIVE, target, (address, of[target]), MARKER)


ENGINE = "reference"


@overload
def run_readable(
    config: SimulationConfig,
    seed: int,
    record: Literal[False] = False,
    progress: Callable[[float], None] | None = None,
) -> Result: ...
@overload
def run_readable(
    config: SimulationConfig,
    seed: int,
    record: Literal[True],
    progress: Callable[[float], None] | None = None,
) -> tuple[Result, Recording]: ...


def run_readable(
    config: SimulationConfig,
    seed: int,
    record: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Result | tuple[Result, Recording]:
    """Return the result of a run; with `record` also its events.

    `progress` is called with the fraction of the sending time that has passed, 0 to 1. Raises
    ConfigError for a protocol that does not fit the configuration.
    """
    made = make_members(config, seed)
    metrics = RunCounters(config, made.members, record=record, progress=progress)
    loop = EventLoop(config, seed, made, metrics)
    loop.run()
    run = loop.recording
    run.transmissions, run.numbered_messages = metrics.transmissions, metrics.numbered_messages
    overruns = metrics.counts["overruns"]
    held = sum(map(len, loop.arrived_us))
    figures: dict[str, float] = {
        **metrics.compute_metrics(),
        "held_at_end": held,
        "lost": loop.network.lost + overruns,
        "duplicates": loop.network.duplicates,
    }
    late = {"unsent": loop.replies.count_unsent(), "undelivered": loop.undelivered}
    figures |= {name: count for name, count in late.items() if count}
    states: list[global_states.RecordedState] = []
    if loop.snapshots is not None:
        states = loop.snapshots.check_states()
        figures |= global_states.compute_metrics(states, loop.snapshots.stamp_bytes)
    found, caveats = violations.check_recording(run)
    figures |= found
    if run.relation is protocols.Relation.TOTAL:
        figures["promise_violations"] += violations.count_disagreements(run)
    if isinstance(config.topology, Hierarchy):
        if caveats:
            why = "needs the causal pasts of all messages, which are stored for "
            caveats["lemma3.missing"] = f"{why}up to {violations.FULL:,} messages"
        else:
            missing, extra = violations.check_lemma_3(run)
            figures |= {"lemma3.missing": missing, "lemma3.extra": extra}
    result = Result(
        config,
        seed,
        ENGINE,
        figures,
        metrics.compute_series(),
        run.relation,
        caveats,
        tuple(states),
    )
    return (result, run) if record else result
