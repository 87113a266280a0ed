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
from antecede.formatting import shown

FEW = 64
"""Number of restarted members up to which every frame lists all; beyond, only those of causes."""
Told: TypeAlias = tuple[tuple[str, Incarnation], ...]
"""(name, incarnation) of restarted members, as in a frame."""
MOST_FORGOTTEN = 4096
"""Names of forgotten members that are kept, to recognize late mentions."""
MAX_LIVES = 64
"""Incarnations kept per member; the oldest are dropped."""


def fingerprint(data: bytes, size: int = 4) -> int:
    """Return a short hash as an integer."""
    import hashlib  # lazy: 5 % of the time of `import antecede`

    return int.from_bytes(hashlib.blake2s(data, digest_size=size).digest(), "little")


def new_nonce() -> int:
    """Return a random nonce."""
    return int.from_bytes(os.urandom(4), "little")


# -- options --------------------------------------------------------------------------------


def canonical(value: Any) -> str:
    """Return an option value as text, independent of order and object addresses."""
    if isinstance(value, Mapping):
        pairs = sorted((canonical(key), canonical(item)) for key, item in value.items())
        return "{" + ", ".join(f"{key}: {item}" for key, item in pairs) + "}"
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted(map(canonical, value))) + "}"
    if isinstance(value, list | tuple):
        return "(" + ", ".join(map(canonical, value)) + ")"
    if hasattr(value, "__dataclass_fields__"):
        fields = {name: getattr(value, name) for name in value.__dataclass_fields__}
        return canonical(fields)
    if isinstance(value, str):
        return repr(plain(value))
    if isinstance(value, Real | Decimal) and not isinstance(value, bool):
        return _number(value)
    return repr(value)


def _number(value: Any) -> str:
    """Return a number as text by value: 1, 1.0 and Decimal("1.00") are equal."""
    if isinstance(value, Integral):
        return str(int(value))
    try:
        exact = Fraction(value if isinstance(value, Decimal | Fraction) else str(float(value)))
    except (ValueError, OverflowError):  # infinite, or none
        return repr(value)
    return str(exact)


def _words(value: Any) -> Any:
    return value if value is None else tuple(sorted({plain(word) for word in value}))


def _by_member(value: Any) -> bool:
    return hasattr(value, "numbered")


def _settled_seconds(protocol: Protocol, name: str, value: Any) -> Any:
    """Return seconds as the protocol rounded them, if it has the option in nanoseconds."""
    settled = getattr(protocol, f"{name.removesuffix('_s')}_ns", None)
    if not name.endswith("_s") or type(settled) is not int or not isinstance(value, Real | Decimal):
        return value
    return Fraction(settled, NS)


def agreeing(
    protocol: Protocol, options: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the shared options with defaults: of the group, and by member. Equal if equivalent."""
    known = options_of(type(protocol))
    whole = {name: one.default for name, one in known.items() if not one.needed}
    whole |= protocol.settled(options)
    agree = {name: value for name, value in whole.items() if name not in protocol.own_options}
    common: dict[str, Any] = {}
    members: dict[str, Any] = {}
    for name, value in agree.items():
        if not _by_member(value):
            value = _settled_seconds(protocol, name, value)
            common[name] = _words(value) if is_word_set(known[name].hint) else plain(value)
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

    def __init__(self, names: Mapping[int, str], first: int | None = None, extra: str = "") -> None:
        self.names = dict(names)
        self.numbers = {name: number for number, name in self.names.items()}
        rows = b"".join(_row(number, name) for number, name in sorted(self.names.items()))
        start = fingerprint(rows + extra.encode()) if first is None else first
        self.digests = [start]
        self.joined: list[int] = []
        self.version = object()
        """New object after each change, for caches."""
        self.forgotten: dict[str, int] = {}
        """Newest forgotten members: name -> number."""
        self.given = max(self.names, default=-1)

    def table(self) -> tuple[Any, ...]:
        """Return a serializable state, with two more fields if members were forgotten."""
        table = tuple(self.names.items()), self.digests[0], tuple(self.joined)
        if not self.forgotten:
            return table
        return *table, (tuple(self.digests), self.given), tuple(self.forgotten.items())

    def copy(self) -> Roster:
        """Return an independent copy."""
        made = Roster(self.names, self.digests[0])
        made.digests, made.joined = list(self.digests), list(self.joined)
        made.forgotten, made.given = dict(self.forgotten), self.given
        return made

    def forget(self, number: int) -> None:
        """Drop the name of a departed member. Its number is not reused."""
        self.version = object()
        name = self.names.pop(number)
        del self.numbers[name]
        self.forgotten[name] = number
        while len(self.forgotten) > MOST_FORGOTTEN:
            del self.forgotten[next(iter(self.forgotten))]

    def is_forgotten(self, number: int) -> bool:
        """Return whether a number belonged to a forgotten member."""
        return bool(self.forgotten) and 0 <= number <= self.given and number not in self.names

    def add(self, number: int, name: str) -> None:
        """Add a joining member."""
        self.version = object()
        self.given = max(self.given, number)
        self.names[number] = name
        self.numbers[name] = number
        self.joined.append(number)
        before = self.digests[-1].to_bytes(4, "little")
        self.digests.append(fingerprint(before + _row(number, name)))

    def drop(self, number: int) -> None:
        """Undo the latest `add`."""
        self.version = object()
        del self.numbers[self.names.pop(number)]
        assert self.joined.pop() == number
        self.given -= 1
        self.digests.pop()

    @property
    def next_number(self) -> int:
        """Number of the next joining member."""
        return self.given + 1

    @property
    def view(self) -> View:
        """View for frames."""
        return View(len(self.joined), self.digests[-1])

    def name(self, number: int) -> str:
        """Return a member's name, or "#" and its number."""
        name = self.names.get(number)
        return f"#{number}" if name is None else name

    def check(self, view: View) -> int:
        """Return the number of a view's joins that are unknown here. Raise MismatchError."""
        joins, digest = view
        if joins >= len(self.digests):
            return joins - len(self.joined)
        if digest == self.digests[joins]:
            return 0
        if not view.joins:
            raise MismatchError(
                "members",
                "message of a group with another member list, or other bounds or subscriptions; "
                f"here the list began with {self._first()}",
            )
        newest = self.name(self.joined[view.joins - 1])
        raise MismatchError(
            "members",
            f"sender knows other joins; here the last of them was {newest!r}: two sponsors at "
            "once, or joins in another order",
        )

    def _first(self) -> str:
        first = [name for number, name in sorted(self.names.items()) if number not in self.joined]
        return ", ".join(first[:5]) + (f" and {len(first) - 5} more" if len(first) > 5 else "")


def _row(number: int, name: str) -> bytes:
    return varint(number) + block(name.encode())


# -- lives ----------------------------------------------------------------------------------


class Lives:
    """Incarnations of every member, and the highest sequence number of each."""

    SHAPE: ClassVar[Shape] = (
        Many((TEXT, Many((NUMBER, NUMBER, NUMBER)))),
        Many((TEXT, Many((NUMBER, NUMBER)))),
    )

    def __init__(self) -> None:
        self.chains: dict[str, list[Incarnation]] = {}
        """Name -> incarnations by generation."""
        self.tops: dict[str, dict[int, int]] = {}
        """Name -> generation -> highest known sequence number."""
        self.restarted: set[str] = set()

    def state(self) -> tuple[Any, ...]:
        """Return a serializable state."""
        chains = tuple((name, tuple(map(tuple, one))) for name, one in sorted(self.chains.items()))
        tops = tuple((name, tuple(sorted(one.items()))) for name, one in sorted(self.tops.items()))
        return chains, tops

    @classmethod
    def of_state(cls, state: Any) -> Lives:
        """Return the table of a `state`. Raise DecodeError."""
        made = cls()
        for name, chain in state[0]:
            lives = [Incarnation(*life) for life in chain]
            if not lives or lives != sorted(set(lives)) or any(x.nonce >= 1 << 32 for x in lives):
                raise DecodeError(f"invalid stored incarnations of {name!r:.40}")
            made.chains[name] = lives
            if lives[-1].generation:
                made.restarted.add(name)
        made.tops = {name: dict(one) for name, one in state[1]}
        return made

    def heard(self, name: str) -> int:
        """Return the highest known number of a member; 0: none."""
        return max(self.tops.get(name, {}).values(), default=0)

    def forget(self, name: str) -> None:
        """Drop a departed member."""
        self.chains.pop(name, None)
        self.tops.pop(name, None)
        self.restarted.discard(name)

    def learn(self, name: str, life: Incarnation) -> None:
        """Add an incarnation that passed `check`."""
        chain = self.chains.setdefault(name, [])
        if life not in chain:
            chain.append(life)
            chain.sort()
            del chain[:-MAX_LIVES]
        if life.generation:
            self.restarted.add(name)

    def hear(self, name: str, life: Incarnation, seq: int) -> None:
        """Record an accepted message."""
        chain, tops = self.chains.get(name), self.tops.get(name)
        if chain is None or chain[-1] != life:
            self.learn(name, life)
        if tops is None:
            tops = self.tops[name] = {}
        if seq > tops.get(life.generation, 0):
            tops[life.generation] = seq

    def hear_of(self, causes: Iterable[Id], told: Told) -> None:
        """Record the numbers of a held message's causes."""
        for name, seq in causes:
            tops = self.tops.get(name)
            if tops is None:
                tops = self.tops[name] = {}
            generation = _generation(told, name, seq) if told else 0
            if seq > tops.get(generation, 0):
                tops[generation] = seq

    def of(self, name: str, seq: int) -> Incarnation:
        """Return the incarnation that used a sequence number, by default the first."""
        for life in reversed(self.chains.get(name, [])):
            if life.first <= seq:
                return life
        return Incarnation(0, 0)

    def told(self, causes: Iterable[Id], *, all_lives: bool = False) -> Told:
        """Return the incarnations of a frame: those of causes or all, and the newest while few."""
        if all_lives:
            every = {(name, life) for name in self.restarted for life in self.chains[name]}
            return tuple(sorted((name, life) for name, life in every if life.generation))
        found = {(n, self.of(n, seq)) for n, seq in causes if n in self.restarted}
        if len(self.restarted) <= FEW:
            found |= {(name, self.chains[name][-1]) for name in self.restarted}
        return tuple(sorted((name, life) for name, life in found if life.generation))

    def check(self, name: str, life: Incarnation, seq: int | None, said_by: str = "") -> bool:
        """Return whether a message, or a report (`seq` None), is of no older incarnation.

        Raises IncarnationError if incarnations overlap.
        """
        chain = self.chains.get(name, ())
        if seq is not None and seq < life.first:
            raise IncarnationError(
                f"message {seq} of {name} precedes its incarnation, which began with {life.first}",
                name,
            )
        if chain and life == chain[-1]:  # fast path
            return True
        if life not in chain:
            self._check_new(name, life, said_by)
        newer = [one.first for one in chain if one.generation > life.generation]
        if newer and seq is not None and seq >= min(newer):
            raise IncarnationError(
                f"message {seq} of {name} is superseded: {name} was restored and restarted with "
                f"message {min(newer)}",
                name,
            )
        return seq is not None or not newer

    def _check_new(self, name: str, life: Incarnation, said_by: str) -> None:
        whose = f"{said_by} reports that {name}" if said_by else name
        tops = self.tops.get(name, {})
        known = max((top for g, top in tops.items() if g < life.generation), default=0)
        if known >= life.first:
            raise IncarnationError(
                f"{whose} was restored from a snapshot that is too old: it restarts with message "
                f"{life.first}, but message {known} is known here; restore it from a newer "
                "snapshot (or with the log of inputs), or let it join under another name",
                name,
            )
        if any(one.generation == life.generation for one in self.chains.get(name, ())):
            how = (
                "was started without its state"
                if not life.generation
                else "was restored twice from one snapshot"
            )
            raise IncarnationError(
                f"{whose} {how}: another incarnation is known here, with messages up to "
                f"{tops.get(life.generation, 0)}; restore it from its newest snapshot, or let it "
                "join under another name",
                name,
            )

    def check_told(self, told: Told, said_by: str, me: str) -> None:
        """Check the restarted members of a frame. Raise IncarnationError."""
        for name, life in told:
            own = self.chains.get(name, ())
            if life in own:
                continue
            if name == me:
                raise IncarnationError(
                    f"{said_by} reports another incarnation of {name} than this one", name
                )
            self.check(name, life, None, said_by)

    def check_causes(self, causes: Iterable[Id], told: Told, said_by: str) -> None:
        """Reject a message that depends on a number of another incarnation than the known one."""
        names = self.restarted.union(name for name, _ in told)
        for name, seq in causes:
            if name not in names:
                continue
            theirs = _generation(told, name, seq)
            ours = max(theirs, self.of(name, seq).generation)
            if theirs != ours:
                raise IncarnationError(
                    f"message of {said_by} depends on {name}'s message {seq} from before "
                    f"{name} restarted with message {self.of(name, seq).first}",
                    name,
                )


def _generation(told: Told, name: str, seq: int) -> int:
    lives = [life.generation for other, life in told if other == name and life.first <= seq]
    return max(lives, default=0)


def checked_nonce(value: int | None) -> int:
    """Return the nonce of a new incarnation. Raise LocalError."""
    if value is None:
        return new_nonce()
    value = plain(value)
    if type(value) is not int or not 0 <= value < 1 << 32:
        raise LocalError(f"incarnation={shown(value)}: expected 0 to 2**32 - 1, or None")
    return value
