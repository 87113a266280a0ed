"""Causal broadcast by matrix clocks, and stability of messages, without recovery.

Source: Sahai et al. 2020, "Matrix Time", R1 and R2 with R2 repaired (`core.clocks.matrix`). Only
sending advances a member's clock: [i, k] is the number of k's last message that i has delivered.

Theory of operation
-------------------
The principal vector orders delivery as in BSS (`vector.base`). A message carries it as `causes`,
and its number. Delivery is R2: the sender's row becomes its principal vector, all other rows the
maximum. Rows are kept only for the other current members; `clock` is the row of this member.

Every known row of k is k's principal vector at some time, and that vector only grows. So of two
rows of k one is at or above the other in EVERY entry, and the maximum is the later row. Packed
vectors that are ordered so are ordered as integers: R2 is one integer comparison per row.

A message is stable when every member is known to have it: the least of its sender's column. Until
then every member that has it keeps it (`StableBuffer`) and can be asked for it. The least of all
columns is computed once in as many deliveries as there are members. That costs less than one R2 per
delivery.

With `differences` a message carries only the rows that changed since its sender's previous message,
which is delivered first. The principal vector is always carried.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

from antecede.core.clocks import LANE_BITS, MAX_SIDE, fold, join_rows, lanes
from antecede.core.protocols.base import Deliver, Effect, Guarantee, MessageId, Relation, Transmit
from antecede.core.protocols.matrix import messages as wire
from antecede.core.protocols.matrix.messages import (
    AnyMessage,
    Heartbeat,
    MatrixMessage,
    MatrixRequest,
)
from antecede.core.protocols.vector.base import CountingProtocol
from antecede.errors import LocalError


class StableBuffer:
    """Kept messages by sender in consecutive order, with their total size."""

    def __init__(self) -> None:
        self.bytes = 0
        self._runs: dict[int, tuple[int, deque[tuple[Any, int]]]] = {}

    def keep(self, sender: int, seq: int, message: Any, size_bytes: int) -> None:
        """Keep a message. Raises LocalError unless it follows the sender's previous one."""
        first, run = self._runs.setdefault(sender, (seq, deque()))
        if seq != first + len(run):
            raise LocalError(f"message {seq} of member {sender} does not follow the kept ones")
        run.append((message, size_bytes))
        self.bytes += size_bytes

    def get(self, sender: int, seq: int) -> Any | None:
        first, run = self._runs.get(sender, (0, ()))
        return run[seq - first][0] if first <= seq < first + len(run) else None

    def list_numbers(self, sender: int) -> range:
        first, run = self._runs.get(sender, (0, ()))
        return range(first, first + len(run))

    def forget(self, counts: Mapping[int, int]) -> int:
        """Drop the messages up to each sender's count; return the number of dropped messages."""
        dropped = 0
        for sender in tuple(self._runs):
            first, run = self._runs[sender]
            while run and first <= counts.get(sender, 0):
                self.bytes -= run.popleft()[1]
                first += 1
                dropped += 1
            if run:
                self._runs[sender] = first, run
            else:
                del self._runs[sender]
        return dropped

    def __iter__(self) -> Iterator[MessageId]:
        for sender in sorted(self._runs):
            for seq in self.list_numbers(sender):
                yield MessageId(sender, seq)

    def __len__(self) -> int:
        return sum(len(run) for _, run in self._runs.values())

    def snapshot(self) -> Hashable:
        return tuple(
            (sender, first, tuple(run)) for sender, (first, run) in sorted(self._runs.items())
        )

    def restore(self, state: Any) -> None:
        self._runs = {sender: (first, deque(run)) for sender, first, run in state}
        self.bytes = sum(size for _, _, run in state for _, size in run)


INTEGER_BYTES = 4
NODE_BYTES = 8
Rows: TypeAlias = tuple[int, ...]


class MatrixBase(CountingProtocol):
    """Member of a group with causal order that knows which messages the others have."""

    control_power: ClassVar[int | None] = 2

    guarantee: Guarantee = Guarantee(Relation.BY_DELIVERY, joins=True, leaves=True)
    matrix: Rows = ()
    """Row of each member as a packed vector, by number; 0 except for other current members."""
    last_sent_rows: Rows = ()
    """With differences: the rows at the time of the last sent message."""

    def __init__(self, me: int, members: Iterable[int], *, differences: bool = False) -> None:
        self.buffer = StableBuffer()
        self.differences = differences
        self.deliveries_since_sweep = 0
        """Number of deliveries since stable messages were last dropped."""
        super().__init__(me, members)

    def _lay_out(self) -> None:
        if max((self.me, *self.counts)) >= MAX_SIDE:
            raise LocalError(f"member numbers in a matrix are 0 to {MAX_SIDE - 1}")
        super()._lay_out()
        self.matrix, self.last_sent_rows = (
            self._fit_rows(self.matrix),
            self._fit_rows(self.last_sent_rows),
        )
        self.ignored_rows = sorted({*range(self.lanes)} - {*self.members})
        """Rows that do not count: of departed members, and of unused numbers."""

    def _fit_rows(self, rows: Rows) -> Rows:
        """Return one row per lane, 0 except for the other current members."""
        others = {*self.others()}
        return tuple(rows[k] if k in others and k < len(rows) else 0 for k in range(self.lanes))

    # -- sending and receiving --------------------------------------------------------------

    def send(
        self, payload: Any, *, now: int | None = None, after: Sequence[MessageId] = ()
    ) -> Sequence[Effect]:
        causes = (self.clock ^ self.guard) - (self.sent << (self.me * LANE_BITS))
        rows = self.select_rows()
        self.last_sent_rows = self.matrix if self.differences else self.last_sent_rows
        self.sent += 1
        self.clock += lanes.unit(self.me)
        message = MatrixMessage(self.me, self.sent, payload, causes, rows)
        self._keep(message)
        return (Transmit(self.others(), message),)

    def select_rows(self) -> Rows:
        if not self.differences:
            return self.matrix
        pairs = zip(self.matrix, self.last_sent_rows, strict=True)
        return tuple(row if row != before else 0 for row, before in pairs)

    def receive(self, message: AnyMessage, *, now: int | None = None) -> Sequence[Effect]:
        assert isinstance(message, MatrixMessage)
        sender, seq, causes = message.sender, message.seq, message.causes
        # Inlined `find_missing_cause`, as in BSS; R2 takes most of the time.
        if (
            self.counts.get(sender) != seq - 1
            or causes.bit_length() > self.width
            or (self.clock - causes) & self.guard != self.guard
            or sender in self.last
        ):
            return self.receive_slowly(message)
        if self.waiting and (sender, seq) in self.waiting:
            return self.release(message)
        self.record(message)
        return (Deliver(message),)

    def record(self, message: MatrixMessage) -> None:
        self.learn(message)
        self.counts[message.sender] = message.seq
        self.clock += lanes.unit(message.sender)
        self._keep(message)
        self.deliveries_since_sweep += 1
        if self.deliveries_since_sweep >= len(self.members):
            self.sweep()

    def learn(self, message: MatrixMessage | Heartbeat) -> None:
        """Apply R2 to the rows of the other current members."""
        rows = list(map(max, self.matrix, message.rows))
        rows += self.matrix[len(rows) :]
        sender = message.sender
        rows[sender] = max(rows[sender], wire.principal(message))
        rows[self.me] = 0
        for ignored in self.ignored_rows:
            rows[ignored] = 0
        self.matrix = tuple(rows)

    # -- stability --------------------------------------------------------------------------

    def _keep(self, message: MatrixMessage) -> None:
        payload = message.payload
        size = len(payload) if isinstance(payload, bytes) else 0
        self.buffer.keep(message.sender, message.seq, message, size + self.control_bytes(message))

    def sweep(self) -> None:
        self.deliveries_since_sweep = 0
        self.buffer.forget(self.stable())

    def stable(self) -> Mapping[int, int]:
        """Return for every member the number of its last message that all are known to have."""
        counts = {**self.counts, self.me: self.sent}
        rows = [self.matrix[k] for k in self.others()]
        if not rows:
            return counts
        least = fold(join_rows(rows, self.lanes), self.lanes, len(rows))
        return {k: lanes.get(least, k) for k in counts}

    def list_unstable(self) -> tuple[MessageId, ...]:
        stable = self.stable()
        return tuple(key for key in self.buffer if key.seq > stable[key.sender])

    def knows(self, member: int, of: int) -> int:
        """Return the last number of `of` that `member` is known to have; 0 for departed members."""
        counts = {**self.counts, self.me: self.sent}
        if member not in counts or of not in counts:
            raise LocalError(f"members {member} and {of} are not both in the group")
        if member == self.me:
            return counts[of]
        return lanes.get(self.matrix[member], of)

    def _skip(self, lost: MessageId) -> Sequence[Effect]:
        self.buffer.forget({lost.sender: lost.seq})
        return super()._skip(lost)

    # -- membership and snapshot --------------------------------------------------------------

    def join_state(self) -> Hashable:
        rows = list(self.matrix)
        rows[self.me] = self.clock ^ self.guard
        whole = tuple((k, row) for k, row in enumerate(rows) if row)
        return super().join_state(), whole, self.buffer.snapshot()

    def install_join_state(self, state: Any) -> None:
        """Install counts, matrix and kept messages. Raises ValueError for an invalid state."""
        counts, whole, kept = state
        rows = dict(whole)
        if not all(0 <= k < MAX_SIDE and row >= 0 for k, row in rows.items()):
            raise ValueError("join state: invalid matrix")
        if not all(isinstance(message, MatrixMessage) for _, _, run in kept for message, _ in run):
            raise ValueError("join state: invalid kept messages")
        super().install_join_state(counts)
        if any(row.bit_length() > self.width for row in rows.values()):
            raise ValueError("join state: a matrix with unknown members")
        self.buffer.restore(kept)
        self.matrix = self._fit_rows(tuple(rows.get(k, 0) for k in range(self.lanes)))
        self._check_rows(self.matrix)
        self._check_kept(kept)

    def start_from(self, newest: Mapping[int, int]) -> None:
        grown = {k: number for k, number in newest.items() if number > self.counts[k]}
        super().start_from(newest)
        self.buffer.forget(grown)

    def check_listening(self) -> None:
        """Do nothing: a message carries its sender's whole vector."""

    def _check_kept(self, kept: Any) -> None:
        """Raise ValueError unless the kept messages of each sender end with its last one here."""
        counts = {**self.counts, self.me: self.sent}
        for sender, first, run in kept:
            numbers = [(message.sender, message.seq) for message, _ in run]
            last = counts[sender] if sender != self.me or self.sent else first + len(run) - 1
            # Lengths first: a forged invitation may contain a range of 2^60 numbers.
            whole = len(run) == last - first + 1
            if not whole or numbers != [(sender, k) for k in range(first, last + 1)]:
                raise ValueError(f"kept: other messages than the last ones of member {sender}")

    def _check_rows(self, rows: Rows) -> None:
        """Raise ValueError for rows that count messages which are not here."""
        if any((self.clock - row) & self.guard != self.guard for row in rows):
            raise ValueError("matrix: rows with messages that are not here")

    def forget(self, member: int) -> None:
        raise LocalError("order 'matrix' needs the state of departed members")

    def join(self, member: int) -> Sequence[Effect]:
        if member >= MAX_SIDE:
            raise LocalError(f"member {member} is not in 0 to {MAX_SIDE - 1}")
        return super().join(member)

    def leave(self, member: int, last: int) -> Sequence[Effect]:
        effects = super().leave(member, last)
        self._lay_out()
        self.sweep()
        return effects

    def extra_state(self) -> Hashable:
        return self.matrix, self.last_sent_rows, self.deliveries_since_sweep, self.buffer.snapshot()

    def set_extra_state(self, extra: Any) -> None:
        self.matrix, self.last_sent_rows, self.deliveries_since_sweep, kept = extra
        self._check_rows((*self.matrix, *self.last_sent_rows))
        self.buffer.restore(kept)
        self._check_kept(kept)

    def check_whole(self) -> None:
        super().check_whole()
        for rows in (self.matrix, self.last_sent_rows):
            if len(rows) != self.lanes or rows != self._fit_rows(rows):
                raise ValueError(f"matrix: {len(rows)} rows for {self.lanes} member numbers")

    def describe(self, names: Mapping[int, str]) -> dict[str, str]:
        known = sorted({*self.counts, self.me})
        rows = {
            f"mt[{names[k]}]": "(" + ", ".join(str(self.knows(k, of)) for of in known) + ")"
            for k in self.members
        }
        stable = ", ".join(str(count) for _, count in sorted(self.stable().items()))
        return {**rows, "stable": f"({stable})", "kept": str(len(self.buffer))}

    # -- size and wire ----------------------------------------------------------------------

    def causes(self, message: AnyMessage) -> tuple[MessageId, ...]:
        return () if isinstance(message, MatrixRequest) else super().causes(message)

    def mentions(self, message: AnyMessage) -> tuple[int, ...]:
        return wire.list_members(message)

    def renumber(self, message: AnyMessage, numbers: Mapping[int, int]) -> AnyMessage:
        return wire.renumber(message, numbers)

    def encode(self, message: AnyMessage) -> bytes:
        return wire.encode(message)

    def decode(self, control: bytes, payload: Any) -> AnyMessage:
        return wire.decode(control, payload)

    def control_bytes(self, message: AnyMessage) -> int:
        """Return 4 bytes per entry: n * n, or n for each carried row plus 4 to name it."""
        if isinstance(message, MatrixRequest):
            return INTEGER_BYTES + NODE_BYTES * (len(message.bounds) // 2)
        members = len(self.counts) + 1
        if not self.differences:
            return INTEGER_BYTES * members * members
        rows = len(wire.list_carried_rows(message))
        return INTEGER_BYTES * (members + rows * (members + 1))

    def list_kept_messages(self) -> Iterator[Any]:
        return (self.buffer.get(*key) for key in self.buffer)

    def storage_bytes(self) -> int:
        """Return 4 bytes per entry, with differences twice that, without the buffer."""
        return INTEGER_BYTES * (len(self.counts) + 1) ** 2 * (2 if self.differences else 1)
