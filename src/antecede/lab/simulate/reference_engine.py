"""Readable engine: an event loop over the protocols' own classes, those of users too.

Differential tests compare the compiled engines with it, event by event. Speed: 20,000 to 100,000
copies a second.

Theory of operation
-------------------
Time is whole microseconds. Events are ordered by (time, ticket). The sending of message m has the
ticket m; every arrival gets the next ticket when it is put on the network, by effect, then by
receiver. So sendings of a microsecond precede its arrivals. A reply that waits for what it answers
is sent when that is delivered, with the next ticket.

The payload of message m is m; messages with another payload are between protocols. Every `tick_us`
all members that need time get their tick, by address, with one ticket. Nothing is sent from
`duration_s` on; then what is under way arrives. With ticks the run ends when everything owed is
delivered, or after `members.Members.patience_us` without news.
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
from antecede.lab.simulate.config.model import Scenario
from antecede.lab.simulate.delays import US
from antecede.lab.simulate.members import Members, make_members
from antecede.lab.simulate.network import Copy, Intake, Network
from antecede.lab.simulate.outputs import global_states, violations
from antecede.lab.simulate.outputs.counters import RunMetrics
from antecede.lab.simulate.outputs.global_states import GlobalStates
from antecede.lab.simulate.outputs.metrics import sample_times
from antecede.lab.simulate.outputs.recording import ARRIVED, DELIVERED, RELEASED, SENT, Recording
from antecede.lab.simulate.outputs.result import Result
from antecede.lab.simulate.random_streams import Stream
from antecede.lab.simulate.topology import Hierarchy
from antecede.lab.simulate.workload import Answers, Traffic

NOTE = -1  # in place of a message's number: this is between protocols
MARKER = -2  # in place of a message's number: this is a marker of a snapshot, below the protocols
MARKER_STREAMS = Stream.MARKER_DELAY, Stream.MARKER_LOSS
ARRIVE, TAKE, TICK, SEND, BEGIN = range(5)


class EventLoop:
    """One run; `go` lets it happen. `metrics` is told everything that figures need."""

    def __init__(self, scenario: Scenario, seed: int, made: Members, metrics: RunMetrics) -> None:
        self.scenario, self.made, self.metrics = scenario, made, metrics
        self.members = made.members
        self.network = Network(scenario, seed)
        self.clocks = MemberClocks(scenario.clocks, seed)
        self.traffic = Traffic(scenario, seed)
        self.times: list[int] = self.traffic.schedule.time_us.tolist()
        self.senders: list[int] = self.traffic.schedule.sender.tolist()
        count = len(self.times)
        self.recording = Recording(
            scenario,
            seed,
            made.relation,
            self.senders,
            sent_us=[None] * count,
            parents=[()] * count,
            addressed=[None] * count,
            topics=[()] * count,
            subscriptions=self.traffic.subscriptions,
        )
        self.snapshots: GlobalStates | None = None
        if scenario.snapshots is not None:
            self.snapshots = GlobalStates(scenario.topology, scenario.snapshots, self.recording)
        slow = scenario.links.buffer is not None or scenario.links.service_s > 0
        self.intake = Intake(scenario.links, scenario.topology.size) if slow else None
        self.heap: list[tuple[int, int, int, int, Any, int]] = []
        """(time, ticket, kind, address, message, its number or NOTE)."""
        self.ticket = len(self.times)
        self.notes = self.markers = 0
        """Transmit effects so far that were notes or further copies; times markers were sent."""
        size = scenario.topology.size
        self.application = [at in scenario.topology.senders() for at in range(size)]
        self.arrived: list[dict[int, int]] = [{} for _ in range(size)]
        """By address: message -> arrival of its first copy, while it is not delivered."""
        self.done: list[set[int]] = [set() for _ in range(size)]
        """By address: what was delivered or given up; kept where copies can come again."""
        self.carried: set[tuple[int, int]] = set()
        """(message, channel) of first copies; kept where copies can come again."""
        self.answers = Answers(self.traffic, made.members, scenario.workload.recent)
        self.owed = self.under_way = self.news_us = 0

    def go(self) -> None:
        """Let everything happen."""
        self.end_us = round(self.scenario.duration_s * US)
        samples = deque(sample_times(self.scenario))
        if self.made.tick_us is not None:
            self._plan(self.made.tick_us, TICK, 0, None, NOTE)
        if self.scenario.snapshots is not None:
            for number, at_s in enumerate(self.scenario.snapshots.at_s, 1):
                self._plan(round(at_s * US), BEGIN, 0, None, number)
        following, count = 0, len(self.times)
        while following < count or self.heap:
            sends = following < count and (
                not self.heap or self.times[following] <= self.heap[0][0]
            )
            now_us = self.times[following] if sends else self.heap[0][0]
            while samples and samples[0] <= now_us:
                self.metrics.sample(samples.popleft(), self.arrived)
            if sends:
                self._send(now_us, following)
                following += 1
                continue
            _, _, kind, at, message, number = heapq.heappop(self.heap)
            if kind == ARRIVE:
                self._arrive(now_us, at, message, number)
            elif kind == TAKE:
                self._take(now_us, at, message, number)
            elif kind == SEND:
                self._send(now_us, number)
            elif kind == BEGIN:
                self._begin(now_us, number)
            elif not self._tick(now_us, following == count):
                break
        for time_us in samples:
            self.metrics.sample(time_us, self.arrived)

    def _plan(self, when_us: int, kind: int, at: int, message: Any, number: int) -> None:
        heapq.heappush(self.heap, (when_us, self.ticket, kind, at, message, number))
        self.ticket += 1

    def _tick(self, now_us: int, all_sent: bool) -> bool:
        """Give every member its tick; return False when the run is over."""
        assert self.made.tick_us is not None
        for at, member in self.members.items():
            self._carry_out(now_us, at, member.tick(self.clocks.reading_ns(at, now_us)))
        waited_us = now_us - self.news_us
        nothing = self.under_way == 0 and (self.owed == 0 or waited_us > self.made.patience_us)
        if all_sent and now_us >= self.end_us and nothing:
            return False
        self._plan(now_us + self.made.tick_us, TICK, 0, None, NOTE)
        return True

    def _send(self, now_us: int, number: int) -> None:
        at = self.senders[number]
        member, run = self.members[at], self.recording
        parents = self.answers.of(number, at)
        if parents is None:
            return
        options: dict[str, Any] = {}
        run.parents[number] = parents
        if parents and self.made.relation is protocols.Relation.BY_REPLY:
            options["after"] = [self.answers.ids[parent] for parent in parents]
        if member.addressing is protocols.Addressing.TOPICS:
            run.topics[number] = options["topics"] = self.traffic.publication(number)
            run.addressed[number] = tuple(
                other
                for other, topics in enumerate(run.subscriptions)
                if other != at and not topics.isdisjoint(options["topics"])
            )
        elif member.addressing is protocols.Addressing.MEMBERS:
            run.addressed[number] = options["to"] = self.traffic.addressees(number, at)
        run.sent_us[number] = self.news_us = now_us
        run.note(now_us, SENT, at, number)
        given = run.addressed[number]
        others = len(self.scenario.topology.senders()) - 1
        self.owed += others if given is None else len(given)
        if self.snapshots is not None:
            self.snapshots.sent(at, number, run.receivers(number))
        if self.made.relation is protocols.Relation.TOTAL:
            # An own message is held from its sending until its turn, as others from arrival.
            self.owed += 1
            self.arrived[at][number] = now_us
        self.metrics.sent(now_us, at, number)
        reading_ns = self.clocks.reading_ns(at, now_us)
        self._carry_out(now_us, at, member.send(number, now=reading_ns, **options))
        self._resume(now_us, at, self.answers.sent(at, number))

    def _carry_out(self, now_us: int, at: int, effects: Iterable[protocols.Effect]) -> None:
        for effect in effects:
            if isinstance(effect, protocols.Transmit):
                self._transmit(now_us, at, effect)
            elif isinstance(effect, protocols.Deliver | protocols.DeliverIncomplete):
                self._deliver(now_us, at, effect)
            elif isinstance(effect, protocols.Discard) and effect.reason not in (
                protocols.DUPLICATE,
                protocols.OWN,
            ):
                self._give_up(at, effect.message)

    def _transmit(self, now_us: int, at: int, effect: protocols.Transmit) -> None:
        member, message = self.members[at], effect.message
        targets = sorted(effect.to)
        if not targets:
            return  # alone in the group
        number = self._number(at, message)
        again: list[int] = targets if number == NOTE else self._further(at, number, targets)
        first = [target for target in targets if target not in again] if again else targets
        copies: list[Copy] = []
        if first:
            copies += self.network.message(number, now_us, at, first)
            self.metrics.transmitted(now_us, at, member, message, number, first)
            self.answers.ids.setdefault(number, protocols.MessageId(message.sender, message.seq))
        if again:
            copies += self.network.note(self.notes, now_us, at, again)
            self.notes += 1
            self.metrics.noted(member, message, len(again))
        if first and again:
            copies.sort(key=lambda copy: copy.target)
        for arrival_us, target in copies:
            self._plan(arrival_us, ARRIVE, target, message, number)
        if number != NOTE:
            self.under_way += len(copies)

    def _number(self, at: int, message: Any) -> int:
        """Return the number of a message that carries one of the application, or NOTE.

        A role may not recognise every note (an internal peer, its acknowledgements).
        """
        if self.members[at].is_note(message) or type(message.payload) is not int:
            return NOTE
        return int(message.payload)

    def _further(self, at: int, number: int, targets: list[int]) -> list[int]:
        """Return to whom this message went over the same channel before."""
        if not self.made.repeats:
            return []
        size = self.scenario.topology.size
        again = []
        for target in targets:
            name = number, at * size + target
            if name in self.carried:
                again.append(target)
            self.carried.add(name)
        return again

    def _deliver(
        self, now_us: int, at: int, effect: protocols.Deliver | protocols.DeliverIncomplete
    ) -> None:
        number = effect.message.payload
        marked = isinstance(effect, protocols.DeliverIncomplete)
        arrived_us = self.arrived[at].pop(number, now_us)
        self.news_us = now_us
        self.owed -= 1
        self.recording.note(now_us, RELEASED if marked else DELIVERED, at, number)
        self.metrics.delivered(now_us, at, number, arrived_us, marked)
        if self.made.repeats:
            self.done[at].add(number)
        self._resume(now_us, at, self.answers.delivered(at, number))

    def _resume(self, now_us: int, at: int, waiting: Iterable[int]) -> None:
        """Let a member look again at replies that it could not send before."""
        for number in waiting:
            self._plan(now_us, SEND, at, None, number)

    def _give_up(self, at: int, message: Any) -> None:
        """Count a message that the protocol discards; a further copy may come all the same."""
        if self.arrived[at].pop(self._number(at, message), None) is not None:
            self.metrics.counts["discarded"] += 1

    def _arrive(self, now_us: int, at: int, message: Any, number: int) -> None:
        when_us: int | None = now_us
        if self.intake is not None:
            when_us = self.intake.take(now_us, at)
        if when_us is None:
            self.under_way -= number != NOTE
            self.metrics.counts["overruns"] += 1
        elif when_us > now_us:
            self._plan(when_us, TAKE, at, message, number)
        else:
            self._take(now_us, at, message, number)

    def _take(self, now_us: int, at: int, message: Any, number: int) -> None:
        if number == MARKER:
            assert self.snapshots is not None
            self.under_way -= 1
            self._tell(now_us, at, self.snapshots.marker(now_us, at, *message))
            return
        if number != NOTE:
            self.under_way -= 1
            self.news_us = now_us
            self.metrics.arrivals += 1
            self._note_arrival(now_us, at, number)
        member: protocols.Protocol = self.members[at]
        try:
            effects = member.receive(message, now=self.clocks.reading_ns(at, now_us))
        except RemoteError:
            self.metrics.counts["rejected"] += 1
            self.arrived[at].pop(number, None)
            return
        self._carry_out(now_us, at, effects)

    def _note_arrival(self, now_us: int, at: int, number: int) -> None:
        if not self.application[at] or self.senders[number] == at:
            return
        if number in self.arrived[at] or number in self.done[at]:
            return
        if self.snapshots is not None:
            self._tell(now_us, at, self.snapshots.arrived(now_us, at, number))
        self.arrived[at][number] = now_us
        self.recording.note(now_us, ARRIVED, at, number)

    def _begin(self, now_us: int, number: int) -> None:
        assert self.snapshots is not None
        for at, tells in self.snapshots.begin(now_us, number):
            self._tell(now_us, at, tells)

    def _tell(self, now_us: int, at: int, tells: Iterable[Tell]) -> None:
        """Send markers, those of an earlier snapshot first."""
        assert self.snapshots is not None
        markers: dict[int, dict[int, Any]] = {}
        for tell in tells:
            target = self.snapshots.address[tell.to]
            markers.setdefault(tell.marker.number, {})[target] = tell.marker
        for of in markers.values():
            copies = self.network.note(self.markers, now_us, at, sorted(of), MARKER_STREAMS)
            self.markers += 1
            self.under_way += len(copies)
            for arrival_us, target in copies:
                self._plan(arrival_us, ARRIVE, target, (at, of[target]), MARKER)


ENGINE = "reference"


@overload
def run_readable(
    scenario: Scenario,
    seed: int,
    record: Literal[False] = False,
    progress: Callable[[float], None] | None = None,
) -> Result: ...
@overload
def run_readable(
    scenario: Scenario,
    seed: int,
    record: Literal[True],
    progress: Callable[[float], None] | None = None,
) -> tuple[Result, Recording]: ...


def run_readable(
    scenario: Scenario,
    seed: int,
    record: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Result | tuple[Result, Recording]:
    """Return the result of a run; with `record` also its events.

    `progress` gets the part of the sending time that is over, 0 to 1. Raises ScenarioError for a
    protocol that cannot run in the scenario.
    """
    made = make_members(scenario, seed)
    metrics = RunMetrics(scenario, made.members, record=record, progress=progress)
    loop = EventLoop(scenario, seed, made, metrics)
    loop.go()
    run = loop.recording
    run.transmissions, run.numbered = metrics.transmissions, metrics.numbered
    overruns = metrics.counts["overruns"]
    held = sum(map(len, loop.arrived))
    figures: dict[str, float] = {
        **metrics.figures(),
        "held_at_end": held,
        "lost": loop.network.lost + overruns,
        "duplicates": loop.network.duplicates,
    }
    late = {"unsent": loop.answers.unsent(), "undelivered": loop.owed}
    figures |= {name: count for name, count in late.items() if count}
    states: list[global_states.RecordedState] = []
    if loop.snapshots is not None:
        states = loop.snapshots.states()
        figures |= global_states.figures(states, loop.snapshots.stamp_bytes)
    found, caveats = violations.judged(run)
    figures |= found
    if run.relation is protocols.Relation.TOTAL:
        figures["promise_violations"] += violations.disagreements(run)
    if isinstance(scenario.topology, Hierarchy):
        if caveats:
            why = "all pasts are needed, and they are kept of "
            caveats["lemma3.missing"] = f"{why}{violations.FULL:,} messages at most"
        else:
            missing, extra = violations.lemma_3(run)
            figures |= {"lemma3.missing": missing, "lemma3.extra": extra}
    result = Result(
        scenario, seed, ENGINE, figures, metrics.series(), run.relation, caveats, tuple(states)
    )
    return (result, run) if record else result
