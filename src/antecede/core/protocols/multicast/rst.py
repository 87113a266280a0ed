"""SENT (Raynal, Schiper, Toueg): causal order for messages to some members, by a matrix.

Source: Raynal, Schiper and Toueg. Sahai et al.'s matrix time lacks this matrix (errata: its rules
R1 and R2 do not name the destination of an event). Member i keeps SENT_i[k, l], the number of
messages of k to l that it knows of, and DELIV_i[k], the number of k that it has delivered. A
message to the members D carries D and SENT_i. Then SENT_i[i, d] += 1 for every d in D. Member j
delivers it when DELIV_j[k] >= SENT_m[k, j] for all k. Then DELIV_j[i] += 1, SENT_j := max(SENT_j,
SENT_m), and SENT_j[i, d] += 1 for every d in D.

Theory of operation
-------------------
Only k changes row k of SENT, so it only grows. Of two rows of k one is at or above the other in
EVERY entry, and the maximum is the later row. A row is ONE Python integer of lanes by destination
(`core.clocks.lanes`), and later rows are greater integers. Only rows of a message that are newer
than here are checked and merged. Most rows are the same object, which `is` detects.

DELIV_j is column j of SENT_j, so a row that is not newer lacks nothing. For a newer row the
difference decides: an entry for j is a missing cause, a guard bit a contradiction of the two rows.

The id of a message at j is (sender, its number in the channel to j), SENT_m[sender, j] + 1. A held
message is indexed under one missing cause and checked again when that one is delivered.

A forged newer row that is not at or above the known one is rejected. A forged row that passes for
an older one adds nothing. Two held ones that contradict each other are merged by entries, so
nothing known is lost.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import compress, count
from operator import is_not
from typing import Any, ClassVar

from antecede.core.clocks import LANE_BITS, MAX_VALUE, VALUE_BITS, get, guards, merge, pack, unpack
from antecede.core.clocks.encoding import LANE_BYTES, ByteReader
from antecede.core.protocols.base import Deliver, Effect, Guarantee, MessageId, Relation, Transmit
from antecede.core.protocols.membership import changes
from antecede.core.protocols.multicast.base import (
    INTEGER_BYTES,
    AddressedProtocol,
    encode_head,
    read_head,
)
from antecede.core.protocols.multicast.rst_messages import (
    MAX_SIDE,
    MatrixBytes,
    RstMessage,
    entries_to_rows,
    rows_to_entries,
    trim_rows,
)
from antecede.errors import LocalError, SequenceError, UnknownMemberError


class Rst(AddressedProtocol):
    """Member of a group with causal order; needs reliable channels."""

    guarantee: Guarantee = Guarantee(Relation.BY_DELIVERY, joins=True, leaves=True)
    highest: ClassVar[int] = MAX_SIDE - 1

    def __init__(self, me: int, members: Iterable[int]) -> None:
        self.matrix: list[int] = []
        """SENT: the row of each member by number, packed by destination."""
        self.bytes = MatrixBytes()
        super().__init__(me, members)
        self.clear_index()

    def lay_out(self) -> None:
        side = max(self.known) + 1
        self.matrix += [0] * (side - len(self.matrix))
        self.width = side * LANE_BITS
        self.guard = guards(side)
        self.units = self.guard >> VALUE_BITS
        self.unknown_columns = pack((d, MAX_VALUE) for d in range(side) if d not in self.known)
        """Columns of unused numbers."""
        self.suspect_bits = self.guard | self.unknown_columns | MAX_VALUE << (self.me * LANE_BITS)
        """Bits in which a newer row may differ from the known one only for a reason."""
        self.delivered = {k: get(self.matrix[k], self.me) for k in self.known - {self.me}}
        self.current_members = frozenset(self.others())

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
        message = RstMessage(self.me, self.sent, payload, targets, trim_rows(self.matrix))
        self.matrix[self.me] += self.make_unit_row(targets)
        return (Transmit(targets, message),)

    def receive(self, message: RstMessage, *, now: int | None = None) -> Sequence[Effect]:
        sender, to, rows = message.sender, message.to, message.matrix
        # Fast path: the next message of its channel, without suspect bits in newer rows.
        if self.me not in to or sender not in self.current_members or len(rows) > len(self.matrix):
            return super().receive(message)
        number = self.delivered[sender] + 1
        news = self.find_newer_rows(rows)
        if self.identity(message).seq != number or not self.is_next_in_order(rows, news):
            return super().receive(message)
        self.check_head(message)
        self.check_number(message)
        if self.held:
            if (sender, number) in self.held:
                return super().receive(message)
            return self.release(message)
        for k in news:
            self.matrix[k] = rows[k]
        self.count_delivery(message)
        return (Deliver(message),)

    # -- missing causes -----------------------------------------------------------------------

    def find_newer_rows(self, rows: Sequence[int]) -> list[int]:
        """Return the members with newer rows; replace equal rows by the same object."""
        mine = self.matrix
        found = []
        for k in compress(count(), map(is_not, rows, mine)):
            if rows[k] > mine[k]:
                found.append(k)
            elif rows[k] == mine[k]:
                mine[k] = rows[k]
        return found

    def is_next_in_order(self, rows: Sequence[int], news: Iterable[int]) -> bool:
        """Return whether newer rows are valid rows of other current members and lack nothing."""
        for k in news:
            more = rows[k] - self.matrix[k]
            if k not in self.current_members or more & self.suspect_bits or more >> self.width:
                return False
            if get(more, k):
                return False
        return True

    def find_shortfall(self, message: RstMessage) -> int:
        return len(self.list_needed(message))

    def check(self, message: RstMessage, behind: int) -> None:
        self.check_head(message)
        sender, seq, rows = message.sender, message.seq, message.matrix
        what = f"message {seq} from member {sender}"
        if len(rows) > len(self.matrix):
            raise UnknownMemberError(f"{what} counts messages of a member that is not in the group")
        self.check_number(message)
        for k in self.find_newer_rows(rows):
            self.check_row(what, k, rows[k])

    def check_number(self, message: RstMessage) -> None:
        """Raise SequenceError if the sender's row exceeds the message's number, a full lane
        included.
        """
        sender, seq, rows = message.sender, message.seq, message.matrix
        row = rows[sender] if sender < len(rows) else 0
        if (((seq - 1) * self.units | self.guard) - row) & self.guard != self.guard:
            raise SequenceError(
                f"message {seq} from member {sender} counts itself or a later message among its"
                " causes"
            )

    def check_row(self, what: str, member: int, row: int) -> None:
        if (
            row >> self.width
            or row & (self.guard | self.unknown_columns)
            or member not in self.known
        ):
            raise UnknownMemberError(
                f"{what} counts messages from or to a member that is not in the group"
            )
        if get(row, member):
            raise UnknownMemberError(f"{what} counts messages of member {member} to itself")
        if member == self.me:
            known = max(unpack(row, len(self.matrix)))
            raise SequenceError(
                f"{what} counts {known} messages to one receiver from member {member}, but "
                f"this member has sent {self.newest(member)} at most: {changes.STALE_STATE}"
            )
        if (row - self.matrix[member]) & self.guard:
            raise SequenceError(
                f"{what} contradicts the messages of member {member} that are known here"
            )
        last = self.last.get(member, MAX_VALUE)
        if max(unpack(row, len(self.matrix))) > last:
            raise SequenceError(f"{what} counts more messages of member {member} than it sent")

    def list_needed(self, message: RstMessage) -> tuple[MessageId, ...]:
        """Return (k, SENT_m[k, me]) for every k with fewer deliveries here."""
        at, found = self.me, []
        for k, row in enumerate(message.matrix):
            number = get(row, at)
            if number > self.delivered.get(k, number):
                found.append(MessageId(k, number))
        return tuple(found)

    def list_missing(self, message: RstMessage) -> tuple[MessageId, ...]:
        """Return the newest missing message to this member of each sender, by channel number."""
        needs = self.needed[self.identity(message)]
        return tuple(cause for cause in needs if cause.seq > self.delivered[cause.sender])

    def is_blocked(self, message: RstMessage) -> bool:
        return bool(self.list_missing(message))

    def identity(self, message: RstMessage) -> MessageId:
        sender, rows = message.sender, message.matrix
        return MessageId(sender, get(rows[sender], self.me) + 1 if sender < len(rows) else 1)

    def is_duplicate(self, message: RstMessage) -> bool:
        sender, number = self.identity(message)
        return number <= self.delivered[sender]

    # -- delivery -------------------------------------------------------------------------------

    def record(self, message: RstMessage) -> MessageId:
        rows = message.matrix
        for k in self.find_newer_rows(rows):
            # Merge: newer rows may have arrived while the message was held.
            self.matrix[k] = merge(self.matrix[k], rows[k], self.guard)
        self.count_delivery(message)
        return MessageId(message.sender, self.delivered[message.sender])

    def count_delivery(self, message: RstMessage) -> None:
        sender, rows = message.sender, message.matrix
        row = rows[sender] if sender < len(rows) else 0
        counted, mine = row + self.make_unit_row(message.to), self.matrix[sender]
        # The rows differ only if a message counted others that were never sent.
        self.matrix[sender] = counted if row == mine else merge(mine, counted, self.guard)
        self.delivered[sender] += 1

    def make_unit_row(self, to: Iterable[int]) -> int:
        """Return the row that counts one message for each of some members."""
        raw = bytearray(len(self.matrix) * LANE_BYTES)
        for member in to:
            raw[member * LANE_BYTES] = 1
        return int.from_bytes(raw, "little")

    def clear_index(self) -> None:
        self.needed: dict[MessageId, tuple[MessageId, ...]] = {}
        """Held message -> the causes that were missing when it was indexed."""
        self.waiting: dict[MessageId, list[MessageId]] = {}
        """Missing message -> held messages that are indexed under it."""

    def index_held(self, message: RstMessage) -> None:
        key = self.identity(message)
        self.needed[key] = needs = self.list_needed(message)
        self.waiting.setdefault(needs[0], []).append(key)

    def take_unblocked(self, news: MessageId) -> list[RstMessage]:
        return [self.held[key] for key in self.waiting.pop(news, ())]

    def skip(self, lost: MessageId) -> list[RstMessage]:
        """Merge the row of the lost message's sender from a message that needs it."""
        sender, number = lost
        needing = next(self.held[key] for key, needs in self.needed.items() if lost in needs)
        self.matrix[sender] = merge(self.matrix[sender], needing.matrix[sender], self.guard)
        self.delivered[sender] = number
        filed = [one for one in self.waiting if one.sender == sender and one.seq <= number]
        return [waiter for one in filed for waiter in self.take_unblocked(one)]

    def find_highest_number(self, message: RstMessage, member: int) -> int:
        rows = message.matrix
        return max(unpack(rows[member], len(self.matrix))) if member < len(rows) else 0

    # -- membership and snapshot --------------------------------------------------------------

    def newest(self, member: int) -> int:
        return max(unpack(self.matrix[member], len(self.matrix)))

    def join_state(self) -> Hashable:
        return tuple(sorted(self.known)), tuple(sorted(self.last.items())), trim_rows(self.matrix)

    def install_join_state(self, state: Any) -> None:
        known, last, matrix = state
        self.install_members(known, last)
        rows, barred = [*matrix], self.guard | self.unknown_columns
        if len(rows) > len(self.matrix) or any(
            not 0 <= row < 1 << self.width or row & barred for row in rows
        ):
            raise LocalError("join state: invalid matrix")
        self.matrix = rows
        self.lay_out()

    def start_from(self, newest: Mapping[int, int]) -> None:
        raise LocalError(
            "order 'sent' counts messages by channel, so sender numbers do not determine "
            "how many were for this member; use an invitation (accept), or order 'ses'"
        )

    def check_listening(self) -> None:
        self.start_from({})

    def snapshot(self) -> Hashable:
        return self.common_state(), trim_rows(self.matrix)

    def restore(self, state: Any) -> None:
        common, matrix = state
        self.matrix = [*matrix]
        self.set_common_state(common)
        self.rebuild_index()

    def check_whole(self) -> None:
        barred, side = self.guard | self.unknown_columns, len(self.matrix)
        if side != max(self.known) + 1:
            raise ValueError(f"matrix: {side} rows")
        for member, row in enumerate(self.matrix):
            wrong = row >> self.width or row & barred or (row and member not in self.known)
            if wrong or get(row, member) or (member == self.me and self.newest(member) > self.sent):
                raise ValueError(f"matrix: invalid row of member {member}")
        super().check_whole()

    # -- control information ------------------------------------------------------------------

    def causes(self, message: RstMessage) -> tuple[MessageId, ...]:
        named = ((k, get(row, self.me)) for k, row in enumerate(message.matrix))
        return tuple(MessageId(k, number) for k, number in named if number)

    def mentions(self, message: RstMessage) -> tuple[int, ...]:
        named = {member for k, d, _ in rows_to_entries(message.matrix) for member in (k, d)}
        return tuple(sorted(named.union(message.to, (message.sender,))))

    def renumber(self, message: RstMessage, numbers: Mapping[int, int]) -> RstMessage:
        return message._replace(
            sender=numbers[message.sender],
            to=tuple(sorted(numbers[member] for member in message.to)),
            matrix=entries_to_rows(
                (numbers[k], numbers[d], n) for k, d, n in rows_to_entries(message.matrix)
            ),
        )

    # -- size and wire ----------------------------------------------------------------------

    def encode(self, message: RstMessage) -> bytes:
        return encode_head(message) + self.bytes.encode(message.matrix)

    def decode(self, control: bytes, payload: Any) -> RstMessage:
        reader = ByteReader(control)
        sender, seq, to = read_head(reader)
        matrix = self.bytes.read(reader)
        reader.finish()
        return RstMessage(sender, seq, payload, to, matrix)

    def control_bytes(self, message: RstMessage) -> int:
        return INTEGER_BYTES * (len(self.known) ** 2 + len(message.to))

    def storage_bytes(self) -> int:
        """Return 4 bytes per integer: SENT and DELIV."""
        members = len(self.known)
        return INTEGER_BYTES * (members * members + members)

    def describe(self, names: Mapping[int, str]) -> dict[str, str]:
        known = sorted(self.known)
        fields = {}
        for k in known:
            row = ", ".join(str(get(self.matrix[k], d)) for d in known)
            fields[f"SENT[{names[k]}]"] = f"({row})"
        counts = ", ".join(str(self.delivered.get(k, 0)) for k in known)
        return {**fields, "DELIV": f"({counts})"}
