"""SES (Schiper, Eggli, Sandoz): causal order for messages to one, some or all members.

Source: Sahai et al. 2020, "Schiper-Eggli-Sandoz Protocol", which has only examples. The rule here:
member i keeps a clock C_i, the number of sends of each member that it knows of. For each other
member d it keeps a vector V_i[d]: sends before which no message to d may be delivered there. Many
have no entry. A message to the members D carries D, t = C_i after counting this send, and V_m =
V_i. Then V_i[d] := max(V_i[d], t) for every d in D. Member j delivers it when V_m has no entry for
j or V_m[j] <= C_j. Then it merges the other entries into V_j by maximum. It sets C_j := max(C_j,
t), and V_j[d] := max(V_j[d], t) for every co-destination d.

Theory of operation
-------------------
Vectors are packed lanes. V_m[d] <= t always holds, without the sender's own send. This is checked,
and `t - V_m[d]` is sent, since most of its lanes are small or 0.

Every message to j in the past of m has raised V_m[j] to its t, with one exception: all paths from
it to m lead through j, which had delivered it by then. C_j[k] >= x exactly when j delivered a
message that knows of k's send x. Delivery in order brings all messages to j in that message's past.
So V_m[j] <= C_j exactly when no message to j in the past of m is missing. So there is no causal
violation and no unnecessary wait. A message to j is a duplicate exactly when its number is at or
below C_j[sender], or it is held.

A held message is indexed under ONE lane k that is too low, in a heap by the value that C_j[k] must
reach. A delivery searches only the heaps of lanes that it raised.

`as_published` merges V as printed or as can be read (errata E17 to E19). True follows the printed
example, V_j := V_m. With "overwriting" each entry of V_m replaces that of V_j. "unicast-rule" omits
the co-destinations. Then C_j no longer detects copies, and intervals are used.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from antecede.core.clocks import (
    LANE_BITS,
    MAX_VALUE,
    VALUE_BITS,
    dominates,
    get,
    guards,
    intervals,
    items,
    merge,
    pack,
    unit,
    unpack,
)
from antecede.core.protocols.base import Effect, Guarantee, MessageId, Relation, Transmit
from antecede.core.protocols.membership import changes
from antecede.core.protocols.multicast.base import INTEGER_BYTES, AddressedProtocol
from antecede.core.protocols.multicast.ses_messages import (
    SesMessage,
    decode_message,
    encode_message,
)
from antecede.errors import DecodeError, LocalError, SequenceError, UnknownMemberError

if TYPE_CHECKING:
    from antecede.core.protocols.multicast.ses_messages import SesMessage

OVERWRITING = "overwriting"
UNICAST_RULE = "unicast-rule"


class PublishedMerge:
    """Published merge rule of V, with the numbers delivered under it as intervals by member."""

    def __init__(
        self, rule: bool | str, arrivals: Iterable[tuple[int, Iterable[int]]] = ()
    ) -> None:
        self.rule = rule
        self.arrivals = {member: list(bounds) for member, bounds in arrivals}

    @classmethod
    def from_option(cls, as_published: bool | str) -> PublishedMerge | None:
        """Return the rule of the option; None: the repaired rule. Raises LocalError."""
        if as_published not in (False, True, OVERWRITING, UNICAST_RULE):
            raise LocalError(
                f"as_published is {as_published!r}; choose false, true, {OVERWRITING!r} or "
                f"{UNICAST_RULE!r}"
            )
        return cls(as_published) if as_published else None

    def has_delivered(self, message: SesMessage) -> bool:
        return intervals.contains(self.arrivals.get(message.sender, ()), message.seq)

    def merge_into(self, member: Ses, message: SesMessage) -> None:
        intervals.insert(self.arrivals.setdefault(message.sender, []), message.seq)
        kept = {d: vector for d, vector in message.entries if d not in member.last}
        if self.rule == UNICAST_RULE:
            member.merge_entries(kept)
            return
        if self.rule == OVERWRITING:
            kept.pop(member.me, None)
            member.entries.update(kept)
        else:
            member.entries = kept
        member.merge_entries(dict.fromkeys(message.to, message.timestamp))

    def list_ranges(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        return tuple(sorted((k, tuple(bounds)) for k, bounds in self.arrivals.items()))


class Ses(AddressedProtocol):
    """Member of a group with causal order; needs reliable channels."""

    guarantee: Guarantee = Guarantee(Relation.BY_DELIVERY, joins=True, leaves=True)

    def __init__(
        self, me: int, members: Iterable[int], *, as_published: bool | str = False
    ) -> None:
        self.published_merge = PublishedMerge.from_option(as_published)
        self.clock = 0
        """C, packed."""
        self.entries: dict[int, int] = {}
        """V, each vector packed."""
        super().__init__(me, members)
        self.clear_index()

    def lay_out(self) -> None:
        lanes = max(self.known) + 1
        self.width = lanes * LANE_BITS
        self.guard = guards(lanes)
        own = pack((member, MAX_VALUE) for member in self.known)
        self.unknown_lanes = ((1 << self.width) - 1) ^ own
        """Bits that are 0 in any valid vector: guards, and lanes of unused numbers."""

    def send(
        self,
        payload: Any,
        *,
        now: int | None = None,
        after: Sequence[MessageId] = (),
        to: Iterable[int] | None = None,
    ) -> Sequence[Effect]:
        targets = self.resolve_targets(to)
        self.sent += 1
        self.clock += unit(self.me)
        carried = tuple(sorted(self.entries.items()))
        # V[d] <= C always, so this is the maximum.
        self.entries.update(dict.fromkeys(targets, self.clock))
        message = SesMessage(self.me, self.sent, payload, targets, self.clock, carried)
        return (Transmit(targets, message),)

    # -- missing causes -----------------------------------------------------------------------

    def find_needed(self, message: SesMessage) -> int:
        """Return V_m[me], the sends that must be known here; 0 without an entry."""
        return next((vector for member, vector in message.entries if member == self.me), 0)

    def find_shortfall(self, message: SesMessage) -> int:
        """Return the guard bits of the lanes in which C is below V_m[me]."""
        return self.guard & ~((self.clock | self.guard) - self.find_needed(message))

    def is_blocked(self, message: SesMessage) -> bool:
        return bool(self.find_shortfall(message))

    def list_missing(self, message: SesMessage) -> tuple[MessageId, ...]:
        """Return the newest required send of each lane that is too low; it may be to others."""
        wanted, behind, found = self.find_needed(message), self.find_shortfall(message), []
        while behind:
            member = behind.bit_length() // LANE_BITS - 1
            behind ^= unit(member) << VALUE_BITS
            found.append(MessageId(member, get(wanted, member)))
        return tuple(sorted(found))

    def is_duplicate(self, message: SesMessage) -> bool:
        if self.published_merge is not None:
            return self.published_merge.has_delivered(message)
        return message.seq <= get(self.clock, message.sender)

    # -- delivery -------------------------------------------------------------------------------

    def record(self, message: SesMessage) -> int:
        """Merge V and t; return the guard bits of the lanes of C that grew."""
        if self.published_merge is not None:
            self.published_merge.merge_into(self, message)
        else:
            # V_m[d] <= t, so a co-destination's entry is t.
            self.merge_entries(
                {**dict(message.entries), **dict.fromkeys(message.to, message.timestamp)}
            )
        grown = self.guard & ~((self.clock | self.guard) - message.timestamp)
        self.clock = merge(self.clock, message.timestamp, self.guard)
        return grown

    def merge_entries(self, news: Mapping[int, int]) -> None:
        """Raise V to these entries, except those for this member and for departed ones."""
        for member, vector in news.items():
            if member != self.me and member not in self.last:
                mine = self.entries.get(member, 0)
                if mine != vector:
                    self.entries[member] = merge(mine, vector, self.guard)

    # -- the index of held messages -------------------------------------------------------------

    def clear_index(self) -> None:
        self.waiting: dict[int, list[tuple[int, MessageId]]] = {}
        """Member -> heap of (value that its lane of C must reach, held message)."""

    def index_held(self, message: SesMessage) -> None:
        member = self.find_shortfall(message).bit_length() // LANE_BITS - 1
        value = get(self.find_needed(message), member)
        heappush(self.waiting.setdefault(member, []), (value, self.identity(message)))

    def take_unblocked(self, news: int) -> list[SesMessage]:
        found = []
        for member in [k for k in self.waiting if news >> (k * LANE_BITS + VALUE_BITS) & 1]:
            heap, reached = self.waiting[member], get(self.clock, member)
            while heap and heap[0][0] <= reached:
                found.append(self.held[heappop(heap)[1]])
            if not heap:
                del self.waiting[member]
        return found

    def skip(self, lost: MessageId) -> list[SesMessage]:
        self.clock = merge(self.clock, unit(lost.sender, lost.seq), self.guard)
        return self.take_unblocked(unit(lost.sender) << VALUE_BITS)

    def find_highest_number(self, message: SesMessage, member: int) -> int:
        return get(message.timestamp, member)

    # -- checks ---------------------------------------------------------------------------------

    def check(self, message: SesMessage, behind: int) -> None:
        self.check_head(message)
        sender, seq, _, _, stamp, entries = message
        what = f"message {seq} from member {sender}"
        if stamp.bit_length() > self.width or stamp & self.unknown_lanes:
            raise UnknownMemberError(f"{what} counts messages of a member that is not in the group")
        if get(stamp, sender) != seq:
            raise SequenceError(f"{what} has the timestamp of its message {get(stamp, sender)}")
        for member, last in ((self.me, self.sent), *self.last.items()):
            if get(stamp, member) > last:
                number = get(stamp, member)
                raise changes.make_number_error(f"{what} knows of", number, member, last, self.me)
        past = (stamp | self.guard) - unit(sender)
        before = -1
        for member, vector in entries:
            if member not in self.known:
                raise UnknownMemberError(
                    f"{what} has an entry for member {member}, who is not in the group"
                )
            if member <= before or not vector:
                raise DecodeError(f"{what} has entries out of order, or one without a send")
            if vector.bit_length() > self.width or vector & self.guard:
                raise UnknownMemberError(f"{what} has an entry with an unknown member")
            if (past - vector) & self.guard != self.guard:
                raise SequenceError(f"{what}: its entry for {member} exceeds its timestamp")
            before = member

    # -- membership and snapshot --------------------------------------------------------------

    def newest(self, member: int) -> int:
        return get(self.clock, member)

    def join_state(self) -> Hashable:
        known, last = tuple(sorted(self.known)), tuple(sorted(self.last.items()))
        return known, last, self.clock, tuple(sorted(self.entries.items()))

    def install_join_state(self, state: Any) -> None:
        known, last, clock, entries = state
        self.install_members(known, last)
        kept = dict(entries)
        self._check(clock, kept)
        self.clock, self.entries = clock, kept

    def start_from(self, newest: Mapping[int, int]) -> None:
        changes.check_start_numbers(newest, MAX_VALUE)
        self.clock = merge(self.clock, pack(newest.items()), self.guard)

    def check_listening(self) -> None:
        """Do nothing: V_m[me] covers all messages to this member in the past of m."""

    def _check(self, clock: int, entries: Mapping[int, int]) -> None:
        if not 0 <= clock < 1 << self.width or clock & self.unknown_lanes:
            raise LocalError("join state: invalid clock")
        if not self.known.issuperset(entries) or not all(
            0 <= vector <= clock and dominates(clock, vector, self.guard)
            for vector in entries.values()
        ):
            raise LocalError("join state: invalid entry")

    def leave(self, member: int, last: int) -> Sequence[Effect]:
        effects = super().leave(member, last)
        self.entries.pop(member, None)
        return effects

    def snapshot(self) -> Hashable:
        entries = tuple(sorted(self.entries.items()))
        printed = self.published_merge
        rule = (False, ()) if printed is None else (printed.rule, printed.list_ranges())
        return self.common_state(), (self.clock, entries, *rule)

    def restore(self, state: Any) -> None:
        common, (self.clock, entries, rule, arrivals) = state
        self.entries = dict(entries)
        self.published_merge = PublishedMerge(rule, arrivals) if rule else None
        self.set_common_state(common)
        self._check(self.clock, self.entries)
        if get(self.clock, self.me) != self.sent:
            raise ValueError(f"C: other than the {self.sent} messages sent")
        self.rebuild_index()

    def check_whole(self) -> None:
        super().check_whole()
        if not self.entries.keys() <= {*self.others()} or not all(self.entries.values()):
            raise ValueError(f"V: entries of members {sorted(self.entries)}")

    # -- control information ------------------------------------------------------------------

    def causes(self, message: SesMessage) -> tuple[MessageId, ...]:
        return tuple(
            MessageId(member, number) for member, number in items(self.find_needed(message))
        )

    def mentions(self, message: SesMessage) -> tuple[int, ...]:
        named = {member for member, _ in (*items(message.timestamp), *message.entries)}
        return tuple(sorted(named.union(message.to)))

    def renumber(self, message: SesMessage, numbers: Mapping[int, int]) -> SesMessage:
        def renumber_vector(vector: int) -> int:
            return pack((numbers[member], number) for member, number in items(vector))

        entries = sorted(
            (numbers[member], renumber_vector(vector)) for member, vector in message.entries
        )
        return message._replace(
            sender=numbers[message.sender],
            to=tuple(sorted(numbers[member] for member in message.to)),
            timestamp=renumber_vector(message.timestamp),
            entries=tuple(entries),
        )

    # -- size and wire ----------------------------------------------------------------------

    def encode(self, message: SesMessage) -> bytes:
        return encode_message(message)

    def decode(self, control: bytes, payload: Any) -> SesMessage:
        return decode_message(control, payload)

    def control_bytes(self, message: SesMessage) -> int:
        """Return 4 bytes per integer: t, each destination, each entry with its destination."""
        members = len(self.known)
        integers = members + len(message.to) + len(message.entries) * (members + 1)
        return INTEGER_BYTES * integers

    def storage_bytes(self) -> int:
        """Return 4 bytes per integer: C, and each entry of V with its destination."""
        members = len(self.known)
        return INTEGER_BYTES * (members + len(self.entries) * (members + 1))

    def describe(self) -> dict[str, str]:
        """Return C and V as Sahai et al. 2020 write them, members by number, `?` for no entry."""

        def format_vector(vector: int) -> str:
            counts = unpack(vector, max(self.known) + 1)
            return "(" + ", ".join(str(counts[member]) for member in sorted(self.known)) + ")"

        entries = (self.entries.get(member) for member in sorted(self.known))
        vectors = ("?" if vector is None else format_vector(vector) for vector in entries)
        return {"C": format_vector(self.clock), "V": "(" + ", ".join(vectors) + ")"}
