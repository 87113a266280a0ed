"""State of a member of an S_b group: ordering lists, store, membership, snapshot and sizes.

Source: Bhavanasi and Iyer, sections IV.B.3 and VI.A. The group is static there; joins and leaves
are extensions. `reply.sb` has the message rules. The ordering list of a departed member is kept,
since a reply to one of its messages may arrive at any time.

`PublishedOrderingList` reproduces the two misprints of Bhavanasi and Iyer (repaired:
`core.clocks.intervals`). Algorithm 1 (IsPresentInOL), line 3, returns true for `H_k <= seqno`: a
number inside a node is denied, one above the last node affirmed. Algorithm 2 (InsertInOL), line 8,
writes `H_k` for `H_{k-1}`: the number is not recorded and the next node is destroyed. Where there
is no node k, line 8 follows the prose (`H_{k-1}`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from antecede.core.clocks import (
    MAX_NUMBER,
    NODE_BYTES,
    Intervals,
    MonotonicClock,
    contains,
    nodes,
    with_all_up_to,
)
from antecede.core.protocols.base import NOTHING, Effect, Guarantee, Held, MessageId, Protocol
from antecede.core.protocols.membership import changes
from antecede.core.protocols.reply import messages
from antecede.core.protocols.reply.hold_back import ReplyStore
from antecede.core.protocols.reply.messages import SbMessage
from antecede.core.protocols.reply.policy import (
    ALGORITHM_1,
    ALGORITHM_2,
    ReplyPolicy,
    find_guarantee,
)
from antecede.errors import LocalError, RemoteError

Node = tuple[int, int]


class PublishedOrderingList:
    """Nodes (L, H) of one member; each algorithm as printed or as repaired."""

    def __init__(
        self, nodes: Iterable[Node] = (), *, published_lookup: bool, published_insert: bool
    ) -> None:
        self.nodes = list(nodes)
        self.published_lookup = published_lookup
        self.published_insert = published_insert

    def __contains__(self, seq: int) -> bool:
        """Apply Algorithm 1, IsPresentInOL."""
        high = next((high for low, high in reversed(self.nodes) if low <= seq), None)
        if high is None:
            return False
        return high <= seq if self.published_lookup else seq <= high

    def insert(self, seq: int) -> None:
        """Apply Algorithm 2, InsertInOL; `k` is the first node above, which may not exist."""
        nodes = self.nodes
        k = next((k for k, (low, _) in enumerate(nodes) if low > seq), len(nodes))
        follows = k > 0 and nodes[k - 1][1] == seq - 1
        precedes = k < len(nodes) and nodes[k][0] == seq + 1
        if follows and precedes:
            nodes[k - 1 : k + 1] = [(nodes[k - 1][0], nodes[k][1])]
        elif precedes:
            nodes[k] = (seq, nodes[k][1])
        elif follows:
            at = k if self.published_insert and k < len(nodes) else k - 1
            nodes[at] = (nodes[at][0], seq)
        else:
            nodes.insert(k, (seq, seq))


SEQNO_BYTES = 4
NOT_DEPARTED = -1


class SbState(Protocol):
    """State of a member of an S_b group, without the message rules."""

    control_power: ClassVar[int | None] = 0

    guarantee: Guarantee = find_guarantee(ReplyPolicy())

    def __init__(self, me: int, members: Iterable[int], policy: ReplyPolicy) -> None:
        super().__init__(me, members)
        self.sent = 0
        self.delivered: dict[int, list[int]] = {member: [] for member in self.members}
        self.dropped: dict[int, list[int]] = {}
        self.last: dict[int, int] = {}
        self.counts = {"conflict": 0, "refused": 0, "released": 0, "set_aside": 0}
        self._set_up(policy)

    def _set_up(self, policy: ReplyPolicy) -> None:
        self.policy = policy
        self.own_clock = MonotonicClock()
        self.guarantee = find_guarantee(policy)
        self.store = ReplyStore()
        self.receivers = self.others()
        self.published_lists: dict[int, PublishedOrderingList] | None = None
        if policy.as_published:
            self.published_lists = {
                member: self._make_published_list() for member in self.delivered
            }

    def _make_published_list(self, kept: Iterable[tuple[int, int]] = ()) -> PublishedOrderingList:
        which = self.policy.as_published
        return PublishedOrderingList(
            kept,
            published_lookup=which in (True, ALGORITHM_1),
            published_insert=which in (True, ALGORITHM_2),
        )

    def list_held(self) -> tuple[Held, ...]:
        store = self.store
        return tuple(Held(row.message, store.list_missing(key)) for key, row in store.rows.items())

    def count_held(self) -> int:
        return len(self.store.rows)

    def get_delivered_ranges(self) -> Mapping[int, Sequence[int]]:
        return dict(self.delivered)

    # -- membership -------------------------------------------------------------------------

    def join_state(self) -> Hashable:
        """Return (member, ranges of its ordering list, its last number or -1) for all members."""
        return tuple(
            (member, tuple(bounds), self.last.get(member, NOT_DEPARTED))
            for member, bounds in sorted(self.delivered.items())
        )

    def install_join_state(self, state: Any) -> None:
        changes.check_unused(self.sent, self.store.rows, *self.delivered.values())
        try:
            rows = {member: (list(bounds), last) for member, bounds, last in state}
            sound = all(_is_join_row(*row) for row in rows.items())
        except (TypeError, ValueError) as error:
            raise RemoteError(f"not a join state of an S_b group: {error}") from error
        if not sound:
            raise RemoteError("join state: an ordering list that is not in ascending order")
        rows[self.me] = ([], NOT_DEPARTED)
        self.delivered = {member: bounds for member, (bounds, _) in rows.items()}
        self.last = {member: last for member, (_, last) in rows.items() if last != NOT_DEPARTED}
        self.members = changes.select_current(self.delivered, self.last)
        self._set_up(self.policy)
        if self.published_lists is not None:
            for member, bounds in self.delivered.items():
                self.published_lists[member] = self._make_published_list(_bounds_to_nodes(bounds))

    def start_from(self, newest: Mapping[int, int]) -> None:
        for member, number in newest.items():
            self.delivered[member] = with_all_up_to(self.delivered[member], number)
            if self.published_lists is not None:
                self.published_lists[member] = self._make_published_list(
                    _bounds_to_nodes(self.delivered[member])
                )

    def check_listening(self) -> None:
        raise LocalError(
            "a reply names its parent, but not the parent's causes. A member that starts "
            "at the first message that it receives cannot tell what precedes it: start "
            "from an invitation or known numbers, or create this group with "
            "missing_parent='release' and patience_s"
        )

    def join(self, member: int) -> Sequence[Effect]:
        self.members = changes.add_members(self.members, self.delivered, (member,))
        self.receivers = self.others()
        self.delivered[member] = []
        if self.published_lists is not None:
            self.published_lists[member] = self._make_published_list()
        return NOTHING

    def unjoin(self, members: Sequence[int]) -> None:
        for member in members:
            del self.delivered[member]
            if self.published_lists is not None:
                del self.published_lists[member]
        self.members = changes.remove_members(self.members, members)
        self.receivers = self.others()

    def list_departed(self) -> Mapping[int, int]:
        return self.last

    def leave(self, member: int, last: int) -> Sequence[Effect]:
        changes.check_departure(self.members, self.me, member)
        bounds = self.delivered[member]
        changes.check_last_number(member, last, bounds[-1] - 1 if bounds else 0)
        self.members = changes.remove_members(self.members, (member,))
        self.receivers = self.others()
        self.last[member] = last
        return NOTHING

    # -- snapshot ---------------------------------------------------------------------------

    def snapshot(self) -> Hashable:
        printed = self.published_lists or {}
        store = self.store
        return (
            self.me,
            self.policy,
            self.sent,
            self.join_state(),
            tuple((member, tuple(bounds)) for member, bounds in sorted(self.dropped.items())),
            tuple(
                (row.message, row.since, store.list_missing(key)) for key, row in store.rows.items()
            ),
            tuple(self.counts.items()),
            tuple((member, tuple(kept.nodes)) for member, kept in sorted(printed.items())),
            self.own_clock,
        )

    def restore(self, state: Any) -> None:
        self.me, policy, self.sent, frontier, dropped, held, counts, printed, clock = state
        self.delivered = {member: list(bounds) for member, bounds, _ in frontier}
        self.last = {member: last for member, _, last in frontier if last != NOT_DEPARTED}
        self.members = changes.select_current(self.delivered, self.last)
        self._set_up(policy)
        self.own_clock = clock
        self.dropped = {member: list(bounds) for member, bounds in dropped}
        for message, since, missing in held:
            if message.sender not in self.delivered or not missing:
                raise ValueError(f"held: message {message.seq} of member {message.sender}")
            self.store.put(message, missing, since)
        if dict(counts).keys() != self.counts.keys():
            raise ValueError(f"counts of {sorted(dict(counts))}")
        self.counts = dict(counts)
        if self.published_lists is not None:
            self.published_lists = {
                member: self._make_published_list(kept) for member, kept in printed
            }
            if self.published_lists.keys() != self.delivered.keys():
                raise ValueError(f"lists as published: members {sorted(self.published_lists)}")

    def check_whole(self) -> None:
        known = self.delivered.keys() - {self.me}
        some = {"set aside": self.dropped.keys() - {self.me}}
        changes.check_consistency(self.me, self.members, known, self.last, {}, some)
        own = self.delivered.get(self.me, [])
        if own != list(Intervals.up_to(self.sent).bounds):
            raise ValueError(f"delivered: other own messages than the {self.sent} sent")
        for (sender, seq), row in self.store.rows.items():
            parents = row.message.parents
            if any(parent.sender not in self.delivered for parent in parents):
                raise ValueError(
                    f"held: message {seq} of member {sender} replies to an unknown member"
                )
            if contains(self.delivered[sender], seq):
                raise ValueError(f"held: message {seq} of member {sender} is delivered")

    # -- size, wire, description ------------------------------------------------------------

    def encode(self, message: SbMessage) -> bytes:
        return messages.encode(message)

    def decode(self, control: bytes, payload: Any) -> SbMessage:
        return messages.decode(control, payload)

    def control_bytes(self, message: SbMessage) -> int:
        """Return 16: `mid_c` and `mid_p`, 8 bytes each; 8 more for each further parent."""
        return messages.control_bytes(message)

    def storage_bytes(self) -> int:
        """Return 4 for the own counter, 8 per node, 8 for each id in a row of the store."""
        lists = (*self.delivered.values(), *self.dropped.values())
        in_lists = NODE_BYTES * sum(nodes(bounds) for bounds in lists)
        return SEQNO_BYTES + in_lists + self.store.storage_bytes()

    def causes(self, message: SbMessage) -> tuple[MessageId, ...]:
        return message.parents

    def mentions(self, message: SbMessage) -> tuple[int, ...]:
        return tuple(dict.fromkeys((message.sender, *(p.sender for p in message.parents))))

    def renumber(self, message: SbMessage, numbers: Mapping[int, int]) -> SbMessage:
        parents = tuple(MessageId(numbers[p.sender], p.seq) for p in message.parents)
        return message._replace(sender=numbers[message.sender], parents=parents)

    def describe(self, names: Mapping[int, str] | None = None) -> dict[str, str]:
        """Return seqno, OL (numbers by member) and OSMS in the source's notation.

        With `names`, member 1's message 3 is written `B3`, else `1:3`.
        """
        label = {member: f"{member}:" for member in self.delivered}
        label.update(names or {})
        lists = [
            f"{label[member]}{_format_range(low, stop - 1)}"
            for member, bounds in sorted(self.delivered.items())
            for low, stop in zip(bounds[::2], bounds[1::2], strict=True)
        ]
        rows = [
            ", ".join(f"{label[sender]}{seq}" for sender, seq in (row.key, *row.message.parents))
            for row in self.store.rows.values()
        ]
        return {
            "seqno": str(self.sent),
            "OL": " ".join(lists) or "empty",
            "OSMS": " ".join(f"<{row}>" for row in rows) or "empty",
        }


def _format_range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"


def _bounds_to_nodes(bounds: Sequence[int]) -> Iterable[tuple[int, int]]:
    return zip(bounds[::2], (stop - 1 for stop in bounds[1::2]), strict=True)


def _is_join_row(member: object, row: tuple[list[int], int]) -> bool:
    bounds, last = row
    numbers = [0, *bounds, MAX_NUMBER + 2]
    whole = all(isinstance(number, int) for number in (member, last, *bounds))
    ascending = all(low < high for low, high in pairwise(numbers))
    return whole and len(bounds) % 2 == 0 and ascending and last >= NOT_DEPARTED
