"""Model of `order` in plain sets, for `dirty_rows`; it shares no code with the engines."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Set
from typing import Any, NamedTuple

from tests.spark.dirty_rows import CONTENT, Row

_EARLIEST = -(2**62)


class Outcome(NamedTuple):
    """The added columns of a row; waits in microseconds, names sorted, None where null."""

    status: str
    position: int | None = None
    waited_for: tuple[str, ...] | None = None
    missing: tuple[str, ...] | None = None
    waited_us: int | None = None


class Group:
    """The rows of one group, each set aside or taking part."""

    def __init__(self, rows: list[Row], *, first_come: bool, taken: Set[int]) -> None:
        self.outcomes: dict[int, Outcome] = {}
        self.rows: dict[str, Row] = {}
        self.causes: dict[str, list[str]] = {}
        self._take_first_of_each_id(rows, first_come=first_come, taken=taken)
        self._set_cycles_aside()
        self.released: dict[str, int] = {}
        self.depth: dict[str, int] = {}
        for name in self._causes_first():
            self._release(name)

    def _take_first_of_each_id(self, rows: list[Row], *, first_come: bool, taken: Set[int]) -> None:
        claims: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            if row["id"] in named_causes(row):
                self.outcomes[row["row"]] = Outcome("self_cause")
            else:
                claims[row["id"]].append(row)
        for name, claimed in claims.items():
            arrival = _by_file_and_time if first_come else _by_time
            claimed.sort(key=lambda row: (arrival(row), row["row"] not in taken))
            first, *others = claimed
            self.rows[name], self.causes[name] = first, named_causes(first)
            for other in others:
                same = content_agrees(first, other)
                self.outcomes[other["row"]] = Outcome("duplicate" if same else "conflict")

    def known(self, name: str) -> list[str]:
        """Return the causes of a row that take part themselves."""
        return [cause for cause in self.causes[name] if cause in self.rows]

    def _causes_first(self) -> list[str]:
        """Return the rows that lie on no cycle and behind none, causes first."""
        effects: dict[str, list[str]] = defaultdict(list)
        left = {}
        for name in self.rows:
            left[name] = len(self.known(name))
            for cause in self.known(name):
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
        suspects = self.rows.keys() - set(self._causes_first())
        on_cycle = {name for name in suspects if name in self._past(name, suspects)}
        for name in on_cycle:
            self.outcomes[self.rows.pop(name)["row"]] = Outcome("cycle")

    def _past(self, name: str, within: set[str]) -> set[str]:
        found: set[str] = set()
        open_ = [name]
        while open_:
            for cause in self.known(open_.pop()):
                if cause in within and cause not in found:
                    found.add(cause)
                    open_.append(cause)
        return found

    def _release(self, name: str) -> None:
        causes, time = self.known(name), self.rows[name]["seen"]
        latest = max((self.released[cause] for cause in causes), default=_EARLIEST)
        at = latest if time is None else max(latest, time)
        same = [self.depth[cause] + 1 for cause in causes if self.released[cause] == at]
        self.released[name], self.depth[name] = at, max(same, default=0)

    def positioned(self) -> dict[int, Outcome]:
        """Return the outcomes of the rows that have a position."""

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
        later = [] if time is None else [c for c in self.known(name) if self.released[c] > time]
        return Outcome(
            "missing_cause" if missing else "ordered",
            position,
            tuple(sorted(later)),
            tuple(sorted(missing)),
            None if time is None else self.released[name] - time,
        )

    def held(self) -> set[str]:
        """Return the ids that wait for ever: a cause is missing, or one that waits itself."""
        found: set[str] = set()
        for name in self._causes_first():
            if any(cause not in self.rows or cause in found for cause in self.causes[name]):
                found.add(name)
        return found


def outcomes_of(rows: list[Row], *, grouped: bool = True) -> dict[int, Outcome]:
    """Return what a batch makes of each row, by `row`."""
    outcomes, groups = _groups(rows, grouped=grouped, first_come=False)
    for group in groups:
        outcomes |= group.outcomes | group.positioned()
    return outcomes


def outcomes_of_stream(
    rows: list[Row], taken: Set[int] = frozenset()
) -> tuple[dict[int, Outcome], set[int]]:
    """Return what a stream gives out with on_missing="hold", and the rows that it holds for ever.

    The rows have a `file`, the micro-batch in which they come. Of rows with one id, one file and
    one time a stream may take any: `taken` are the rows that it took.
    """
    outcomes, groups = _groups(rows, grouped=True, first_come=True, taken=taken)
    held: set[int] = set()
    for group in groups:
        waiting = {group.rows[name]["row"] for name in group.held()}
        outcomes |= group.outcomes
        outcomes |= {row: o for row, o in group.positioned().items() if row not in waiting}
        held |= waiting
    return outcomes, held


def _groups(
    rows: list[Row], *, grouped: bool, first_come: bool, taken: Set[int] = frozenset()
) -> tuple[dict[int, Outcome], list[Group]]:
    outcomes: dict[int, Outcome] = {}
    parts: dict[str | None, list[Row]] = defaultdict(list)
    for row in rows:
        if is_blank(row["id"]) or (grouped and row["parcel"] is None):
            outcomes[row["row"]] = Outcome("null_key")
        else:
            parts[row["parcel"] if grouped else None].append(row)
    return outcomes, [Group(part, first_come=first_come, taken=taken) for part in parts.values()]


def is_blank(name: str | None) -> bool:
    return name is None or not name.strip()


def named_causes(row: Row) -> list[str]:
    return list(dict.fromkeys(cause for cause in row["causes"] or [] if not is_blank(cause)))


def content_agrees(first: Row, other: Row) -> bool:
    """Compare the columns, and the fields of `details`, that both rows have."""
    one, two = first["details"], other["details"]
    same = all(one[name] == two[name] for name in one.keys() & two.keys())
    return same and all(first[name] == other[name] for name in CONTENT if name != "details")


def _by_time(row: Row) -> tuple[Any, ...]:
    return row["seen"] is None, row["seen"] or 0


def _by_file_and_time(row: Row) -> tuple[Any, ...]:
    return row["file"], *_by_time(row)


def told(rows: Iterable[Row], expected: dict[int, Outcome], twins: dict[int, int]) -> str:
    """Compare rows of an engine with outcomes; return the differences as text, "" if none.

    `twins` names one row for all that are equal in everything: any of them may be taken.
    """
    found = Counter((twins[row["row"]], outcome_of(row)) for row in rows)
    wanted = Counter((twins[row], outcome) for row, outcome in expected.items())
    return "\n".join(
        f"{name} {count}x {item}"
        for name, rest in (("only found", found - wanted), ("only expected", wanted - found))
        for item, count in list(rest.items())[:5]
    )


def outcome_of(row: Row) -> Outcome:
    waited, missing, wait = row["waited_for"], row["missing_causes"], row["waited_ms"]
    return Outcome(
        row["antecede_status"],
        row["position"],
        None if waited is None else tuple(sorted(waited)),
        None if missing is None else tuple(sorted(missing)),
        None if wait is None else round(wait * 1000),
    )


def twins_of(rows: list[Row]) -> dict[int, int]:
    """Return for each row the first one that equals it in all but its number."""
    first: dict[str, int] = {}
    ignored = ("row", "made")
    return {
        row["row"]: first.setdefault(
            repr({k: v for k, v in row.items() if k not in ignored}), row["row"]
        )
        for row in rows
    }
