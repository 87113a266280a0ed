"""Global states of one trace: consistency of cuts, channels, nearest consistent states, recovery.

Source: Sahai et al. 2020, "Global State of a Distributed System"; Mattern 1989; Randell 1975 (the
domino effect). A position is the number of an event at its member, from 1; in logs of vector clocks
it is the member's own entry. A cut contains the events of each member up to a position; members
without one have no event inside. A cut is consistent when every event that happened before an event
inside is inside.

A vector clock counts all preceding events of each member (Fidge 1988; Mattern 1989), also those
that the log lacks (*phantom events*). So a cut below such a count is not consistent.
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
from antecede.formatting import pluralize
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
PHANTOM_ID: Final = "a phantom event"
Cut = Mapping[str, int]  # member -> position of its last event inside
MAX_NAMES: Final = 8


class PhantomEvents(NamedTuple):
    """Clock entries [entries] whose last event is not logged: `row` counts `number` of `member`."""

    row: Ints
    member: Ints
    number: Ints


class EventPosition(NamedTuple):
    """Event with its member and its position there."""

    member: str
    position: int
    id: str

    def __str__(self) -> str:
        return f"{self.id} ({self.member} at {self.position:,})"


class Crossing(NamedTuple):
    """Cause and effect on two sides of a cut."""

    cause: EventPosition
    effect: EventPosition


class InTransit(NamedTuple):
    """Messages that one member sent inside, and that arrive outside at another."""

    source: str
    target: str
    ids: tuple[str, ...]


class CutVerdict(NamedTuple):
    """Result of a check of a cut."""

    cut: dict[str, int]
    proof: tuple[Crossing, ...]
    """Direct causes outside of effects inside; empty for a consistent cut."""
    channels: tuple[InTransit, ...]
    nowhere: int
    """Messages sent inside that no other member receives; 0 without rows of arrivals."""
    greatest: dict[str, int]  # the greatest consistent cut at or below this one
    least: dict[str, int]  # the least consistent cut at or above it

    @property
    def consistent(self) -> bool:
        """Return whether the cut is consistent."""
        return not self.proof


class Rollback(NamedTuple):
    """Rollback of a member to an earlier checkpoint, and its reason."""

    member: str
    start: int
    end: int
    why: Crossing


class Recovery(NamedTuple):
    """Recovery line of all members, and the rollbacks that lead to it."""

    begin: dict[str, int]  # last checkpoints
    line: dict[str, int]
    steps: tuple[Rollback, ...]

    @property
    def domino(self) -> dict[str, int]:
        """Number of checkpoints that each member lost; without members that lost none."""
        return dict(Counter(step.member for step in self.steps))


class States:
    """Global states of one run of a trace. Raises InputError for an unknown or ambiguous run."""

    def __init__(self, asked: Causality, run: str | None = None) -> None:
        self._trace = asked
        self.notes = list(asked.notes)
        table = asked.events
        self._rows = _find_rows(table, asked.alive, run)
        member: Any = table["member"].take(pa.array(self._rows))
        if not member.drop_null().length():
            raise InputError(
                "no event has a member, so there are no local states; "
                "name the column of members (--member)"
            )
        if member.null_count:
            self.notes.append(
                f"{pluralize(member.null_count, 'event')} without a member: in no local state"
            )
        events = table.take(pa.array(self._rows))
        names = events["member"].unique().drop_null().to_pylist()
        self.members: list[str] = sorted(map(str, names))
        self._ids: Any = events["id"].combine_chunks()
        codes = pc.index_in(events["member"], pa.array(self.members, pa.string()))
        self._member: Ints = pc.fill_null(codes, -1).to_numpy().astype(np.int64)
        self._kinds: Any = events["kind"].combine_chunks()
        self._offsets, self._causes = asked.edges_among(self._rows)
        self._effect = np.repeat(np.arange(len(self._rows)), np.diff(self._offsets))
        self._position = self._find_positions(events)
        self.length = {
            name: int(self._position[self._member == k].max())
            for k, name in enumerate(self.members)
        }
        self._graph = self._build_graph()
        self._waits: dict[int, tuple[tuple[int, int], ...]] = {}
        self._phantoms = self._find_phantoms(events if asked.by == CLOCKS else events.slice(0, 0))

    def _find_positions(self, events: pyarrow.Table) -> Ints:
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
        """Return the clock entries whose last counted event is not logged.

        A count beyond a member's last event is taken as that one: no cut goes further.
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
        own = find_predecessors(np.zeros_like(self._member), self._member + 1, self._position)
        offsets, causes = add_predecessors(self._offsets, self._causes, own)
        alive = np.ones(len(own), np.bool_)
        order, on_cycle = causes_first(offsets, causes, alive)
        if on_cycle.any():
            row = int(np.flatnonzero(on_cycle & (self._member >= 0))[0])
            raise InputError(
                f"{self._locate(row)} is listed after its own effect at its member: sort the rows "
                "by `antecede order` first"
            )
        return EventGraph(offsets, causes, alive, order)

    @cached_property
    def _direct_edges(self) -> Bools:
        present: Bools = self._causes >= 0
        return (
            present & self._trace.immediate_among(self._rows)
            if self._trace.by == CLOCKS
            else present
        )

    @cached_property
    def _message_edges(self) -> Bools:
        source = self._member[np.maximum(self._causes, 0)]
        target = self._member[self._effect]
        found: Bools = self._direct_edges & (source != target) & (source >= 0) & (target >= 0)
        return found

    # -- cuts ----------------------------------------------------------------------------------

    def cut(self, positions: Cut) -> CutVerdict:
        """Check a cut. Raises InputError for members and positions that do not exist."""
        limit = self._parse_cut(positions)
        inside = self._find_inside(limit)
        channels, nowhere = self._find_channels(inside)
        return CutVerdict(
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
                raise InputError(f"unknown member {name}; choose from {known}{more}")
            if isinstance(position, bool) or not isinstance(position, int) or position < 0:
                raise InputError(f"{name}={position}: a position is a whole number, 0 or more")
            if position > self.length[name]:
                raise InputError(f"{name}={position:,}: the last position is {self.length[name]:,}")
            limit[self.members.index(name)] = position
        return limit

    def _find_inside(self, limit: Ints) -> Bools:
        found: Bools = (self._member >= 0) & (self._position <= limit[self._member])
        return found

    def _find_outside(self, limit: Ints) -> Bools:
        """Mask events after their member's limit, or whose own clock counts one."""
        found: Bools = (self._member >= 0) & (self._position > limit[self._member])
        phantoms = self._phantoms
        found[phantoms.row[phantoms.number > limit[phantoms.member]]] = True
        return found

    def _find_violations(self, limit: Ints) -> Iterable[Crossing]:
        inside = self._find_inside(limit)
        via = self._trace_to_members((self._member >= 0) & ~inside)
        cause = self._causes
        wrong = self._direct_edges & inside[self._effect] & (via[np.maximum(cause, 0)] >= 0)
        edges = np.flatnonzero(wrong)
        unlogged = self._find_phantoms_outside(inside, limit)
        lacking = np.array([row for row, _ in unlogged], np.int64)
        found = np.concatenate([self._effect[edges], lacking])
        # Lazy, because a recovery needs only the first one, repeatedly.
        for k in np.lexsort((self._position[found], self._member[found])).tolist():
            known = k < len(edges)
            source = (
                self._locate(int(via[cause[edges[k]]])) if known else unlogged[k - len(edges)][1]
            )
            yield Crossing(source, self._locate(int(found[k])))

    def _find_phantoms_outside(self, inside: Bools, limit: Ints) -> list[tuple[int, EventPosition]]:
        """Return events inside whose clocks count a phantom event outside, and that phantom event.

        An event is left out if one of its causes counts the same phantom event.
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

    def _find_channels(self, inside: Bools) -> tuple[list[InTransit], int]:
        under_way = self._message_edges & ~inside[self._effect] & inside[self._causes]
        found: dict[tuple[int, int], dict[str, None]] = {}
        for edge in np.flatnonzero(under_way).tolist():
            sender, target = int(self._causes[edge]), int(self._effect[edge])
            key = int(self._member[sender]), int(self._member[target])
            found.setdefault(key, {})[self._ids[sender].as_py()] = None
        names = self.members
        channels = [
            InTransit(names[a], names[b], tuple(ids)) for (a, b), ids in sorted(found.items())
        ]
        return channels, self._count_never_received(inside)

    def _count_never_received(self, inside: Bools) -> int:
        if self._trace.by != EVENTS:
            return 0
        away = (self._causes >= 0) & (self._member[self._effect] != self._member[self._causes])
        ends = (self._causes[away], self._effect[away])
        cause, effect = (self._ids.take(pa.array(of)) for of in ends)
        arrived = cause.filter(pc.equal(cause, effect))
        sent = self._ids.filter(pc.and_(pc.equal(self._kinds, SEND), pa.array(inside))).unique()
        return int(len(sent) - (pc.sum(pc.is_in(sent, arrived)).as_py() or 0))

    def _find_greatest(self, limit: Ints) -> Ints:
        """Return the greatest consistent cut at or below: without the future of events outside."""
        outside = self._find_outside(limit)
        return self._find_tops(~(outside | mark_future(self._graph, outside)))

    def _find_least(self, limit: Ints) -> Ints:
        """Return the least consistent cut at or above: with the past of events inside."""
        inside = self._find_inside(limit)
        found = inside | mark_past(self._graph, inside)
        # A position between two logged events has no event and is kept.
        at_least: Ints = np.maximum(limit, self._find_tops(found))
        return at_least

    def _find_tops(self, inside: Bools) -> Ints:
        top = np.zeros(len(self.members), np.int64)
        inside = inside & (self._member >= 0)
        np.maximum.at(top, self._member[inside], self._position[inside])
        phantoms = self._phantoms
        held = inside[phantoms.row]
        np.maximum.at(top, phantoms.member[held], phantoms.number[held])
        return top

    def find_marked_cut(self, text: str) -> dict[str, int]:
        """Return the cut after each member's first event with this text, or else containing it.

        Members without one are left out. Raises InputError where no member has one.
        """
        texts: Any = self._trace.events["text"].take(pa.array(self._rows))
        there = np.zeros(len(texts), np.bool_)
        if is_valid_text(text):
            there = pc.fill_null(pc.equal(texts, text), False).to_numpy()
            if text and not there.any():
                there = pc.fill_null(pc.match_substring(texts, text), False).to_numpy()
                if there.any():
                    what = "the first that contains it counts"
                    self.notes.append(f"no event has exactly the text {text!r}: {what}")
        found: dict[str, int] = {}
        for row in np.flatnonzero(there & (self._member >= 0)).tolist():
            member, position = self.members[int(self._member[row])], int(self._position[row])
            found[member] = min(position, found.get(member, position))
        if not found:
            raise InputError(f"no event contains the text {text!r}")
        return dict(sorted(found.items()))

    # -- recovery ------------------------------------------------------------------------------

    def recovery(self, checkpoints: Mapping[str, Sequence[int]]) -> Recovery:
        """Return the recovery line after all members lost the events after their last checkpoints.

        `checkpoints`: member -> positions after which it saved its state, also 0. Raises as `cut`.
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
            back = max(at for at in saved[member] if at < position)
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
        count = np.zeros(len(self._member), np.int64)
        for rows in self.rows_by_member:
            count[rows] = np.arange(1, len(rows) + 1)
        return count

    def find_awaited(self, row: int) -> tuple[tuple[int, int], ...]:
        """Return the direct causes of an event at other members: (member, 1-based index there)."""
        if row in self._waits:
            return self._waits[row]
        offsets, causes = self._graph.offsets, self._graph.causes
        most: dict[int, int] = {}
        left, seen = [row], {row}
        while left:
            current = left.pop()
            for cause in causes[offsets[current] : offsets[current + 1]].tolist():
                member = int(self._member[cause])
                if cause < 0 or cause in seen:
                    continue
                seen.add(cause)
                if member < 0:  # replaced by its own causes
                    left.append(cause)
                else:
                    most[member] = max(most.get(member, 0), int(self._event_index[cause]))
        most.pop(int(self._member[row]), None)
        return self._waits.setdefault(row, tuple(most.items()))

    def count_to_position(self, member: int, count: int) -> int:
        """Return a member's position after this number of its events."""
        return int(self._position[self.rows_by_member[member][count - 1]]) if count else 0

    def compute_depths(self) -> Ints:
        """Return the number of events in the longest chain that ends with each event."""
        return measure_longest_chains(self._graph) + 1

    def list_messages(self) -> list[tuple[int, int]]:
        """Return (cause, effect) of the messages between members, by rows."""
        ends = self._causes[self._message_edges], self._effect[self._message_edges]
        return list(zip(*(of.tolist() for of in ends), strict=True))

    def list_labels(self) -> list[str]:
        """Return the label of each event in a diagram: its position at its member."""
        return [str(position) for position in self._position.tolist()]

    @property
    def has_texts(self) -> bool:
        """Return whether any event has a text."""
        texts = self._trace.events["text"]
        return bool(texts.null_count < len(texts))

    @cached_property
    def texts(self) -> list[str | None]:
        """Text of each event, its id where it has none."""
        table = self._trace.events.take(pa.array(self._rows))
        texts: list[str | None] = pc.coalesce(table["text"], table["id"]).to_pylist()
        return texts

    def _trace_to_members(self, outside: Bools) -> Ints:
        """Return for each event itself or a past one in `outside`, or -1.

        Events without a member lead to such events through others without a member.
        """
        via = np.where(outside, np.arange(len(outside)), -1)
        offsets, causes, _, order = self._graph
        for row in order[self._member[order] < 0].tolist():
            of = causes[offsets[row] : offsets[row + 1]]
            via[row] = via[of[of >= 0]].max(initial=-1)
        return via


def _find_rows(table: pyarrow.Table, alive: Bools, run: str | None) -> Ints:
    runs: Any = table["run"]
    there = [name for name in runs.unique().to_pylist() if name is not None]
    mask = alive.copy()
    if run is None and len(there) > 1:
        shown = ", ".join(there[:MAX_NAMES])
        raise InputError(f"the trace has {len(there)} runs: choose one ({shown})")
    if run is not None:
        if run not in there:
            raise InputError(f"unknown run {run}")
        mask &= pc.fill_null(pc.equal(runs, run), False).to_numpy(zero_copy_only=False)
    return np.flatnonzero(mask)
