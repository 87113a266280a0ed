"""Model of `order` with plain sets, for `make_dirty_rows`; independent of the engines."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Set
from typing import Any, NamedTuple

from tests.spark.dirty_rows import CONTENT, Row

_EARLIEST = -(2**62)


class Outcome(NamedTuple):
    """Added columns of a row; waits in us, sorted names, None for null."""

    status: str
    position: int | None = None
    waited_for: tuple[str, ...] | None = None
    missing: tuple[str, ...] | None = None
    waited_us: int | None = None


class ModelGroup:
    """Rows of one group, excluded or ordered."""

    def __init__(self, rows: list[Row], *, first_come: bool, taken: Set[int]) -> None:
        self.outcomes: dict[int, Outcome] = {}
        self.rows: dict[str, Row] = {}
        self.causes: dict[str, list[str]] = {}
        self._take_first_of_each_id(rows, first_come=first_come, taken=taken)
        self._set_cycles_aside()
        self.released: dict[str, int] = {}
        self.depth: dict[str, int] = {}
        for name in self._sort_topologically():
            self._release(name)

    def _take_first_of_each_id(self, rows: list[Row], *, first_come: bool, taken: Set[int]) -> None:
        claims: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            if row["id"] in list_causes(row):
                self.outcomes[row["row"]] = Outcome("self_cause")
            else:
                claims[row["id"]].append(row)
        for name, claimed in claims.items():
            arrival = _file_and_time_key if first_come else _time_key
            claimed.sort(key=lambda row: (arrival(row), row["row"] not in taken))
            first, *others = claimed
            self.rows[name], self.causes[name] = first, list_causes(first)
            for other in others:
                same = has_same_content(first, other)
                self.outcomes[other["row"]] = Outcome("duplicate" if same else "conflict")

    def list_known_causes(self, name: str) -> list[str]:
        """Return the causes of a row that are ordered themselves."""
        return [cause for cause in self.causes[name] if cause in self.rows]

    def _sort_topologically(self) -> list[str]:
        """Return the rows that are not on a cycle or behind one, causes first."""
        effects: dict[str, list[str]] = defaultdict(list)
        left = {}
        for name in self.rows:
            left[name] = len(self.list_known_causes(name))
            for cause in self.list_known_causes(name):
                effects[cause].append(name)
        done = [name for name, count in left.items() if count == 0]
        for name in done:
            for effect in effects[name]:
                left[effect] -= 1
                if left[effect] == 0:
                    done.append(effect)
        return done

    def _set_cycles_aside(self) -> None:
        """A row is on a cycle if it is in its own past."""
        suspects = self.rows.keys() - set(self._sort_topologically())
        on_cycle = {name for name in suspects if name in self._find_past(name, suspects)}
        for name in on_cycle:
            self.outcomes[self.rows.pop(name)["row"]] = Outcome("cycle")

    def _find_past(self, name: str, within: set[str]) -> set[str]:
        found: set[str] = set()
        open_ = [name]
        while open_:
            for cause in self.list_known_causes(open_.pop()):
                if cause in within and cause not in found:
                    found.add(cause)
                    open_.append(cause)
        return found

    def _release(self, name: str) -> None:
        causes, time = self.list_known_causes(name), self.rows[name]["seen"]
        latest = max((self.released[cause] for cause in causes), default=_EARLIEST)
        at = latest if time is None else max(latest, time)
        same = [self.depth[cause] + 1 for cause in causes if self.released[cause] == at]
        self.released[name], self.depth[name] = at, max(same, default=0)

    def list_positioned(self) -> dict[int, Outcome]:
        """Return the outcomes of the rows with a position."""

        def place(name: str) -> tuple[Any, ...]:
            time = self.rows[name]["seen"]
            return self.released[name], self.depth[name], time is None, time or 0, name

        return {
            self.rows[name]["row"]: self._outcome(name, position)
            for position, name in enumerate(sorted(self.rows, key=place))
        }

    def _outcome(self, name: str, position: int) -> Outcome:
        time = self.rows[name]["seen"]
        missing = [cause for cause in self.causes[name] if cause not in self.rows]
        later = (
            []
            if time is None
            else [c for c in self.list_known_causes(name) if self.released[c] > time]
        )
        return Outcome(
            "missing_cause" if missing else "ordered",
            position,
            tuple(sorted(later)),
            tuple(sorted(missing)),
            None if time is None else self.released[name] - time,
        )

    def list_held(self) -> set[str]:
        """Return the ids that wait forever for a missing cause, directly or indirectly."""
        found: set[str] = set()
        for name in self._sort_topologically():
            if any(cause not in self.rows or cause in found for cause in self.causes[name]):
                found.add(name)
        return found


def compute_outcomes(rows: list[Row], *, grouped: bool = True) -> dict[int, Outcome]:
    """Return the outcomes of a batch, by `row`."""
    outcomes, groups = _make_groups(rows, grouped=grouped, first_come=False)
    for group in groups:
        outcomes |= group.outcomes | group.list_positioned()
    return outcomes


def compute_stream_outcomes(
    rows: list[Row], taken: Set[int] = frozenset()
) -> tuple[dict[int, Outcome], set[int]]:
    """Return the outcomes of a stream with on_missing="hold", and the rows that it holds.

    Rows have a `file`, their micro-batch. Of rows with equal id, file and time a stream may choose
    any: `taken` are the chosen ones.
    """
    outcomes, groups = _make_groups(rows, grouped=True, first_come=True, taken=taken)
    held: set[int] = set()
    for group in groups:
        waiting = {group.rows[name]["row"] for name in group.list_held()}
        outcomes |= group.outcomes
        outcomes |= {row: o for row, o in group.list_positioned().items() if row not in waiting}
        held |= waiting
    return outcomes, held


def _make_groups(
    rows: list[Row], *, grouped: bool, first_come: bool, taken: Set[int] = frozenset()
) -> tuple[dict[int, Outcome], list[ModelGroup]]:
    outcomes: dict[int, Outcome] = {}
    parts: dict[str | None, list[Row]] = defaultdict(list)
    for row in rows:
        if is_blank(row["id"]) or (grouped and row["parcel"] is None):
            outcomes[row["row"]] = Outcome("null_key")
        else:
            parts[row["parcel"] if grouped else None].append(row)
    return outcomes, [
        ModelGroup(part, first_come=first_come, taken=taken) for part in parts.values()
    ]


def is_blank(name: str | None) -> bool:
    return name is None or not name.strip()


def list_causes(row: Row) -> list[str]:
    return list(dict.fromkeys(cause for cause in row["causes"] or [] if not is_blank(cause)))


def has_same_content(first: Row, other: Row) -> bool:
    """Compare the columns, and the fields of `details`, that both rows have."""
    one, two = first["details"], other["details"]
    same = all(one[name] == two[name] for name in one.keys() & two.keys())
    return same and all(first[name] == other[name] for name in CONTENT if name != "details")


def _time_key(row: Row) -> tuple[Any, ...]:
    return row["seen"] is None, row["seen"] or 0


def _file_and_time_key(row: Row) -> tuple[Any, ...]:
    return row["file"], *_time_key(row)


def find_differences(
    rows: Iterable[Row], expected: dict[int, Outcome], twins: dict[int, int]
) -> str:
    """Compare rows of an engine with outcomes; return the differences as text.

    `twins` maps each row to one of all rows that are equal in everything.
    """
    found = Counter((twins[row["row"]], read_outcome(row)) for row in rows)
    wanted = Counter((twins[row], outcome) for row, outcome in expected.items())
    return "\n".join(
        f"{name} {count}x {item}"
        for name, rest in (("only found", found - wanted), ("only expected", wanted - found))
        for item, count in list(rest.items())[:5]
    )


def read_outcome(row: Row) -> Outcome:
    waited, missing, wait = row["waited_for"], row["missing_causes"], row["waited_ms"]
    return Outcome(
        row["antecede_status"],
        row["position"],
        None if waited is None else tuple(sorted(waited)),
        None if missing is None else tuple(sorted(missing)),
        None if wait is None else round(wait * 1000),
    )


def find_twins(rows: list[Row]) -> dict[int, int]:
    """Return for each row the first one that equals it in all but its number."""
    first: dict[str, int] = {}
    ignored = ("row", "made")
    return {
        row["row"]: first.setdefault(
            repr({k: v for k, v in row.items() if k not in ignored}), row["row"]
        )
        for row in rows
    }
