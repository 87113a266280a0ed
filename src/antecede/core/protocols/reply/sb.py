"""S_b, semantic order: a reply is delivered after the message that it replies to.

Source: Bhavanasi and Iyer, sections IV and VI. The application names the parent when it sends. So
the relation is not happened-before: unrelated messages never wait for each other.

Theory of operation
-------------------
State: one ordering list per member (`delivered`, see `core.clocks.intervals`) with the numbers that
this member sent or delivered (the ordering tree OT of section IV.B.3), and the out-of-sequence
store (`reply.hold_back`). A message `<mid_c, mid_p, data>` is delivered on arrival when its parent
is in the ordering lists or is the root. Then its dependents in the store follow depth first
(Algorithm 3), with an explicit stack.

Extensions of the source: duplicates and conflicting messages are discarded; members join and leave.
The store can be finite, a parent may never arrive, and a message may have several parents
(`reply.policy`). Algorithms 1 and 2 are also available as printed (`reply.state`). The numbers of
dropped messages are kept (`dropped`), and replies to them are dropped too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, ClassVar

from antecede.core.clocks import MAX_NUMBER, MonotonicClock, contains, insert, plain, seconds_text
from antecede.core.protocols.base import (
    AFTER_LEAVE,
    DUPLICATE,
    NOTHING,
    OWN,
    Deliver,
    DeliverIncomplete,
    Discard,
    Effect,
    Hold,
    MessageId,
    Transmit,
)
from antecede.core.protocols.membership import changes
from antecede.core.protocols.reply.hold_back import Key
from antecede.core.protocols.reply.messages import SbMessage
from antecede.core.protocols.reply.policy import HOLD, REFUSE, RELEASE, ReplyPolicy, check_policy
from antecede.core.protocols.reply.state import SbState
from antecede.errors import LocalError, RemoteError, SequenceError, UnknownMemberError

CONFLICT = "conflict: a held message has this id and other content"
STORE_FULL = "rejected: the store is full; offer the message again"
DROPPED = "dropped"
"""Common prefix of the reasons for which messages are dropped."""


def make_dependent_reason(parent: Key) -> str:
    """Return the discard reason for a reply to a dropped message."""
    return f"{DROPPED}: reply to message {parent[1]} of member {parent[0]}, which was dropped"


class SemanticOrder(SbState):
    """Member of a group with S_b order.

    - `several_parents`: a message may reply to several messages and waits for all of them (an
      extension; "uniqueness", III.A.2, allows one).
    - `missing_parent`: treatment of a message that has been held for `patience_s` seconds. "hold":
      it waits on. "release": `DeliverIncomplete`. "set_aside": `Discard`, with all replies to it.
    - `store_limit`: largest number of held messages; None: no limit.
    - `overflow`: treatment of one more. "refuse": it is rejected and must be offered again.
      "release" and "set_aside" apply to the oldest.
    - `as_published`: True, "algorithm-1" or "algorithm-2" use the ordering list as printed.

    `counts` has the numbers of conflicting, rejected, released and dropped messages. Raises
    LocalError.
    """

    own_options: ClassVar[frozenset[str]] = frozenset(
        {"missing_parent", "patience_s", "store_limit", "overflow"}
    )

    def __init__(
        self,
        me: int,
        members: Iterable[int],
        *,
        several_parents: bool = False,
        missing_parent: str = HOLD,
        patience_s: float | None = None,
        store_limit: int | None = None,
        overflow: str = REFUSE,
        as_published: bool | str = False,
    ) -> None:
        policy = ReplyPolicy(
            *(several_parents, missing_parent, patience_s, plain(store_limit)),
            *(overflow, as_published),
        )
        super().__init__(me, members, check_policy(policy))

    # -- sending ----------------------------------------------------------------------------

    def send(
        self, payload: Any, *, now: int | None = None, after: Sequence[MessageId] = ()
    ) -> Sequence[Effect]:
        """Transmit a message that replies to `after` (RESPOND state, IV.C.6).

        Raises LocalError for several parents where one is allowed, and for unknown ones.
        """
        parents = tuple(MessageId(*parent) for parent in dict.fromkeys(after))
        if len(parents) > 1 and not self.policy.several_parents:
            raise LocalError(
                "a message replies to one message (Bhavanasi and Iyer, III.A.2), not to "
                f"{len(parents)}; name one, or set several_parents=True for every member"
            )
        for sender, seq in parents:
            if not contains(self.delivered.get(sender, ()), seq):
                raise LocalError(
                    f"cannot reply to message {seq} of member {sender}: it was not delivered here"
                )
        self.sent += 1
        self._record(self.me, self.sent)
        message = SbMessage(self.me, self.sent, parents, payload)
        return (Transmit(self.receivers, message),)

    # -- receiving --------------------------------------------------------------------------

    def receive(self, message: SbMessage, *, now: int | None = None) -> Sequence[Effect]:
        """Deliver the message and its dependents, or hold it (RECEIVE state, IV.C.3)."""
        reading, clock = self._read_clock(now)
        sender, seq, parents, _ = message
        known = self._check(sender, seq, parents)
        self.own_clock = clock
        if sender == self.me:
            return (Discard(message, OWN),)
        if contains(known, seq):
            return (Discard(message, DUPLICATE),)
        if self.store.rows and (sender, seq) in self.store.rows:
            return (self._discard_copy(message),)
        if self.dropped and (reason := self._find_drop_reason(message)):
            return (Discard(message, reason),)
        missing = [parent for parent in parents if not self._is_delivered(parent)]
        if missing:
            return self._hold(message, missing, reading)
        if not self.store.rows:
            self._record(sender, seq)
            return (Deliver(message),)
        return self._deliver_thread(message, Deliver(message))

    def would_hold(self, message: SbMessage, now: int | None = None) -> bool:
        self._read_clock(now)
        sender, seq, parents, _ = message
        known, rows, limit = self._check(sender, seq, parents), self.store.rows, self.policy
        if sender == self.me or contains(known, seq) or (sender, seq) in rows or self.dropped:
            return False
        room = limit.store_limit is None or len(rows) < limit.store_limit
        return room and any(not self._is_delivered(parent) for parent in parents)

    def _check(self, sender: int, seq: int, parents: Sequence[MessageId]) -> list[int]:
        known = self.delivered.get(sender)
        if known is None or not 0 < seq <= MAX_NUMBER or sender == self.me or self.last:
            self._check_id(sender, seq)
        for parent in parents:
            member, number = parent
            if member not in self.delivered or not 0 < number <= MAX_NUMBER or member == self.me:
                self._check_id(member, number)
            if self.last:
                self._check_id(member, number)
            if member == sender and number == seq:
                raise RemoteError(f"message {seq} of member {sender} replies to itself")
        if len(parents) > 1:
            self._check_several_parents(sender, seq, parents)
        return self.delivered[sender]

    def _check_id(self, sender: int, seq: int) -> None:
        if sender not in self.delivered:
            raise UnknownMemberError(f"message {seq} of member {sender}, who is not in the group")
        if not 1 <= seq <= MAX_NUMBER:
            raise SequenceError(f"message number {seq} of member {sender}; numbers start at 1")
        if sender == self.me and seq > self.sent:
            raise SequenceError(
                f"message {seq} of member {sender}, but this member has sent {self.sent}: "
                f"{changes.STALE_STATE}"
            )
        if seq > self.last.get(sender, seq):
            raise SequenceError(
                f"message {seq} of member {sender}, who left after message {self.last[sender]}"
            )

    def _check_several_parents(self, sender: int, seq: int, parents: Sequence[MessageId]) -> None:
        what = f"message {seq} of member {sender} replies to"
        if not self.policy.several_parents:
            raise RemoteError(f"{what} {len(parents)} messages; this group allows one")
        if len(set(parents)) < len(parents):
            raise RemoteError(f"{what} the same message twice")

    def _is_delivered(self, parent: MessageId) -> bool:
        sender, seq = parent
        if self.published_lists is not None:
            return seq in self.published_lists[sender]
        return contains(self.delivered[sender], seq)

    def _record(self, sender: int, seq: int) -> None:
        insert(self.delivered[sender], seq)
        if self.published_lists is not None:
            self.published_lists[sender].insert(seq)

    def _discard_copy(self, message: SbMessage) -> Discard:
        if self.store.rows[message[:2]].message == message:
            return Discard(message, DUPLICATE)
        self.counts["conflict"] += 1
        return Discard(message, CONFLICT)

    def _deliver_thread(self, message: SbMessage, effect: Effect) -> list[Effect]:
        """Record a message and deliver its dependents, depth first (Algorithm 3)."""
        effects = [effect]
        self._record(message.sender, message.seq)
        stack = self.store.take_deliverable(message[:2])[::-1]
        while stack:
            message = stack.pop()
            effects.append(Deliver(message))
            self._record(message.sender, message.seq)
            stack.extend(reversed(self.store.take_deliverable(message[:2])))
        return effects

    def _hold(self, message: SbMessage, missing: Sequence[MessageId], now: int) -> Sequence[Effect]:
        store, limit = self.store, self.policy.store_limit
        if limit is None or len(store.rows) < limit:
            store.put(message, missing, now)
            return (Hold(message, tuple(missing)),)
        if self.policy.overflow == REFUSE:
            self.counts["refused"] += 1
            return (Discard(message, STORE_FULL),)
        if self.policy.overflow == RELEASE:
            return self._make_room(message, missing, now)
        effects = self._drop_thread(store.find_oldest().key, f"{DROPPED}: the store is full")
        # The dropped message may have been the parent, or have released it: retry.
        return [*effects, *self.receive(message, now=now - self.own_clock.shift_ns)]

    def _make_room(
        self, message: SbMessage, missing: Sequence[MessageId], now: int
    ) -> Sequence[Effect]:
        """Release the oldest message held, from the top of its thread; it may be the new one."""
        store = self.store
        oldest = store.find_oldest().key
        store.put(message, missing, now)
        effects = self._release(oldest)
        if message[:2] in store.rows:
            effects.append(Hold(message, store.list_missing(message[:2])))
        return effects

    # -- missing parents --------------------------------------------------------------------

    def _read_clock(self, now: int | None) -> tuple[int, MonotonicClock]:
        if self.policy.patience_s is None:
            return 0, self.own_clock
        return self.own_clock.at(now, "an order with patience_s")

    @property
    def needs_ticks(self) -> bool:
        return self.policy.patience_s is not None

    def tick(self, now: int) -> Sequence[Effect]:
        patience_ns = self.policy.patience_ns
        if patience_ns is None:
            return NOTHING
        now, self.own_clock = self._read_clock(now)
        effects: list[Effect] = []
        while self.store.rows and (row := self.store.find_oldest()).since + patience_ns <= now:
            if self.policy.missing_parent == RELEASE:
                effects += self._release(row.key)
            else:
                sender, seq = self.store.list_missing(row.key)[0]
                waited = seconds_text(patience_ns)
                reason = f"{DROPPED}: parent {sender}:{seq} did not arrive within {waited} s"
                effects += self._drop_thread(row.key, reason)
        return effects

    def declare_lost(self, lost: Collection[MessageId]) -> Sequence[Effect]:
        """Deliver the messages that wait only for lost ones, as incomplete, and dependents."""
        never, effects = set(lost), list[Effect]()
        for key in [
            key for key in self.store.rows if never.issuperset(self.store.list_missing(key))
        ]:
            message, missing = self.store.take(key)
            self.counts["released"] += 1
            effects += self._deliver_thread(message, DeliverIncomplete(message, missing))
        return effects

    def _release(self, key: Key) -> list[Effect]:
        effects: list[Effect] = []
        store = self.store
        while key in store.rows:
            for blocker in store.list_blockers(key):
                if blocker in store.rows:
                    message, missing = store.take(blocker)
                    self.counts["released"] += 1
                    effects += self._deliver_thread(message, DeliverIncomplete(message, missing))
        return effects

    def _drop_thread(self, key: Key, reason: str) -> list[Effect]:
        effects: list[Effect] = []
        stack = [(key, reason)]
        while stack:
            key, reason = stack.pop()
            if key in self.store.rows:
                message, _ = self.store.take(key)
                effects.append(self._drop(message, reason))
                below = make_dependent_reason(key)
                stack.extend((answer, below) for answer in reversed(self.store.list_replies(key)))
        return effects

    def leave(self, member: int, last: int) -> Sequence[Effect]:
        super().leave(member, last)
        late = sorted(key for key in self.store.rows if key[0] == member and key[1] > last)
        return [effect for key in late for effect in self._drop_thread(key, AFTER_LEAVE)]

    def _drop(self, message: SbMessage, reason: str) -> Discard:
        insert(self.dropped.setdefault(message.sender, []), message.seq)
        self.counts["set_aside"] += 1
        return Discard(message, reason)

    def _find_drop_reason(self, message: SbMessage) -> str:
        """Return the reason to drop an arriving message, or ""; record its number."""
        dropped = self.dropped
        if contains(dropped.get(message.sender, ()), message.seq):
            return f"{DROPPED} before"
        for sender, seq in message.parents:
            if contains(dropped.get(sender, ()), seq):
                return self._drop(message, make_dependent_reason((sender, seq))).reason
        return ""


Sb = SemanticOrder
