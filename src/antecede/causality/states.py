"""`States`: the global states of one trace: is a cut consistent, what proves that it is not, what
is in the channels, which consistent states are nearest, where recovery from checkpoints ends.

Source: Sahai et al. 2020, "Global State of a Distributed System"; Mattern 1989; Randell 1975 (the
domino effect). A cut holds the first events of each member, up to a position: the how manieth event
of the member, from 1; in logs of vector clocks the member's own entry. Members that a cut does not
name have nothing inside. Consistent: whatever happened before an event inside is inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow
import pyarrow.compute

from antecede.causality.asking import CLOCKS, EVENTS, Causality
from antecede.causality.executions import before_at_member
from antecede.causality.kernels.reach import before, behind
from antecede.errors import InputError
from antecede.formatting import counted
from antecede.kernels.topological import Bools, Ints, causes_first
from antecede.trace.schema import SEND

pa: Any = pyarrow
pc: Any = pyarrow.compute
Cut = Mapping[str, int]
"""Member -> position: how many of its events are inside."""
LOOK_ALIKE: Final = 8


class Place(NamedTuple):
    """An event as its member counts."""

    member: str
    position: int
    id: str

    def __str__(self) -> str:
        return f"{self.id} ({self.member} at {self.position:,})"


class Crossing(NamedTuple):
    """A cause and its effect, on two sides of a cut or both inside a channel."""

    cause: Place
    effect: Place


class Channel(NamedTuple):
    """What was sent inside by one member, and arrives outside at another."""

    source: str
    target: str
    ids: tuple[str, ...]


class Verdict(NamedTuple):
    """What is said of a cut."""

    cut: dict[str, int]
    proof: tuple[Crossing, ...]
    """Causes outside of effects inside, the direct ones: none, and the cut is consistent."""
    channels: tuple[Channel, ...]
    nowhere: int
    """Messages sent inside of which the trace has no arrival at all; 0 where it has none to tell.
    """
    greatest: dict[str, int]
    """The greatest consistent cut at or below this one."""
    least: dict[str, int]
    """The least consistent cut at or above it."""

    @property
    def consistent(self) -> bool:
        """Whether it is a state that can have been."""
        return not self.proof


class Step(NamedTuple):
    """A member that falls back to an earlier checkpoint, and why."""

    member: str
    start: int
    end: int
    why: Crossing


class Recovery(NamedTuple):
    """Where all members can go on from, and how they got there."""

    begin: dict[str, int]
    """The last checkpoints."""
    line: dict[str, int]
    steps: tuple[Step, ...]

    @property
    def domino(self) -> dict[str, int]:
        """How many checkpoints each member lost on the way; those that lost none left out."""
        found: dict[str, int] = {}
        for step in self.steps:
            found[step.member] = found.get(step.member, 0) + 1
        return found


class States:
    """The global states of one run of a trace.

    `asked`: its events; `run`: which run, where there are several. Raises InputError for runs that
    are not there or not told, and for a trace whose events have no members.
    """

    def __init__(self, asked: Causality, run: str | None = None) -> None:
        self._asked = asked
        self.notes = list(asked.notes)
        table = asked.events
        self._rows = _rows_of_run(table, asked.alive, run)
        member: Any = table["member"].take(pa.array(self._rows))
        if not member.drop_null().length():
            raise InputError("no event has a member: there are no local states")
        if member.null_count:
            self.notes.append(f"{counted(member.null_count, 'event')} without a member: left out")
            self._rows = self._rows[member.is_valid().to_numpy(zero_copy_only=False)]
        events = table.take(pa.array(self._rows))
        self.members: list[str] = sorted(map(str, events["member"].unique().to_pylist()))
        self._ids: Any = events["id"].combine_chunks()
        codes = pc.index_in(events["member"], pa.array(self.members, pa.string()))
        self._member: Ints = codes.to_numpy(zero_copy_only=False).astype(np.int64)
        self._kinds: Any = events["kind"].combine_chunks()
        self._offsets, self._causes = asked.edges_among(self._rows)
        self._position = self._positions(events)
        self.length = {
            name: int(self._position[self._member == k].max())
            for k, name in enumerate(self.members)
        }
        """Member -> its last position."""
        self._own = before_at_member(np.zeros_like(self._member), self._member + 1, self._position)
        self._walk = self._with_own()
        self._need_of: dict[int, tuple[int, ...]] = {}

    def _positions(self, events: pyarrow.Table) -> Ints:
        """Return of each event its place among those of its member, from 1."""
        if self._asked.by == CLOCKS:
            return self._asked.own_counts(self._rows)
        place = events["file_order"].to_numpy()
        order = np.lexsort((place, self._member))
        first = np.searchsorted(self._member[order], np.arange(len(self.members)))
        position = np.empty(len(place), np.int64)
        position[order] = np.arange(len(place)) - first[self._member[order]] + 1
        return position

    def _with_own(self) -> tuple[Ints, Ints, Ints]:
        """Return order, offsets and causes of the graph in which members' events follow each other.

        Raises InputError where that is none: declared causes against the order of a member's rows.
        """
        count = np.diff(self._offsets)
        more = self._own >= 0
        offsets = np.concatenate([[0], np.cumsum(count + more)]).astype(np.int64)
        causes = np.empty(offsets[-1], np.int64)
        edge = np.repeat(np.arange(len(count)), count)
        within = np.arange(len(self._causes)) - self._offsets[:-1][edge]
        causes[offsets[:-1][edge] + within] = self._causes
        causes[(offsets[1:] - 1)[more]] = self._own[more]
        alive = np.ones(len(count), np.bool_)
        order, on_cycle = causes_first(offsets, causes, alive)
        if on_cycle.any():
            row = int(np.flatnonzero(on_cycle)[0])
            raise InputError(
                f"{self._place(row)} comes after its own effect as its member's rows are listed: "
                "such a member has no local states. `antecede order` first"
            )
        return order, offsets, causes

    # -- cuts ----------------------------------------------------------------------------------

    def cut(self, positions: Cut) -> Verdict:
        """Judge a cut. Raises InputError for members and positions that do not exist."""
        limit = self._limits(positions)
        inside = self._position <= limit[self._member]
        channels, nowhere = self._channels(inside)
        return Verdict(
            dict(zip(self.members, limit.tolist(), strict=True)),
            tuple(self._proof(inside)),
            tuple(channels),
            nowhere,
            self._named(self._greatest(limit)),
            self._named(self._least(limit)),
        )

    def _limits(self, positions: Cut) -> Ints:
        limit = np.zeros(len(self.members), np.int64)
        for name, position in positions.items():
            if name not in self.length:
                known = ", ".join(self.members[:LOOK_ALIKE])
                more = ", ..." if len(self.members) > LOOK_ALIKE else ""
                raise InputError(f"no member is called {name}; there are {known}{more}")
            if isinstance(position, bool) or not isinstance(position, int) or position < 0:
                raise InputError(f"{name}={position}: a position is a whole number, 0 or more")
            if position > self.length[name]:
                raise InputError(
                    f"{name}={position:,}: there is no such position; its last is "
                    f"{self.length[name]:,}"
                )
            limit[self.members.index(name)] = position
        return limit

    def _proof(self, inside: Bools) -> Iterable[Crossing]:
        """Yield causes outside of effects inside, in the order of the effects' positions."""
        effect = np.repeat(np.arange(len(inside)), np.diff(self._offsets))
        cause = self._causes
        wrong = (cause >= 0) & inside[effect] & ~inside[np.maximum(cause, 0)]
        if self._asked.by == CLOCKS:
            wrong &= self._asked.immediate_among(self._rows)
        found = np.flatnonzero(wrong)
        ranked = found[np.lexsort((self._position[effect[found]], self._member[effect[found]]))]
        for edge in ranked.tolist():
            yield Crossing(self._place(int(cause[edge])), self._place(int(effect[edge])))

    def _channels(self, inside: Bools) -> tuple[list[Channel], int]:
        effect = np.repeat(np.arange(len(inside)), np.diff(self._offsets))
        cause = self._causes
        under_way = (cause >= 0) & ~inside[effect] & inside[np.maximum(cause, 0)]
        under_way &= self._member[effect] != self._member[np.maximum(cause, 0)]
        if self._asked.by == CLOCKS:
            under_way &= self._asked.immediate_among(self._rows)
        found: dict[tuple[int, int], dict[str, None]] = {}
        for edge in np.flatnonzero(under_way).tolist():
            sender, target = int(cause[edge]), int(effect[edge])
            key = int(self._member[sender]), int(self._member[target])
            found.setdefault(key, {})[self._ids[sender].as_py()] = None
        names = self.members
        channels = [
            Channel(names[a], names[b], tuple(ids)) for (a, b), ids in sorted(found.items())
        ]
        return channels, self._nowhere(inside)

    def _nowhere(self, inside: Bools) -> int:
        """Count messages sent inside of which no arrival is told anywhere."""
        if self._asked.by != EVENTS:
            return 0
        effect = np.repeat(np.arange(len(inside)), np.diff(self._offsets))
        there = np.flatnonzero(self._causes >= 0)
        same = pc.equal(*(self._ids.take(pa.array(of[there])) for of in (self._causes, effect)))
        arrived = np.zeros(len(inside), np.bool_)
        arrived[self._causes[there[same.to_numpy(zero_copy_only=False)]]] = True
        sends = pc.equal(self._kinds, SEND).to_numpy(zero_copy_only=False)
        return int(np.count_nonzero(sends & inside & ~arrived))

    def _greatest(self, limit: Ints) -> Ints:
        """Return the greatest consistent cut at or below: what follows anything outside goes."""
        order, offsets, causes = self._walk
        outside = self._position > limit[self._member]
        everything = np.ones(len(outside), np.bool_)
        out = outside | behind(order, offsets, causes, everything, outside)
        return self._tops(~out)

    def _least(self, limit: Ints) -> Ints:
        """Return the least consistent cut at or above: all that is before anything inside."""
        order, offsets, causes = self._walk
        inside = self._position <= limit[self._member]
        everything = np.ones(len(inside), np.bool_)
        return self._tops(inside | before(order, offsets, causes, everything, inside))

    def _tops(self, inside: Bools) -> Ints:
        top = np.zeros(len(self.members), np.int64)
        np.maximum.at(top, self._member[inside], self._position[inside])
        return top

    def marked(self, text: str) -> dict[str, int]:
        """Return the cut behind each member's first event that says exactly this (its `text`).

        Members that never say it are left out. Raises InputError where nobody does.
        """
        said: Any = self._asked.events["text"].take(pa.array(self._rows))
        there = pc.fill_null(pc.equal(said, text), False).to_numpy(zero_copy_only=False)
        found: dict[str, int] = {}
        for row in np.flatnonzero(there).tolist():
            member, position = self.members[int(self._member[row])], int(self._position[row])
            found[member] = min(position, found.get(member, position))
        if not found:
            raise InputError(f"no event says {text!r}")
        return dict(sorted(found.items()))

    # -- recovery ------------------------------------------------------------------------------

    def recovery(self, checkpoints: Mapping[str, Sequence[int]]) -> Recovery:
        """Return where members that lost all behind their last checkpoints can go on from.

        `checkpoints`: member -> positions behind which it saved its state; every member can begin
        at 0. Raises InputError for members and positions that do not exist.
        """
        saved = {name: {0} for name in self.members}
        for name, positions in checkpoints.items():
            for position in positions:
                self._limits({name: position})
            saved[name].update(positions)
        begin = {name: max(of) for name, of in saved.items()}
        line, steps = dict(begin), list[Step]()
        while True:
            limit = self._limits(line)
            wrong = next(iter(self._proof(self._position <= limit[self._member])), None)
            if wrong is None:
                return Recovery(begin, line, tuple(steps))
            member, position = wrong.effect.member, wrong.effect.position
            back = max(one for one in saved[member] if one < position)
            steps.append(Step(member, line[member], back, wrong))
            line[member] = back

    # -- names ---------------------------------------------------------------------------------

    def _place(self, row: int) -> Place:
        member = self.members[int(self._member[row])]
        return Place(member, int(self._position[row]), self._ids[row].as_py())

    def _named(self, limit: Ints) -> dict[str, int]:
        return dict(zip(self.members, limit.tolist(), strict=True))

    # -- the lattice ---------------------------------------------------------------------------

    @cached_property
    def lines(self) -> list[list[int]]:
        """Of each member, in the order of `members`, its rows by position."""
        order = np.lexsort((self._position, self._member))
        cuts = np.searchsorted(self._member[order], np.arange(1, len(self.members)))
        return [part.tolist() for part in np.split(order, cuts)]

    @cached_property
    def needs(self) -> Any:
        """What each event needs: [events, members] how many events of each member come before it,
        itself included, counted as in `lines`.
        """
        order, offsets, causes = self._walk
        rank = np.empty(len(self._member), np.int64)
        for rows in self.lines:
            rank[rows] = np.arange(1, len(rows) + 1)
        found = np.zeros((len(order), len(self.members)), np.int64)
        for row in order.tolist():
            for cause in causes[offsets[row] : offsets[row + 1]].tolist():
                if cause >= 0:
                    np.maximum(found[row], found[cause], out=found[row])
            found[row, self._member[row]] = rank[row]
        return found

    def need_of(self, row: int) -> tuple[int, ...]:
        """Return one row of `needs`."""
        found = self._need_of.get(row)
        if found is None:
            found = self._need_of[row] = tuple(self.needs[row].tolist())
        return found

    def position_at(self, member: int, count: int) -> int:
        """Return a member's position when so many of its events have happened."""
        return int(self._position[self.lines[member][count - 1]]) if count else 0

    def depths(self) -> Ints:
        """Return of each event how many steps its longest past has, itself included."""
        order, offsets, causes = self._walk
        found = np.ones(len(self._member), np.int64)
        for row in order.tolist():
            for cause in causes[offsets[row] : offsets[row + 1]].tolist():
                if cause >= 0:
                    found[row] = max(found[row], found[cause] + 1)
        return found

    def messages(self) -> list[tuple[int, int]]:
        """Return (cause, effect) of what went from member to member, by rows."""
        effect = np.repeat(np.arange(len(self._member)), np.diff(self._offsets))
        cause = self._causes
        across = (cause >= 0) & (self._member[effect] != self._member[np.maximum(cause, 0)])
        if self._asked.by == CLOCKS:
            across &= self._asked.immediate_among(self._rows)
        return [(int(cause[k]), int(effect[k])) for k in np.flatnonzero(across)]

    def labels(self) -> list[str]:
        """Return what a picture calls each event: its member's number for it."""
        return [str(position) for position in self._position.tolist()]

    def said(self, row: int) -> str:
        """Return what an event says, else its id."""
        return str(self._texts[row])

    @cached_property
    def _texts(self) -> Any:
        return self.texts()

    @property
    def tells_texts(self) -> bool:
        """Whether any event has a text."""
        texts = self._asked.events["text"]
        return bool(texts.null_count < len(texts))

    def texts(self) -> list[str | None]:
        """Return what each event says: its text, its id where it has none."""
        table = self._asked.events.take(pa.array(self._rows))
        said: list[str | None] = pc.coalesce(table["text"], table["id"]).to_pylist()
        return said


def _rows_of_run(table: pyarrow.Table, alive: Bools, run: str | None) -> Ints:
    runs: Any = table["run"]
    there = [one for one in runs.unique().to_pylist() if one is not None]
    mask = alive.copy()
    if run is None and len(there) > 1:
        shown = ", ".join(there[:LOOK_ALIKE])
        raise InputError(f"the trace has {len(there)} runs: say which ({shown})")
    if run is not None:
        if run not in there:
            raise InputError(f"no run is called {run}")
        mask &= pc.fill_null(pc.equal(runs, run), False).to_numpy(zero_copy_only=False)
    return np.flatnonzero(mask)
