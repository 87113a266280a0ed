"""Data transmission procedure of Tsuneizumi et al.: numbers, gaps, recovery, null messages.

Source: Tsuneizumi et al., section 6, with the repairs of the errata. The message that reveals a gap
is kept. Recovery requests REQ_j .. m.seq - 1, both included. Null messages carry the last number,
so that the loss of a last message is detected.

Theory of operation
-------------------
A message is next when the previous message to this member (`before`, see `clock_based.messages`) is
accepted. It is accepted together with the messages that follow without a gap.

Recovery (`retry_s`): a new gap is requested at once, and all gaps again every `retry_s` seconds.
The source retransmits the messages that it keeps, and names the others as unavailable. The receiver
abandons these: the sender's next message is a `DeliverIncomplete` with the newest abandoned number.
Dependents from other senders cannot be identified and are not marked.

Null messages (`heartbeat_s`): a member that has sent nothing to another one for so long sends its
last number and its times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias

from antecede.core.clocks import LONGEST_NS, MAX_NUMBER, plain, span_ns
from antecede.core.protocols.base import Effect, MessageId, Protocol, Transmit
from antecede.core.protocols.clock_based.messages import (
    AnyMessage,
    Gone,
    NullMessage,
    RetransmissionRequest,
    StampedMessage,
)
from antecede.errors import LocalError, SequenceError, UnknownMemberError

DEFAULT_KEEP = 1 << 16
"""Default of `keep`: own messages kept for retransmission. There are no acknowledgements."""
BUFFER_FULL = "receive buffer overrun"
ABANDONED = "duplicate, or abandoned before"


Times: TypeAlias = tuple[int, int]


class AcceptedMessage(NamedTuple):
    """Accepted message, and the id of an abandoned message directly before it."""

    message: StampedMessage
    missing: tuple[MessageId, ...]


class SenderChannels:
    """Numbers, requests, kept messages and answers of one member. Raises LocalError."""

    state: ClassVar[tuple[str, ...]] = (
        *("sent", "before", "last_sent_ns", "kept", "dropped"),
        *("newest", "ahead", "high", "last_request_ns", "last", "abandoned"),
    )
    """Attributes in a snapshot; all others are constructor arguments."""

    def __init__(
        self,
        member: Protocol,
        *,
        heartbeat_s: float | None,
        retry_s: float | None,
        keep: int | None,
        exclusive_end: bool,
    ) -> None:
        if keep is not None and keep <= 0:
            raise LocalError(f"keep is {keep}; expected 1 or more, or None for no limit")
        self.member = member
        self.heartbeat_ns = None if heartbeat_s is None else span_ns(heartbeat_s, "heartbeat_s")
        self.retry_ns = None if retry_s is None else span_ns(retry_s, "retry_s")
        self.keep: int | None = plain(keep)
        self.exclusive_end = exclusive_end
        """True if answers to requests end as printed: one before the last requested number."""
        self.has_sender_logs = False
        """True if all members, later ones included, get all messages of this member."""
        self.sent = 0
        self.last: dict[int, int] = {}
        self.reset(member.others())

    def reset(self, others: Sequence[int]) -> None:
        self.before = dict.fromkeys(others, 0)
        """Number of the last message to each current member."""
        self.last_sent_ns: dict[int, int] = {}
        self.next_heartbeat_ns = -LONGEST_NS
        """Earliest reading at which a null message is due; derived."""
        self.kept: deque[tuple[tuple[int, ...], StampedMessage]] = deque()
        self.dropped = 0
        self.newest = dict.fromkeys(others, 0)
        self.ahead: dict[int, dict[int, StampedMessage]] = {member: {} for member in others}
        self.high = dict.fromkeys(others, 0)
        self.last_request_ns: dict[int, int] = {}
        self.abandoned: dict[int, int] = {}

    # -- sending ----------------------------------------------------------------------------

    def resolve_targets(self, to: Iterable[int] | None) -> tuple[int, ...]:
        if to is None:
            return self.member.others()
        chosen = tuple(sorted(set(to)))
        if unknown := [member for member in chosen if member not in self.before]:
            others = self.member.others()
            raise LocalError(f"member {unknown[0]} is not another member; the others are {others}")
        if not chosen:
            raise LocalError("a message without recipients; name members, or None for all")
        return chosen

    def number_message(
        self, payload: Any, targets: tuple[int, ...], times: Times, now: int
    ) -> Sequence[Effect]:
        """Number a message with these times, keep it, and transmit it per previous number."""
        self.sent += 1
        lt, pt_ns = times
        effects: list[Effect] = []
        for before, group in self._group_by_last_number(targets, self.sent - 1):
            message = StampedMessage(self.member.me, self.sent, payload, before, lt, pt_ns)
            self._keep(group, message)
            effects.append(Transmit(group, message))
        self.before.update(dict.fromkeys(targets, self.sent))
        self._record_sent(targets, now)
        return effects

    def _group_by_last_number(
        self, targets: Iterable[int], newest: int
    ) -> list[tuple[int, tuple[int, ...]]]:
        """Return (previous number, targets); with sender logs `newest` is previous for all."""
        if self.has_sender_logs:
            return [(newest, tuple(targets))]
        groups: dict[int, list[int]] = {}
        for target in targets:
            groups.setdefault(self.before[target], []).append(target)
        return [(before, tuple(groups[before])) for before in sorted(groups)]

    def _keep(self, group: tuple[int, ...], message: StampedMessage) -> None:
        if self.retry_ns is None:
            self.dropped = message.seq
            return
        self.kept.append((group, message))
        while self.keep is not None and len(self.kept) > self.keep:
            self.dropped = self.kept.popleft()[1].seq

    def _record_sent(self, targets: Iterable[int], now: int) -> None:
        if self.heartbeat_ns is not None:
            self.last_sent_ns.update(dict.fromkeys(targets, now))

    def make_null_messages(self, times: Times, now: int) -> list[Effect]:
        """Return null messages for the members to which nothing was sent for `heartbeat_s`."""
        if self.heartbeat_ns is None or now < self.next_heartbeat_ns:
            return []
        spoke_ns = self.last_sent_ns
        member, others = self.member, self.member.others()
        silent = [k for k in others if now - spoke_ns.setdefault(k, now) >= self.heartbeat_ns]
        self._record_sent(silent, now)
        self.next_heartbeat_ns = min((spoke_ns[k] for k in others), default=now) + self.heartbeat_ns
        lt, pt_ns = times
        return [
            Transmit(group, NullMessage(member.me, 0, member.note_payload, last, lt, pt_ns))
            for last, group in self._group_by_last_number(silent, self.sent)
        ]

    # -- recovery -----------------------------------------------------------------------------

    def list_gaps(self, member: int) -> list[tuple[int, int]]:
        """Return (first, last) of gaps, ascending; only the last is surely for this member."""
        found = []
        low = self.find_last_accepted(member) + 1
        for before, message in sorted(self.ahead[member].items()):
            if before >= low:
                found.append((low, before))
            low = message.seq + 1
        if self.high[member] >= low:
            found.append((low, self.high[member]))
        return found

    def find_first_gap(self, member: int) -> MessageId | None:
        """Return the last message of a member's first gap, if there is one."""
        if self.ahead[member]:
            return MessageId(member, min(self.ahead[member]))
        high = self.high[member]
        return MessageId(member, high) if high > self.find_last_accepted(member) else None

    def request_gaps(self, member: int, gaps: Iterable[tuple[int, int]], now: int) -> list[Effect]:
        if self.retry_ns is None or member not in self.before:
            return []
        self.last_request_ns[member] = now
        me, note = self.member.me, self.member.note_payload
        return [
            Transmit((member,), RetransmissionRequest(me, 0, note, first, last))
            for first, last in gaps
        ]

    def repeat_requests(self, now: int) -> list[Effect]:
        """Return requests for all gaps whose last request is `retry_s` ago."""
        effects: list[Effect] = []
        for member, asked_ns in sorted(self.last_request_ns.items()):
            if self.find_first_gap(member) is None:
                del self.last_request_ns[member]
            elif self.retry_ns is not None and now - asked_ns >= self.retry_ns:
                effects += self.request_gaps(member, self.list_gaps(member), now)
        return effects

    def answer(self, request: RetransmissionRequest) -> Sequence[Effect]:
        first, last = request.first, request.last
        effects: list[Effect] = []
        if first <= self.dropped:
            gone = Gone(self.member.me, 0, self.member.note_payload, min(last, self.dropped))
            effects.append(Transmit((request.sender,), gone))
        if self.exclusive_end:
            last -= 1
        effects += [
            Transmit((request.sender,), message)
            for group, message in self.kept
            if request.sender in group and first <= message.seq <= last
        ]
        return effects

    # -- accepting ----------------------------------------------------------------------------

    def find_last_accepted(self, member: int) -> int:
        """Return the number up to which all is accepted or abandoned (REQ_j - 1)."""
        newest = self.newest[member]
        return max(newest, self.abandoned.get(member, 0)) if self.abandoned else newest

    def accept_in_sequence(self, member: int) -> list[AcceptedMessage]:
        """Accept the messages after a gap that follow without a gap now; return them in order."""
        run = []
        ahead = self.ahead[member]
        while (at := self._find_next(member)) is not None:
            message = ahead.pop(at)
            given_up = message.before > self.newest[member]
            missing = (MessageId(member, message.before),) if given_up else ()
            self.newest[member] = message.seq
            run.append(AcceptedMessage(message, missing))
        self.high[member] = max(self.high[member], self.newest[member])
        if self.find_first_gap(member) is None:
            self.last_request_ns.pop(member, None)
        return run

    def _find_next(self, member: int) -> int | None:
        """Return the number that precedes the next message to accept, if that is here."""
        ahead, newest = self.ahead[member], self.newest[member]
        if newest in ahead or not ahead:
            return newest if ahead else None
        first = min(ahead)
        return first if first <= self.find_last_accepted(member) else None

    def abandon_gap(self, member: int, last: int) -> list[AcceptedMessage]:
        """Skip the missing numbers up to `last`; return the messages that can now be accepted."""
        self.abandoned[member] = max(last, self.abandoned.get(member, 0))
        return self.accept_in_sequence(member)

    def is_old(self, message: StampedMessage) -> bool:
        """Return whether a message is a duplicate, or arrives after it was abandoned."""
        sender, seq, before = message.sender, message.seq, message.before
        return seq <= self.newest[sender] or before in self.ahead[sender]

    # -- checks -------------------------------------------------------------------------------

    def check(self, message: AnyMessage) -> None:
        sender = message.sender
        if sender not in self.newest:
            raise UnknownMemberError(f"a message from member {sender}, who is not in the group")
        last = self.last.get(sender, MAX_NUMBER)
        match message:
            case StampedMessage():
                self._check_number(sender, message.seq, message.before, last)
            case NullMessage():
                if not 0 <= message.last <= last:
                    raise SequenceError(
                        f"member {sender} names {message.last} as its last message; its "
                        "numbers end before"
                    )
            case RetransmissionRequest():
                if not 1 <= message.first <= message.last <= self.before.get(sender, self.sent):
                    raise SequenceError(
                        f"member {sender} requests messages {message.first} to "
                        f"{message.last}; the last one to it is "
                        f"{self.before.get(sender, self.sent)}"
                    )
            case Gone():
                if not 1 <= message.last <= self.high[sender]:
                    raise SequenceError(
                        f"member {sender} reports message {message.last} as no longer "
                        f"kept; its newest known one is {self.high[sender]}"
                    )

    def _check_number(self, sender: int, seq: int, before: int, last: int) -> None:
        if not 1 <= seq <= last or not 0 <= before < seq:
            raise SequenceError(
                f"message {seq} after {before} from member {sender}: numbers are 1 to "
                f"{last}, and the previous one is lower"
            )
        newest = self.newest[sender]
        if before < newest < seq:
            raise SequenceError(
                f"message {seq} from member {sender} names {before} as previous, but "
                f"message {newest} came between"
            )
        there = self.ahead[sender].get(before)
        if there is not None and there.seq != seq:
            raise SequenceError(
                f"messages {there.seq} and {seq} from member {sender} both follow {before}"
            )

    # -- membership, snapshot -------------------------------------------------------------------

    def join(self, member: int) -> None:
        for table in (self.before, self.newest, self.high):
            table[member] = 0
        self.ahead[member] = {}

    def adopt(self, others: Sequence[int], last: dict[int, int]) -> None:
        self.reset(others)
        self.last = last
        for gone in last:
            self.before.pop(gone, None)
        self.newest.update(last)
        self.high.update(last)

    def leave(self, member: int, last: int) -> list[StampedMessage]:
        """Stop sending to a departed member; return the impossible messages of it."""
        self.last[member] = last
        for table in (self.before, self.last_sent_ns, self.last_request_ns):
            table.pop(member, None)
        self.high[member] = min(self.high[member], last)
        ahead = self.ahead[member]
        late = sorted(before for before, one in ahead.items() if one.seq > last)
        return [ahead.pop(before) for before in late]
