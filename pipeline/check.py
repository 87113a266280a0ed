"""The table against what the services logged: plain sets, and nothing of antecede.

Happened-before is worked out from the logs of the services alone. Within a control each line
follows the lines before it; a `handle` follows the `send` of the same id; a `follow` follows the
first lines of another control. The table must hold each sent message once, the repeats that the
courier carried marked as such, nothing else, and positions that no pair of cause and effect
contradicts.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class Truth(NamedTuple):
    """What the logs say: each message's customer, text, and all messages before it."""

    customer: dict[str, str]
    value: dict[str, str]
    before: dict[str, set[str]]
    carried: Counter[str]
    """Copies of each message that the courier carried."""
    ends: dict[str, dict[str, Any]]
    """The last line of each service: its counts."""


class Verdict(NamedTuple):
    """What was compared, and what is wrong: every list empty when nothing is."""

    messages: int
    copies: int
    customers: int
    pairs: int
    """Pairs of cause and effect, direct or not."""
    direct: int
    lost: list[str]
    twice: list[str]
    strange: list[str]
    """Rows that nobody sent, or whose text, customer or status is not what it should be."""
    early: list[tuple[str, str]]
    """(effect, cause) where the effect has the lesser position."""
    gaps: list[str]
    """Customers whose positions do not count 0, 1, 2, ..."""
    stamps: list[str]
    """Messages whose stamps carry another past than the services' logs say."""

    @property
    def ok(self) -> bool:
        """Tell whether nothing is wrong."""
        return not any((self.lost, self.twice, self.strange, self.early, self.gaps, self.stamps))


def truth(folder: Path, services: Sequence[str]) -> Truth:
    """Read the logs of the services and of the courier."""
    customer: dict[str, str] = {}
    value: dict[str, str] = {}
    ends: dict[str, dict[str, Any]] = {}
    lines: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for service in services:
        for line in _lines(folder / f"{service}.jsonl"):
            if line["do"] == "end":
                ends[service] = line
                continue
            lines[service, line["control"]].append(line)
            if line["do"] == "send":
                if line["id"] in value:
                    raise ValueError(f"the id {line['id']} was given twice")
                customer[line["id"]], value[line["id"]] = line["customer"], line["value"]
    carried = Counter(line["id"] for line in _lines(folder / "courier.jsonl"))
    return Truth(customer, value, _before(lines), carried, ends)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _before(lines: Mapping[tuple[str, int], list[dict[str, Any]]]) -> dict[str, set[str]]:
    """Return for each message all that happened before it: sets grow until none does."""
    past = {control: [set[str]() for _ in found] for control, found in lines.items()}
    before: dict[str, set[str]] = {}
    grown = True
    while grown:
        grown = False
        for (service, number), found in lines.items():
            known: set[str] = set()
            for place, line in enumerate(found):
                if line["do"] == "handle":
                    known = known | {line["id"]} | before.get(line["id"], set())
                elif line["do"] == "follow" and line["lines"]:
                    known = known | past[service, line["other"]][line["lines"] - 1]
                elif line["do"] == "send":
                    if before.get(line["id"]) != known:
                        before[line["id"]] = known
                        grown = True
                    known = known | {line["id"]}
                if past[service, number][place] != known:
                    past[service, number][place] = known
                    grown = True
    return before


def judge(told: Truth, rows: Iterable[Mapping[str, Any]]) -> Verdict:
    """Compare the rows of the table with the truth."""
    rows = list(rows)
    placed = [row for row in rows if row["position"] is not None]
    others = [row for row in rows if row["position"] is None]
    copies = Counter(row["message_id"] for row in rows)
    places = Counter(row["message_id"] for row in placed)
    position = {row["message_id"]: row["position"] for row in placed}
    early = [
        (effect, cause)
        for effect, past in told.before.items()
        for cause in past
        if effect in position and cause in position and position[cause] >= position[effect]
        if told.customer[cause] == told.customer[effect]
    ]
    named = {row["message_id"]: set(row["causes"]) for row in placed}
    return Verdict(
        messages=len(told.value),
        copies=told.carried.total(),
        customers=len(set(told.customer.values())),
        pairs=sum(map(len, told.before.values())),
        direct=sum(map(len, named.values())),
        lost=sorted(told.value.keys() - places.keys()) + sorted((told.carried - copies).keys()),
        twice=sorted(name for name, count in places.items() if count > 1)
        + sorted((copies - told.carried).keys()),
        strange=_strange(told, placed, others),
        early=sorted(early),
        gaps=_gaps(placed),
        stamps=sorted(name for name, past in _closed(named).items() if told.before[name] != past),
    )


def _strange(
    told: Truth, placed: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]
) -> list[str]:
    wrong = [row for row in placed if row["antecede_status"] != "ordered"]
    wrong += [row for row in others if row["antecede_status"] != "duplicate"]
    wrong += [
        row
        for row in (*placed, *others)
        if told.value.get(row["message_id"]) != row["value"]
        or told.customer.get(row["message_id"]) != row["customer"]
    ]
    return [f"{row['message_id']} ({row['antecede_status']})" for row in wrong]


def _gaps(placed: Sequence[Mapping[str, Any]]) -> list[str]:
    by_customer: dict[str, list[int]] = defaultdict(list)
    for row in placed:
        by_customer[row["customer"]].append(row["position"])
    return [name for name, found in by_customer.items() if sorted(found) != [*range(len(found))]]


def _closed(named: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return all that follows from direct causes: sets grow until none does."""
    past = {name: set(causes) for name, causes in named.items()}
    grown = True
    while grown:
        grown = False
        for name, causes in named.items():
            more = past[name].union(*(past.get(cause, set()) for cause in causes))
            if more != past[name]:
                past[name] = more
                grown = True
    return past
