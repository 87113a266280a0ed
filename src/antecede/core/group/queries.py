"""Queries of a `Group`: held and missing messages, frontier, threads, stability."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any

from antecede.core.clocks import contains
from antecede.core.group.effects import GroupPart
from antecede.core.group.message import (
    HeldMessage,
    Id,
    Message,
    Missing,
    Packet,
    Sent,
    Stats,
    Thread,
)
from antecede.core.group.options import insert_names
from antecede.core.protocols import Addressing, Held, MessageId, Relation
from antecede.errors import LocalError
from antecede.formatting import quote

_BY_NUMBER = (Relation.FIFO, Relation.BY_DELIVERY, Relation.BY_RECEIPT)


class Queries(GroupPart):
    """Read-only queries of the state."""

    def list_held(self) -> list[HeldMessage]:
        """Return every held message with what it waits for."""
        state = self._state
        joins = len(state.roster.joins)
        held = self._name_blocked(state.protocol.list_held())
        return held + [
            HeldMessage(m, (), (), None, at - joins)
            for m, at, _ in state.newer_view_frames.values()
        ]

    def map_held_by_id(self) -> dict[tuple[int, int], HeldMessage]:
        """Return what the protocol holds, by the `id` of `effects`."""
        protocol = self._state.protocol
        held = protocol.list_held()
        ids = (protocol.identity(entry.message) for entry in held)
        described = self._name_blocked(held)
        return {(key.sender, key.seq): entry for key, entry in zip(ids, described, strict=True)}

    def _name_blocked(self, held: Sequence[Held]) -> list[HeldMessage]:
        state, described = self._state, []
        missing: tuple[MessageId, ...] | None = None
        waits_for: tuple[Id, ...] = ()
        for entry in held:
            if entry.missing is not missing:
                missing, waits_for = entry.missing, state.name_ids(entry.missing)
            silent = tuple([state.roster.name(k) for k in entry.silent]) if entry.silent else ()
            message = state.to_message(entry.message)
            reason = insert_names(entry.reason, state.roster.names) if entry.reason else ""
            described.append(HeldMessage(message, waits_for, silent, entry.until_ns, 0, reason))
        return described

    def list_missing(self) -> list[Missing]:
        """Return the missing messages that held ones depend on, by sender.

        Held messages are not included; members are, if any message of theirs is awaited (orders by
        clocks). A gap is one entry (`first` to `seq`) if all messages of a sender arrive in order.
        O(held messages and members).
        """
        protocol, name = self._state.protocol, self._state.roster.name
        blocked = protocol.list_held()
        held_ids = {protocol.identity(entry.message) for entry in blocked}
        messages = Counter(chain.from_iterable(entry.missing for entry in blocked))
        members = Counter(chain.from_iterable(entry.silent for entry in blocked))
        absent = [entry for entry in messages if entry not in held_ids]
        first = self._find_gap_starts(absent, held_ids) if absent else {}
        roots = [
            Missing(name(entry.sender), entry.seq, messages[entry], first.get(entry))
            for entry in absent
        ]
        roots += [Missing(name(member), None, count) for member, count in members.items()]
        return sorted(roots, key=lambda root: (root.sender, root.seq or 0))

    def _find_gap_starts(
        self, absent: Sequence[MessageId], held_ids: set[MessageId]
    ) -> dict[tuple[int, int], int]:
        protocol = self._state.protocol
        every = protocol.addressing is Addressing.ALL and not self._state.renumbers
        if not every or protocol.guarantee.relation not in _BY_NUMBER:
            return {}
        known: dict[int, list[int]] = {sender: [0] for sender, _ in absent}
        for member, bounds in protocol.get_delivered_ranges().items():
            if member in known:
                known[member] += (stop - 1 for stop in bounds[1::2])
        for sender, seq in held_ids:
            if sender in known:
                known[sender].append(seq)
        for numbers in known.values():
            numbers.sort()
        begins = (
            (entry, known[entry[0]][bisect_left(known[entry[0]], entry[1]) - 1] + 1)
            for entry in absent
        )
        return {(sender, seq): begin for (sender, seq), begin in begins if begin < seq}

    def stats(self) -> Stats:
        """Return the counters, in O(1)."""
        state = self._state
        tally = state.counters
        oldest = next(iter(tally.held_since), None)
        return Stats(
            members=len(state.protocol.members),
            sent=tally.sent,
            delivered=tally.delivered,
            released=tally.delivered_incomplete,
            held=state.protocol.count_held(),
            ahead=len(state.newer_view_frames),
            oldest=None if oldest is None else state.name_ids([oldest])[0],
            held_since_ns=None if oldest is None else tally.held_since[oldest],
            duplicates=tally.duplicates,
            discarded=dict(tally.discarded),
            rejected=dict(tally.rejected),
        )

    def frontier(self) -> dict[str, tuple[tuple[int, int], ...]]:
        """Return the sequence numbers delivered here by member, as (first, last) ranges.

        Own numbers are those sent, or delivered in turn (total order). With chosen receivers a
        range includes numbers that were not for this member. Raises LocalError in hierarchical
        roles.
        """
        if self._state.renumbers:
            raise LocalError(
                f"order {self._state.order!r} renumbers messages, so it has no frontier by sender"
            )
        runs: dict[str, tuple[tuple[int, int], ...]] = {}
        for member, bounds in sorted(self._state.protocol.get_delivered_ranges().items()):
            pairs = zip(bounds[::2], bounds[1::2], strict=True)
            runs[self._state.roster.name(member)] = tuple((a, stop - 1) for a, stop in pairs)
        return runs

    def last_seq(self, member: str | None = None) -> int:
        """Return the highest known number of a member, held or delivered; 0: none.

        For this member (default) it is the number sent, which the others pass to `leave`. For a
        departed one it is that number. Raises LocalError for an unknown name.
        """
        state = self._state
        name = state.name if member is None else member
        number = state.number(name)
        if state.renumbers and (name != state.name or not state.protocol.application):
            raise LocalError(
                f"order {state.order!r} renumbers messages, so numbers of {name} are unknown here; "
                f"call last_seq() in the group of {name}"
            )
        departed_last = state.protocol.list_departed().get(number)
        if departed_last is not None:
            return departed_last
        bounds = () if state.renumbers else state.protocol.get_delivered_ranges().get(number, ())
        # Messages that count as delivered may never have arrived (`start_from`).
        heard = max(state.incarnations.find_highest_seq(name), bounds[-1] - 1 if bounds else 0)
        # Own messages without receivers count too.
        return max(heard, state.sent) if name == state.name else heard

    def list_held_packets(self) -> list[Packet]:
        """Return held messages as packets without receivers, for a joining member."""
        state = self._state
        wires = [self._codec.encode(entry.message) for entry in state.protocol.list_held()]
        return [Packet((), wire) for wire in (*wires, *state.newer_view_frames)]

    def thread(self, message: Message | Sent | Id) -> Thread:
        """Return the tree of replies around a message, from its first message (order "reply").

        Raises LocalError in other orders, and for an unknown message.
        """
        state = self._state
        if not state.by_reply:
            raise LocalError(f"order {state.order!r} has no threads; use order 'reply'")
        named = state.check_reply_to(message, "a thread's message")
        if len(named) != 1:
            raise LocalError(
                f"a thread has one message, got {len(named)}; pass one delivered Message, the "
                "result of send, or (sender, number)"
            )
        (one,) = named
        if one not in state.threads:
            raise LocalError(f"unknown message {quote(one[1])} of {one[0]}: never here, or dropped")
        runs = state.protocol.get_delivered_ranges()

        def was_here(message: Id) -> bool:
            number = state.roster.numbers.get(message[0])
            return number is not None and contains(tuple(runs.get(number, ())), message[1])

        return state.threads.tree(state.threads.root(one), was_here)

    def get_known_seq(self, member: str, of: str) -> int:
        """Return the last number of `of` that `member` is known to have. Only in order "matrix"."""
        return int(
            self._get_matrix_method("knows")(self._state.number(member), self._state.number(of))
        )

    def stable_seqs(self) -> dict[str, int]:
        """Return by member the last number that all are known to have. Only in order "matrix"."""
        seqs = self._get_matrix_method("stable")()
        return {self._state.roster.name(number): count for number, count in sorted(seqs.items())}

    def _get_matrix_method(self, method: str) -> Any:
        function = getattr(self._state.protocol, method, None)
        if function is None:
            raise LocalError(
                f"order {self._state.order!r} does not track what other members have; use 'matrix'"
            )
        return function

    def topics(self) -> tuple[str, ...]:
        """Return all topics with a subscriber, sorted. Raise LocalError if the order has none."""
        subscriptions = getattr(self._state.protocol, "subscriptions", None)
        if subscriptions is None:
            raise LocalError(f"order {self._state.order!r} has no topics; use a topic order")
        return tuple(subscriptions.all_topics())

    def subscriptions(self) -> dict[str, tuple[str, ...]]:
        """Return topics by member, also of departed ones. Raise LocalError if there are none."""
        self.topics()
        state = self._state
        known = getattr(state.protocol, "subscriptions").topics  # noqa: B009 - topic orders only
        names = state.roster.names
        return {names[number]: tuple(sorted(own)) for number, own in known.items() if own}
