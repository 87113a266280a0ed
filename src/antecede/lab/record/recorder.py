"""Recorder: starts member processes that communicate over UDP, and merges their events.

The trace holds a `send` row for each message, and a `receive` and a `deliver` row for each member
that got it. `causes` of send and receive rows are the causes in the message's control information:
its immediate dependencies and its sender's previous message. `arrival` is the recorder's clock,
`send_time` the sender's own.
"""

from __future__ import annotations

import math
import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import NamedTuple

from antecede.errors import LocalError, SetupError
from antecede.formatting import pluralize, were
from antecede.lab.record.member import MemberPlan, compute_drain_s, make_group, run_member
from antecede.lab.record.regions import REGIONS
from antecede.tables.trace import DELIVER, RECEIVE, SEND, Event

START_TIMEOUT_S = 30.0
MAX_MEMBERS = 64
EMULATED = "delays, jitter and clock offsets between the regions are emulated; the sockets are real"


class RecordedTrace(NamedTuple):
    """Events in the order of the recorder's clock, and their counts."""

    events: list[Event]
    sent: int
    received: int
    delivered: int
    expected: int  # messages times other members
    undelivered: tuple[tuple[str, str], ...] = ()
    """(message, member) of copies that arrived and were not delivered before the end."""

    @property
    def complete(self) -> bool:
        """True if every copy was delivered."""
        return self.delivered == self.expected


def make_member_names(count: int) -> tuple[str, ...]:
    """Return one name per member: its region, numbered from the second round on."""
    turns = (divmod(k, len(REGIONS)) for k in range(count))
    return tuple(REGIONS[place].name + (str(turn + 1) if turn else "") for turn, place in turns)


def record(
    members: int = 8,
    seconds: float = 5.0,
    *,
    order: str = "causal",
    seed: int = 1,
    progress: Callable[[float], None] = lambda done: None,
) -> RecordedTrace:
    """Let `members` processes run for `seconds` and return the recording.

    `progress` receives the fraction done. Raises LocalError for invalid arguments, SetupError if a
    process does not start.
    """
    if not 2 <= members <= MAX_MEMBERS:
        raise LocalError(f"{members} members: choose 2 to {MAX_MEMBERS}")
    if not (seconds > 0 and math.isfinite(seconds)):
        raise LocalError(f"--seconds {seconds}: expected a finite number above 0")
    names = make_member_names(members)
    make_group(names[0], names, order)  # fail here, not in each process
    drain = compute_drain_s(order, names)
    context = multiprocessing.get_context("spawn")
    running: list[tuple[BaseProcess, Connection]] = []
    try:
        for name in names:
            ours, theirs = context.Pipe()
            plan = MemberPlan(name, names, order, seed, seconds, drain)
            process: BaseProcess = context.Process(
                target=run_member, args=(plan, theirs), daemon=True
            )
            process.start()
            theirs.close()
            running.append((process, ours))
        ports = {
            name: _receive(pipe, name, START_TIMEOUT_S)
            for name, (_, pipe) in zip(names, running, strict=True)
        }
        for _, pipe in running:
            pipe.send(ports)
        _wait(seconds + drain, progress)
        gathered = [
            event
            for name, (_, pipe) in zip(names, running, strict=True)
            for event in _receive(pipe, name, START_TIMEOUT_S)
        ]
    finally:
        for process, pipe in running:
            pipe.close()
            process.join(timeout=2.0)
            if process.is_alive():
                process.kill()
    return _make_recording(gathered, members)


def _receive(pipe: Connection, name: str, timeout_s: float):  # type: ignore[no-untyped-def]
    try:
        if pipe.poll(timeout_s):
            return pipe.recv()
    except EOFError:
        pass
    raise SetupError(f"the process of member {name} exited or did not answer in {timeout_s:.0f} s")


def _wait(seconds: float, progress: Callable[[float], None]) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        progress(1.0 - left / seconds)
        time.sleep(min(left, 0.1))
    progress(1.0)


def _make_recording(gathered: list[Event], members: int) -> RecordedTrace:
    in_order = sorted(gathered, key=lambda event: (event.arrival, event.member))
    events = [event._replace(file_order=k) for k, event in enumerate(in_order)]
    sender = {event.id: event.member for event in events if event.kind == SEND}
    copies: dict[str, set[tuple[str, str]]] = {
        kind: {
            (e.id, str(e.member)) for e in events if e.kind == kind and e.member != sender.get(e.id)
        }
        for kind in (RECEIVE, DELIVER)
    }
    received, delivered = copies[RECEIVE], copies[DELIVER]
    return RecordedTrace(
        events,
        sent=len(sender),
        received=len(received),
        delivered=len(delivered),
        expected=len(sender) * (members - 1),
        undelivered=tuple(sorted(received - delivered)),
    )


def summary(recording: RecordedTrace, members: int) -> str:
    """Return the recording in two to four lines."""
    lines = [
        f"{pluralize(members, 'process', 'processes')} sent "
        f"{pluralize(recording.sent, 'message')} over UDP; "
        f"{pluralize(recording.received, 'copy', 'copies')} arrived, "
        f"{recording.delivered:,} {were(recording.delivered)} delivered",
        f"({EMULATED})",
    ]
    if recording.received < recording.expected:
        lost = recording.expected - recording.received
        lines.append(
            f"{pluralize(lost, 'copy', 'copies')} {were(lost)} lost by UDP: "
            "messages that depend on them stayed held back"
        )
    if recording.undelivered:
        message, member = recording.undelivered[0]
        late = len(recording.undelivered)
        lines.append(
            f"{pluralize(late, 'copy', 'copies')} that arrived {were(late)} not delivered by "
            f"the end, {message} to {member} the first by name"
        )
    if recording.sent and not any(event.causes for event in recording.events):
        lines.append("no message has a cause: this order carries none, or no message was a reply")
    return "\n".join(lines)
