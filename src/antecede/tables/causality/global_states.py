"""Global states of one trace: consistency of cuts, channels, nearest consistent states, recovery.

Source: Sahai et al. 2020, "Global State of a Distributed System"; Mattern 1989; Randell 1975 (the
domino effect). A cut holds the first events of each member, up to a position. A position is the
number of the event among the member's, from 1; in logs of vector clocks the member's own entry.
Members that a cut does not name have nothing inside. A cut is consistent when all that happened
before an event inside is inside.

A vector clock counts all events of each member that came before (Fidge 1988; Mattern 1989), also
those that the log lacks. So a cut below such a count does not hold all that came before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow
import pyarrow.compute

from antecede.errors import InputError
from antecede.formatting import counted
from antecede.tables.causality.event_graph import add_predecessors, find_predecessors
from antecede.tables.causality.kernels.reachability import (
    EventGraph,
    mark_future,
    mark_past,
    measure_longest_chains,
)
from antecede.tables.causality.queries import CLOCKS, EVENTS, Causality, is_valid_text
from antecede.tables.kernels import Bools, Ints, causes_first
from antecede.tables.trace import SEND

pa: Any = pyarrow
pc: Any = pyarrow.compute
PHANTOM_ID: Final = "an event that the trace does not have"
Cut = Mapping[str, int]  # member -> position: how many of its events are inside
MAX_NAMES: Final = 8


class PhantomEvents(NamedTuple):
    """Entries of clocks [entries]: `row` counts `number` events of `member`; the last is
    missing.
    """

    row: Ints
    member: Ints
    number: Ints


class EventPosition(NamedTuple):
    """An event as its member counts."""

    member: str
    position: int
    id: str

    def __str__(self) -> str:
        return f"{self.id} ({self.member} at {self.position:,})"


class Crossing(NamedTuple):
    """A cause and its effect, on two sides of a cut or both inside a channel."""

    cause: EventPosition
    effect: EventPosition


class Channel(NamedTuple):
    """Messages that one member sent inside, and that arrive outside at another."""

    source: str
    target: str
    ids: tuple[str, ...]


class Verdict(NamedTuple):
    """Judgement of a cut."""

    cut: dict[str, int]
    proof: tuple[Crossing, ...]
    """Direct causes outside of effects inside; empty for a consistent cut."""
    channels: tuple[Channel, ...]
    nowhere: int
    """Messages sent inside that arrive nowhere but at their senders; 0 without rows of arrivals."""
    greatest: dict[str, int]  # the greatest consistent cut at or below this one
    least: dict[str, int]  # the least consistent cut at or above it

    @property
    def consistent(self) -> bool:
        """Whether the state is possible."""
        return not self.proof


class Rollback(NamedTuple):
    """A member that falls back to an earlier checkpoint, and why."""

    member: str
    start: int
    end: int
    why: Crossing


class Recovery(NamedTuple):
    """Line from which all members can go on, and the way to it."""

    begin: dict[str, int]  # the last checkpoints
    line: dict[str, int]
    steps: tuple[Rollback, ...]

    @property
    def domino(self) -> dict[str, int]:
        """Number of checkpoints that each member lost; members that lost none left out."""
        return dict(Counter(step.member for step in self.steps))


class States:
    """The global states of one run of a trace.

    Raises InputError for a missing or ambiguous run, and for events without members.
    """

    def __init__(self, asked: Causality, run: str | None = None) -> None:
        self._trace = asked
        self.notes = list(asked.notes)
        table = asked.events
        self._rows = _find_rows(table, asked.alive, run)
        member: Any = table["member"].take(pa.array(self._rows))
        if not member.drop_null().length():
            raise InputError("no event has a member: there are no local states")
        if member.null_count:
            self.notes.append(
                f"{counted(member.null_count, 'event')} without a member: in no local state"
            )
        events = table.take(pa.array(self._rows))
        names = events["member"].unique().drop_null().to_pylist()
        self.members: list[str] = sorted(map(str, names))
        self._ids: Any = events["id"].combine_chunks()
        codes = pc.index_in(events["member"], pa.array(self.members, pa.string()))
        self._member: Ints = pc.fill_null(codes, -1).to_numpy().astype(np.int64)
        """[events] number of the member; -1: none, the event only connects causes and effects."""
        self._kinds: Any = events["kind"].combine_chunks()
        self._offsets, self._causes = asked.edges_among(self._rows)
        self._effect = np.repeat(np.arange(len(self._rows)), np.diff(self._offsets))
        self._position = self._find_positions(events)
        self.length = {
            name: int(self._position[self._member == k].max())
            for k, name in enumerate(self.members)
        }
        """Member -> its last position."""
        self._graph = self._build_graph()
        self._waits: dict[int, tuple[tuple[int, int], ...]] = {}
        self._phantoms = self._find_phantoms(events if asked.by == CLOCKS else events.slice(0, 0))

    def _find_positions(self, events: pyarrow.Table) -> Ints:
        """Return the place of each event among those of its member, from 1."""
        if self._trace.by == CLOCKS:
            return self._trace.read_own_counts(self._rows)
        place = events["file_order"].to_numpy()
        order = np.lexsort((place, self._member))
        first = np.searchsorted(self._member[order], np.arange(len(self.members)))
        position = np.empty(len(place), np.int64)
        position[order] = np.arange(len(place)) - first[self._member[order]] + 1
        position[self._member < 0] = 0
        return position

    def _find_phantoms(self, events: pyarrow.Table) -> PhantomEvents:
        """Return the entries of the events' clocks whose last counted event is not there.

        A count behind a member's last event is taken as that one: no cut goes further.
        """
        lists = [events[name].combine_chunks() for name in ("clock_members", "clock_counts")]
        names = pc.list_flatten(lists[0])
        if not len(names):
            return PhantomEvents(*(np.empty(0, np.int64) for _ in PhantomEvents._fields))
        member, position = self._member, self._position
        row = pc.list_parent_indices(lists[0]).to_numpy().astype(np.int64)
        of = pc.fill_null(pc.index_in(names, pa.array(self.members)), -1)
        of = of.to_numpy().astype(np.int64)
        count = pc.fill_null(pc.list_flatten(lists[1]), 0).to_numpy().astype(np.int64)
        last = np.zeros(len(self.members), np.int64)
        np.maximum.at(last, member, position)
        values, code = np.unique(np.concatenate([position, count]), return_inverse=True)
        there = member * len(values) + code[: len(position)]
        counted_events = of * len(values) + code[len(position) :]
        lacking = (of >= 0) & (count > 0) & (count < last[of]) & ~np.isin(counted_events, there)
        return PhantomEvents(row[lacking], of[lacking], count[lacking])

    def _build_graph(self) -> EventGraph:
        """Return the graph in which members' events follow each other.

        Raises InputError for declared causes against the order of a member's rows.
        """
        own = find_predecessors(np.zeros_like(self._member), self._member + 1, self._position)
        offsets, causes = add_predecessors(self._offsets, self._causes, own)
        alive = np.ones(len(own), np.bool_)
        order, on_cycle = causes_first(offsets, causes, alive)
        if on_cycle.any():
            row = int(np.flatnonzero(on_cycle & (self._member >= 0))[0])
            raise InputError(
                f"{self._locate(row)} comes after its own effect as its member's rows are listed: "
                "such a member has no local states. `antecede order` first"
            )
        return EventGraph(offsets, causes, alive, order)

    @cached_property
    def _direct_edges(self) -> Bools:
        """Mask of the edges to causes that are there; by clocks, of those that no other implies."""
        present: Bools = self._causes >= 0
        return (
            present & self._trace.immediate_among(self._rows)
            if self._trace.by == CLOCKS
            else present
        )

    @cached_property
    def _message_edges(self) -> Bools:
        """Mask of the direct edges from one member to another."""
        source = self._member[np.maximum(self._causes, 0)]
        target = self._member[self._effect]
        found: Bools = self._direct_edges & (source != target) & (source >= 0) & (target >= 0)
        return found

    # -- cuts ----------------------------------------------------------------------------------

    def cut(self, positions: Cut) -> Verdict:
        """Judge a cut. Raises InputError for members and positions that do not exist."""
        limit = self._parse_cut(positions)
        inside = self._find_inside(limit)
        channels, nowhere = self._find_channels(inside)
        return Verdict(
            self._name_positions(limit),
            tuple(self._find_violations(limit)),
            tuple(channels),
            nowhere,
            self._name_positions(self._find_greatest(limit)),
            self._name_positions(self._find_least(limit)),
        )

    def _parse_cut(self, positions: Cut) -> Ints:
        limit = np.zeros(len(self.members), np.int64)
        for name, position in positions.items():
            if name not in self.length:
                known = ", ".join(self.members[:MAX_NAMES])
                more = ", ..." if len(self.members) > MAX_NAMES else ""
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

    def _find_inside(self, limit: Ints) -> Bools:
        found: Bools = (self._member >= 0) & (self._position <= limit[self._member])
        return found

    def _find_outside(self, limit: Ints) -> Bools:
        """Mask what is certainly not inside: behind its member's limit, or by its own clock."""
        found: Bools = (self._member >= 0) & (self._position > limit[self._member])
        phantoms = self._phantoms
        found[phantoms.row[phantoms.number > limit[phantoms.member]]] = True
        return found

    def _find_violations(self, limit: Ints) -> Iterable[Crossing]:
        """Yield causes outside of effects inside, in the order of the effects' positions."""
        inside = self._find_inside(limit)
        via = self._trace_to_members((self._member >= 0) & ~inside)
        cause = self._causes
        wrong = self._direct_edges & inside[self._effect] & (via[np.maximum(cause, 0)] >= 0)
        edges = np.flatnonzero(wrong)
        unlogged = self._find_phantoms_outside(inside, limit)
        lacking = np.array([row for row, _ in unlogged], np.int64)
        found = np.concatenate([self._effect[edges], lacking])
        # Named one by one: a line of recovery asks for the first alone, again and again.
        for k in np.lexsort((self._position[found], self._member[found])).tolist():
            known = k < len(edges)
            source = (
                self._locate(int(via[cause[edges[k]]])) if known else unlogged[k - len(edges)][1]
            )
            yield Crossing(source, self._locate(int(found[k])))

    def _find_phantoms_outside(self, inside: Bools, limit: Ints) -> list[tuple[int, EventPosition]]:
        """Return events inside with clocks that count an unlogged event outside, and that event.

        Events that know it from another such event are left out.
        """
        phantoms = self._phantoms
        wrong = np.flatnonzero(inside[phantoms.row] & (phantoms.number > limit[phantoms.member]))
        keys = list(zip(*(of[wrong].tolist() for of in phantoms), strict=True))
        known = set(keys)
        found = []
        for row, member, count in keys:
            of = self._causes[self._offsets[row] : self._offsets[row + 1]].tolist()
            if not any((cause, member, count) in known for cause in of):
                found.append((row, EventPosition(self.members[member], count, PHANTOM_ID)))
        return found

    def _find_channels(self, inside: Bools) -> tuple[list[Channel], int]:
        under_way = self._message_edges & ~inside[self._effect] & inside[self._causes]
        found: dict[tuple[int, int], dict[str, None]] = {}
        for edge in np.flatnonzero(under_way).tolist():
            sender, target = int(self._causes[edge]), int(self._effect[edge])
            key = int(self._member[sender]), int(self._member[target])
            found.setdefault(key, {})[self._ids[sender].as_py()] = None
        names = self.members
        channels = [
            Channel(names[a], names[b], tuple(ids)) for (a, b), ids in sorted(found.items())
        ]
        return channels, self._count_never_received(inside)

    def _count_never_received(self, inside: Bools) -> int:
        """Count messages sent inside that arrive nowhere but at their senders."""
        if self._trace.by != EVENTS:
            return 0
        away = (self._causes >= 0) & (self._member[self._effect] != self._member[self._causes])
        ends = (self._causes[away], self._effect[away])
        cause, effect = (self._ids.take(pa.array(of)) for of in ends)
        arrived = cause.filter(pc.equal(cause, effect))
        sent = self._ids.filter(pc.and_(pc.equal(self._kinds, SEND), pa.array(inside))).unique()
        return int(len(sent) - (pc.sum(pc.is_in(sent, arrived)).as_py() or 0))

    def _find_greatest(self, limit: Ints) -> Ints:
        """Return the greatest consistent cut at or below: what follows anything outside goes."""
        outside = self._find_outside(limit)
        return self._find_tops(~(outside | mark_future(self._graph, outside)))

    def _find_least(self, limit: Ints) -> Ints:
        """Return the least consistent cut at or above: all that is before anything inside."""
        inside = self._find_inside(limit)
        found = inside | mark_past(self._graph, inside)
        # A position between two that are logged has nothing of its own, and stays.
        at_least: Ints = np.maximum(limit, self._find_tops(found))
        return at_least

    def _find_tops(self, inside: Bools) -> Ints:
        """Return the least positions that hold these events and what their clocks count."""
        top = np.zeros(len(self.members), np.int64)
        inside = inside & (self._member >= 0)
        np.maximum.at(top, self._member[inside], self._position[inside])
        phantoms = self._phantoms
        held = inside[phantoms.row]
        np.maximum.at(top, phantoms.member[held], phantoms.number[held])
        return top

    def marked(self, text: str) -> dict[str, int]:
        """Return the cut behind each member's first event whose `text` is this.

        Without such an event those that contain it count; a note says so. Members without one are
        left out. Raises InputError where no member has one.
        """
        texts: Any = self._trace.events["text"].take(pa.array(self._rows))
        there = np.zeros(len(texts), np.bool_)
        if is_valid_text(text):
            there = pc.fill_null(pc.equal(texts, text), False).to_numpy()
            if text and not there.any():
                there = pc.fill_null(pc.match_substring(texts, text), False).to_numpy()
                if there.any():
                    what = "the first that contains it counts"
                    self.notes.append(f"no event says exactly {text!r}: {what}")
        found: dict[str, int] = {}
        for row in np.flatnonzero(there & (self._member >= 0)).tolist():
            member, position = self.members[int(self._member[row])], int(self._position[row])
            found[member] = min(position, found.get(member, position))
        if not found:
            raise InputError(f"no event says {text!r}")
        return dict(sorted(found.items()))

    # -- recovery ------------------------------------------------------------------------------

    def recovery(self, checkpoints: Mapping[str, Sequence[int]]) -> Recovery:
        """Return the line that members reach who lost all behind their last checkpoints.

        `checkpoints`: member -> positions behind which it saved its state; 0 is always among them.
        Raises InputError for members and positions that do not exist.
        """
        saved = {name: {0} for name in self.members}
        for name, positions in checkpoints.items():
            for position in positions:
                self._parse_cut({name: position})
            saved[name].update(positions)
        begin = {name: max(of) for name, of in saved.items()}
        line, steps = dict(begin), list[Rollback]()
        while True:
            wrong = next(iter(self._find_violations(self._parse_cut(line))), None)
            if wrong is None:
                return Recovery(begin, line, tuple(steps))
            member, position = wrong.effect.member, wrong.effect.position
            back = max(one for one in saved[member] if one < position)
            steps.append(Rollback(member, line[member], back, wrong))
            line[member] = back

    # -- names ---------------------------------------------------------------------------------

    def _locate(self, row: int) -> EventPosition:
        member = self.members[int(self._member[row])]
        return EventPosition(member, int(self._position[row]), self._ids[row].as_py())

    def _name_positions(self, limit: Ints) -> dict[str, int]:
        return dict(zip(self.members, limit.tolist(), strict=True))

    # -- the lattice ---------------------------------------------------------------------------

    @cached_property
    def rows_by_member(self) -> list[list[int]]:
        """Rows by position of each member, in the order of `members`."""
        order = np.lexsort((self._position, self._member))
        order = order[self._member[order] >= 0]
        cuts = np.searchsorted(self._member[order], np.arange(1, len(self.members)))
        return [part.tolist() for part in np.split(order, cuts)]

    @cached_property
    def _event_index(self) -> Ints:
        """Number of each event among its member's, counted as in `lines`."""
        count = np.zeros(len(self._member), np.int64)
        for rows in self.rows_by_member:
            count[rows] = np.arange(1, len(rows) + 1)
        return count

    def find_awaited(self, row: int) -> tuple[tuple[int, int], ...]:
        """Return the direct causes of an event at other members: (member, number as in `lines`)."""
        if row in self._waits:
            return self._waits[row]
        offsets, causes = self._graph.offsets, self._graph.causes
        most: dict[int, int] = {}
        left, seen = [row], {row}
        while left:
            one = left.pop()
            for cause in causes[offsets[one] : offsets[one + 1]].tolist():
                member = int(self._member[cause])
                if cause < 0 or cause in seen:
                    continue
                seen.add(cause)
                if member < 0:  # stands for what is before it
                    left.append(cause)
                else:
                    most[member] = max(most.get(member, 0), int(self._event_index[cause]))
        most.pop(int(self._member[row]), None)
        return self._waits.setdefault(row, tuple(most.items()))

    def count_to_position(self, member: int, count: int) -> int:
        """Return a member's position when so many of its events have happened."""
        return int(self._position[self.rows_by_member[member][count - 1]]) if count else 0

    def compute_depths(self) -> Ints:
        """Return the number of steps in the longest past of each event, itself included."""
        return measure_longest_chains(self._graph) + 1

    def list_messages(self) -> list[tuple[int, int]]:
        """Return (cause, effect) of what went from member to member, by rows."""
        ends = self._causes[self._message_edges], self._effect[self._message_edges]
        return list(zip(*(of.tolist() for of in ends), strict=True))

    def list_labels(self) -> list[str]:
        """Return the name of each event in a picture: its member's number for it."""
        return [str(position) for position in self._position.tolist()]

    @property
    def has_texts(self) -> bool:
        """Whether any event has a text."""
        texts = self._trace.events["text"]
        return bool(texts.null_count < len(texts))

    @cached_property
    def texts(self) -> list[str | None]:
        """Text of each event, its id where it has none."""
        table = self._trace.events.take(pa.array(self._rows))
        texts: list[str | None] = pc.coalesce(table["text"], table["id"]).to_pylist()
        return texts

    def _trace_to_members(self, outside: Bools) -> Ints:
        """Return an outside event for each event, or -1: itself, or for an event without a member
        one that comes before it by way of such events alone.
        """
        via = np.where(outside, np.arange(len(outside)), -1)
        offsets, causes, _, order = self._graph
        for row in order[self._member[order] < 0].tolist():
            of = causes[offsets[row] : offsets[row + 1]]
            via[row] = via[of[of >= 0]].max(initial=-1)
        return via


def _find_rows(table: pyarrow.Table, alive: Bools, run: str | None) -> Ints:
    runs: Any = table["run"]
    there = [one for one in runs.unique().to_pylist() if one is not None]
    mask = alive.copy()
    if run is None and len(there) > 1:
        shown = ", ".join(there[:MAX_NAMES])
        raise InputError(f"the trace has {len(there)} runs: say which ({shown})")
    if run is not None:
        if run not in there:
            raise InputError(f"no run is called {run}")
        mask &= pc.fill_null(pc.equal(runs, run), False).to_numpy(zero_copy_only=False)
    return np.flatnonzero(mask)
