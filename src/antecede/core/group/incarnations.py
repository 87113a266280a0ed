"""Identity of groups, and incarnations of their members; independent of the protocol.

**Group.** A frame contains fingerprints of `room=` and of the order with its shared options, and a
view. The member table of a closed group only grows, and numbers are never reused. So a view is the
number of joins since the first list, with a hash of that list and these joins. Bounds and
subscriptions by member belong to the list.

**Incarnation.** A member that is restored from a snapshot may have sent more than the snapshot
contains, and would reuse numbers. So each restore begins an `Incarnation`: generation, nonce, and
first sequence number. A receiver keeps the incarnations of each member and the highest number:

- A new incarnation must begin above every known number; otherwise it is rejected.
- A message of an older incarnation with a number at or above the first of a newer one is rejected.
- Of two incarnations of one generation, the second to arrive is rejected.

Frames list incarnations from generation 1 on, as the sender knows them: those of the causes, and
the newest of every member while they are few. With chosen receivers, frames list all. So a message
that depends on a superseded one is rejected as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, ClassVar, TypeAlias

from antecede.core.clocks import NS, plain
from antecede.core.clocks.encoding import block, varint
from antecede.core.group.frames.format import Incarnation, View
from antecede.core.group.message import Id
from antecede.core.protocols import Protocol
from antecede.core.protocols.options import is_word_set, options_of
from antecede.core.protocols.serialization import NUMBER, TEXT, Many, Shape
from antecede.errors import DecodeError, IncarnationError, LocalError, MismatchError
from antecede.formatting import quote

MAX_LISTED = 64
"""Number of restarted members up to which every frame lists all; beyond, only those of causes."""
KnownIncarnations: TypeAlias = tuple[tuple[str, Incarnation], ...]
"""(name, incarnation) of restarted members, as in a frame."""
MAX_FORGOTTEN = 4096
"""Names of forgotten members that are kept, to recognize late mentions."""
MAX_INCARNATIONS = 64
"""Incarnations kept per member; the oldest are dropped."""


def fingerprint(data: bytes, size: int = 4) -> int:
    """Return a short hash as an integer."""
    import hashlib  # lazy: 5 % of the time of `import antecede`

    return int.from_bytes(hashlib.blake2s(data, digest_size=size).digest(), "little")


def draw_nonce() -> int:
    """Return a random nonce."""
    return int.from_bytes(os.urandom(4), "little")


# -- options --------------------------------------------------------------------------------


def canonicalize(value: Any) -> str:
    """Return an option value as text, independent of order and object addresses."""
    if isinstance(value, Mapping):
        pairs = sorted((canonicalize(key), canonicalize(item)) for key, item in value.items())
        return "{" + ", ".join(f"{key}: {item}" for key, item in pairs) + "}"
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted(map(canonicalize, value))) + "}"
    if isinstance(value, list | tuple):
        return "(" + ", ".join(map(canonicalize, value)) + ")"
    if hasattr(value, "__dataclass_fields__"):
        fields = {name: getattr(value, name) for name in value.__dataclass_fields__}
        return canonicalize(fields)
    if isinstance(value, str):
        return repr(plain(value))
    if isinstance(value, Real | Decimal) and not isinstance(value, bool):
        return _canonicalize_number(value)
    return repr(value)


def _canonicalize_number(value: Any) -> str:
    """Return a number as text by value: 1, 1.0 and Decimal("1.00") are equal."""
    if isinstance(value, Integral):
        return str(int(value))
    try:
        exact = Fraction(value if isinstance(value, Decimal | Fraction) else str(float(value)))
    except (ValueError, OverflowError):  # infinite, or none
        return repr(value)
    return str(exact)


def _normalize_words(value: Any) -> Any:
    return value if value is None else tuple(sorted({plain(word) for word in value}))


def _is_by_member(value: Any) -> bool:
    return hasattr(value, "replace_names")


def _resolve_seconds(protocol: Protocol, name: str, value: Any) -> Any:
    """Return seconds as the protocol rounded them, if it has the option in nanoseconds."""
    settled = getattr(protocol, f"{name.removesuffix('_s')}_ns", None)
    if not name.endswith("_s") or type(settled) is not int or not isinstance(value, Real | Decimal):
        return value
    return Fraction(settled, NS)


def collect_shared_options(
    protocol: Protocol, options: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the shared options with defaults: of the group, and by member. Equal if equivalent."""
    known = options_of(type(protocol))
    all_options = {name: option.default for name, option in known.items() if not option.needed}
    all_options |= protocol.select_options(options)
    shared = {
        name: value for name, value in all_options.items() if name not in protocol.own_options
    }
    common: dict[str, Any] = {}
    members: dict[str, Any] = {}
    for name, value in shared.items():
        if not _is_by_member(value):
            value = _resolve_seconds(protocol, name, value)
            common[name] = (
                _normalize_words(value) if is_word_set(known[name].hint) else plain(value)
            )
            continue
        value = value.in_one_writing()
        fields = {field: getattr(value, field) for field in value.__dataclass_fields__}
        tables = {field: item for field, item in fields.items() if isinstance(item, Mapping)}
        common[name] = {field: fields[field] for field in fields.keys() - tables.keys()}
        members[name] = tables
    return common, members


# -- the table of names ---------------------------------------------------------------------


class Roster:
    """Member table: names by number, and a fingerprint after each join."""

    def __init__(
        self, names: Mapping[int, str], first_digest: int | None = None, extra: str = ""
    ) -> None:
        self.names = dict(names)
        self.numbers = {name: number for number, name in self.names.items()}
        rows = b"".join(_pack_row(number, name) for number, name in sorted(self.names.items()))
        start = fingerprint(rows + extra.encode()) if first_digest is None else first_digest
        self.digests = [start]
        self.joins: list[int] = []
        self.version = object()
        """New object after each change, for caches."""
        self.forgotten: dict[str, int] = {}
        """Newest forgotten members: name -> number."""
        self.highest_number = max(self.names, default=-1)

    def state(self) -> tuple[Any, ...]:
        """Return a serializable state, with two more fields if members were forgotten."""
        table = tuple(self.names.items()), self.digests[0], tuple(self.joins)
        if not self.forgotten:
            return table
        return *table, (tuple(self.digests), self.highest_number), tuple(self.forgotten.items())

    def copy(self) -> Roster:
        """Return an independent copy."""
        table = Roster(self.names, self.digests[0])
        table.digests, table.joins = list(self.digests), list(self.joins)
        table.forgotten, table.highest_number = dict(self.forgotten), self.highest_number
        return table

    def forget(self, number: int) -> None:
        """Drop the name of a departed member. Its number is not reused."""
        self.version = object()
        name = self.names.pop(number)
        del self.numbers[name]
        self.forgotten[name] = number
        while len(self.forgotten) > MAX_FORGOTTEN:
            del self.forgotten[next(iter(self.forgotten))]

    def is_forgotten(self, number: int) -> bool:
        """Return whether a number belonged to a forgotten member."""
        return (
            bool(self.forgotten) and 0 <= number <= self.highest_number and number not in self.names
        )

    def add(self, number: int, name: str) -> None:
        """Add a joining member."""
        self.version = object()
        self.highest_number = max(self.highest_number, number)
        self.names[number] = name
        self.numbers[name] = number
        self.joins.append(number)
        before = self.digests[-1].to_bytes(4, "little")
        self.digests.append(fingerprint(before + _pack_row(number, name)))

    def drop(self, number: int) -> None:
        """Undo the latest `add`."""
        self.version = object()
        del self.numbers[self.names.pop(number)]
        assert self.joins.pop() == number
        self.highest_number -= 1
        self.digests.pop()

    @property
    def next_number(self) -> int:
        """Number of the next joining member."""
        return self.highest_number + 1

    @property
    def view(self) -> View:
        """View for frames."""
        return View(len(self.joins), self.digests[-1])

    def name(self, number: int) -> str:
        """Return a member's name, or "#" and its number."""
        name = self.names.get(number)
        return f"#{number}" if name is None else name

    def check(self, view: View) -> int:
        """Return the number of a view's joins that are unknown here. Raise MismatchError."""
        joins, digest = view
        if joins >= len(self.digests):
            return joins - len(self.joins)
        if digest == self.digests[joins]:
            return 0
        if not view.joins:
            raise MismatchError(
                "members",
                "message of a group with another member list, or other bounds or subscriptions; "
                f"here the list began with {self._describe_first()}",
            )
        newest = self.name(self.joins[view.joins - 1])
        raise MismatchError(
            "members",
            f"sender knows other joins; here the last of them was {newest!r}: two sponsors at "
            "once, or joins in another order",
        )

    def _describe_first(self) -> str:
        first = [name for number, name in sorted(self.names.items()) if number not in self.joins]
        return ", ".join(first[:5]) + (f" and {len(first) - 5} more" if len(first) > 5 else "")


def _pack_row(number: int, name: str) -> bytes:
    return varint(number) + block(name.encode())


# -- lives ----------------------------------------------------------------------------------


class IncarnationTable:
    """Incarnations of every member, and the highest sequence number of each."""

    SHAPE: ClassVar[Shape] = (
        Many((TEXT, Many((NUMBER, NUMBER, NUMBER)))),
        Many((TEXT, Many((NUMBER, NUMBER)))),
    )

    def __init__(self) -> None:
        self.by_member: dict[str, list[Incarnation]] = {}
        """Name -> incarnations by generation."""
        self.highest_seqs: dict[str, dict[int, int]] = {}
        """Name -> generation -> highest known sequence number."""
        self.restarted_members: set[str] = set()

    def state(self) -> tuple[Any, ...]:
        """Return a serializable state."""
        chains = tuple(
            (name, tuple(map(tuple, entries))) for name, entries in sorted(self.by_member.items())
        )
        tops = tuple(
            (name, tuple(sorted(entries.items())))
            for name, entries in sorted(self.highest_seqs.items())
        )
        return chains, tops

    @classmethod
    def from_state(cls, state: Any) -> IncarnationTable:
        """Return the table of a `state`. Raise DecodeError."""
        table = cls()
        for name, chain in state[0]:
            incarnations = [Incarnation(*fields) for fields in chain]
            if (
                not incarnations
                or incarnations != sorted(set(incarnations))
                or any(x.nonce >= 1 << 32 for x in incarnations)
            ):
                raise DecodeError(f"invalid stored incarnations of {name!r:.40}")
            table.by_member[name] = incarnations
            if incarnations[-1].generation:
                table.restarted_members.add(name)
        table.highest_seqs = {name: dict(seqs) for name, seqs in state[1]}
        return table

    def find_highest_seq(self, name: str) -> int:
        """Return the highest known number of a member; 0: none."""
        return max(self.highest_seqs.get(name, {}).values(), default=0)

    def forget(self, name: str) -> None:
        """Drop a departed member."""
        self.by_member.pop(name, None)
        self.highest_seqs.pop(name, None)
        self.restarted_members.discard(name)

    def add(self, name: str, incarnation: Incarnation) -> None:
        """Add an incarnation that passed `check`."""
        chain = self.by_member.setdefault(name, [])
        if incarnation not in chain:
            chain.append(incarnation)
            chain.sort()
            del chain[:-MAX_INCARNATIONS]
        if incarnation.generation:
            self.restarted_members.add(name)

    def record_message(self, name: str, incarnation: Incarnation, seq: int) -> None:
        """Record an accepted message."""
        chain, tops = self.by_member.get(name), self.highest_seqs.get(name)
        if chain is None or chain[-1] != incarnation:
            self.add(name, incarnation)
        if tops is None:
            tops = self.highest_seqs[name] = {}
        if seq > tops.get(incarnation.generation, 0):
            tops[incarnation.generation] = seq

    def record_causes(self, causes: Iterable[Id], known: KnownIncarnations) -> None:
        """Record the numbers of a held message's causes."""
        for name, seq in causes:
            tops = self.highest_seqs.get(name)
            if tops is None:
                tops = self.highest_seqs[name] = {}
            generation = _find_generation(known, name, seq) if known else 0
            if seq > tops.get(generation, 0):
                tops[generation] = seq

    def find_incarnation(self, name: str, seq: int) -> Incarnation:
        """Return the incarnation that used a sequence number, by default the first."""
        for incarnation in reversed(self.by_member.get(name, [])):
            if incarnation.first <= seq:
                return incarnation
        return Incarnation(0, 0)

    def collect_known(
        self, causes: Iterable[Id], *, include_all: bool = False
    ) -> KnownIncarnations:
        """Return the incarnations of a frame: those of causes or all, and the newest while few."""
        if include_all:
            every = {
                (name, incarnation)
                for name in self.restarted_members
                for incarnation in self.by_member[name]
            }
            return tuple(
                sorted((name, incarnation) for name, incarnation in every if incarnation.generation)
            )
        known = {
            (n, self.find_incarnation(n, seq)) for n, seq in causes if n in self.restarted_members
        }
        if len(self.restarted_members) <= MAX_LISTED:
            known |= {(name, self.by_member[name][-1]) for name in self.restarted_members}
        return tuple(
            sorted((name, incarnation) for name, incarnation in known if incarnation.generation)
        )

    def check(
        self, name: str, incarnation: Incarnation, seq: int | None, reporter: str = ""
    ) -> bool:
        """Return whether a message, or a report (`seq` None), is of no older incarnation.

        Raises IncarnationError if incarnations overlap.
        """
        chain = self.by_member.get(name, ())
        if seq is not None and seq < incarnation.first:
            raise IncarnationError(
                f"message {seq} of {name} precedes its incarnation, which began with "
                f"{incarnation.first}",
                name,
            )
        if chain and incarnation == chain[-1]:  # fast path
            return True
        if incarnation not in chain:
            self._check_new(name, incarnation, reporter)
        newer = [older.first for older in chain if older.generation > incarnation.generation]
        if newer and seq is not None and seq >= min(newer):
            raise IncarnationError(
                f"message {seq} of {name} is superseded: {name} was restored and restarted with "
                f"message {min(newer)}",
                name,
            )
        return seq is not None or not newer

    def _check_new(self, name: str, incarnation: Incarnation, reporter: str) -> None:
        whose = f"{reporter} reports that {name}" if reporter else name
        tops = self.highest_seqs.get(name, {})
        known = max((top for g, top in tops.items() if g < incarnation.generation), default=0)
        if known >= incarnation.first:
            raise IncarnationError(
                f"{whose} was restored from a snapshot that is too old: it restarts with message "
                f"{incarnation.first}, but message {known} is known here; restore it from a newer "
                "snapshot (or with the log of inputs), or let it join under another name",
                name,
            )
        if any(one.generation == incarnation.generation for one in self.by_member.get(name, ())):
            how = (
                "was started without its state"
                if not incarnation.generation
                else "was restored twice from one snapshot"
            )
            raise IncarnationError(
                f"{whose} {how}: another incarnation is known here, with messages up to "
                f"{tops.get(incarnation.generation, 0)}; restore it from its newest snapshot, or "
                "let it join under another name",
                name,
            )

    def check_known(self, known: KnownIncarnations, reporter: str, me: str) -> None:
        """Check the restarted members of a frame. Raise IncarnationError."""
        for name, incarnation in known:
            own = self.by_member.get(name, ())
            if incarnation in own:
                continue
            if name == me:
                raise IncarnationError(
                    f"{reporter} reports another incarnation of {name} than this one", name
                )
            self.check(name, incarnation, None, reporter)

    def check_causes(self, causes: Iterable[Id], known: KnownIncarnations, sender: str) -> None:
        """Reject a message that depends on a number of another incarnation than the known one."""
        names = self.restarted_members.union(name for name, _ in known)
        for name, seq in causes:
            if name not in names:
                continue
            theirs = _find_generation(known, name, seq)
            ours = max(theirs, self.find_incarnation(name, seq).generation)
            if theirs != ours:
                raise IncarnationError(
                    f"message of {sender} depends on {name}'s message {seq} from before "
                    f"{name} restarted with message {self.find_incarnation(name, seq).first}",
                    name,
                )


def _find_generation(known: KnownIncarnations, name: str, seq: int) -> int:
    generations = [
        incarnation.generation
        for member, incarnation in known
        if member == name and incarnation.first <= seq
    ]
    return max(generations, default=0)


def check_nonce(value: int | None) -> int:
    """Return the nonce of a new incarnation. Raise LocalError."""
    if value is None:
        return draw_nonce()
    value = plain(value)
    if type(value) is not int or not 0 <= value < 1 << 32:
        raise LocalError(f"incarnation={quote(value)}: expected 0 to 2**32 - 1, or None")
    return value
