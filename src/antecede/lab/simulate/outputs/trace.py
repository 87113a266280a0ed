"""Trace of a run in the event schema: rows of sends, arrivals and deliveries.

Theory of operation
-------------------
Message 3 is called "m3", a member by role and address ("peer3"). `arrival` is true time in
nanoseconds from the start of the run, `send_time` the sender's own clock. `seq` is the sender's
number of the message, from 1.

`causes` are the immediate causes, independent of the control information. They follow from a
vector clock per member and its newest messages, so the number of messages is not limited. Protocols
without order, or with FIFO, get causes of causal order by delivery; reply protocols the answered
messages.

Rows are in event order. Where a member recorded its state, a row of kind "event" has the text
"snapshot 1". It is the last row of the state.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from antecede.core.protocols import Relation
from antecede.lab.check import LEARNS
from antecede.lab.simulate.clocks import MemberClocks
from antecede.lab.simulate.outputs.global_states import snapshot_name
from antecede.lab.simulate.outputs.recording import ARRIVED, RECORDED, SENT, Recording
from antecede.lab.simulate.topology import list_names
from antecede.tables.trace import DELIVER, RECEIVE, SEND, Event, write_events
from antecede.tables.trace.user_tables import PARQUET

NS = 1000


def events(run: Recording, relation: Relation | None = None) -> Iterator[Event]:
    """Yield the rows of a run. `relation` determines the causes (None: the promised one)."""
    relation = relation or run.relation
    if relation in (Relation.NONE, Relation.FIFO):
        relation = Relation.BY_DELIVERY
    tracker = _CauseTracker(run, relation)
    clocks = MemberClocks(run.config.clocks, run.seed)
    name = list_names(run.config.topology)
    for row, (time_us, kind, member, message) in enumerate(run.rows()):
        if kind == RECORDED:
            text = snapshot_name(message)
            event_id = f"{text} of {name[member]}"
            arrival = time_us * NS
            yield Event(
                id=event_id, member=name[member], file_order=row, arrival=arrival, text=text
            )
            continue
        tracker.update(kind, member, message)
        sent = kind == SENT
        yield Event(
            kind=SEND if sent else RECEIVE if kind == ARRIVED else DELIVER,
            id=f"m{message}",
            member=name[member],
            seq=tracker.number[message],
            causes=tuple(f"m{cause}" for cause in tracker.causes[message]) if sent else (),
            topics=run.topics[message],
            file_order=row,
            arrival=time_us * NS,
            send_time=clocks.read_us(member, time_us) * NS if sent else None,
        )


def write_trace(
    run: Recording, path: str | Path, relation: Relation | None = None, format: str = PARQUET
) -> int:
    """Write the rows of a run in a trace format. Return their number. Raises InputError."""
    rows = list(events(run, relation))
    write_events(rows, path, format)
    return len(rows)


class _CauseTracker:
    def __init__(self, run: Recording, relation: Relation) -> None:
        size = run.config.topology.size
        self.run, self.relation, self.learns = run, relation, LEARNS[relation]
        self.number = [0] * len(run.sender)  # The sender's own number of each message
        self.causes: list[tuple[int, ...]] = [()] * len(run.sender)
        self.clock: list[list[int]] = [[0] * size for _ in range(size)]
        """By member: number of known messages of each member."""
        self.newest: list[dict[int, int]] = [{} for _ in range(size)]
        """By member: sender -> its message that no known message follows."""
        self.timestamp: list[list[int]] = [[]] * len(run.sender)

    def update(self, kind: int, member: int, message: int) -> None:
        """Process an event."""
        clock, newest = self.clock[member], self.newest[member]
        if kind == SENT:
            self.causes[message] = tuple(sorted(newest.values()))
            self.timestamp[message] = list(clock)
            clock[member] += 1
            self.number[message] = clock[member]
            self.newest[member] = {member: message}
            if self.relation is Relation.BY_REPLY:
                self.causes[message] = self.run.parents[message]
            return
        sender = self.run.sender[message]
        if kind not in self.learns or clock[sender] >= self.number[message]:
            return
        stamp = self.timestamp[message]
        for other in [k for k, named in newest.items() if self.number[named] <= stamp[k]]:
            del newest[other]
        newest[sender] = message
        clock[sender] = self.number[message]
        for at, count in enumerate(stamp):
            if count > clock[at]:
                clock[at] = count
