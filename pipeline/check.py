"""Check of the table against the logs of the services, with plain sets and without antecede.

Happened-before is computed from the logs alone. Within a handler each line follows the lines before
it, a `handle` follows the `send` of the same id, and a `follow` follows the first lines of another
handler. The table must hold each sent message once, the courier's repeats marked as such, nothing
else, and positions that no pair of cause and effect contradicts.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class EventHistory(NamedTuple):
    """Content of the logs: each message's customer, text, and all messages before it."""

    customer: dict[str, str]
    value: dict[str, str]
    before: dict[str, set[str]]
    carried_copies: Counter[str]
    """Number of copies of each message that the courier sent."""
    last_lines: dict[str, dict[str, Any]]
    """Last line of each service: its counts."""


class Verdict(NamedTuple):
    """Compared quantities and errors; all lists are empty for a correct table."""

    messages: int
    copies: int
    customers: int
    pairs: int
    """Pairs of cause and effect, direct or indirect."""
    direct: int
    lost: list[str]
    duplicated: list[str]
    invalid: list[str]
    """Unknown rows, or rows with wrong text, customer or status."""
    violations: list[tuple[str, str]]
    """(effect, cause) where the effect has the lower position."""
    gaps: list[str]
    """Customers whose positions are not 0, 1, 2, ..."""
    wrong_contexts: list[str]
    """Messages whose causes differ from the services' logs."""

    @property
    def is_ok(self) -> bool:
        """Return whether there are no errors."""
        return not any(
            (
                self.lost,
                self.duplicated,
                self.invalid,
                self.violations,
                self.gaps,
                self.wrong_contexts,
            )
        )


def read_history(folder: Path, services: Sequence[str]) -> EventHistory:
    """Read the logs of the services and of the courier."""
    customer: dict[str, str] = {}
    value: dict[str, str] = {}
    ends: dict[str, dict[str, Any]] = {}
    lines: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for service in services:
        for line in _read_lines(folder / f"{service}.jsonl"):
            if line["do"] == "end":
                ends[service] = line
                continue
            lines[service, line["control"]].append(line)
            if line["do"] == "send":
                if line["id"] in value:
                    raise ValueError(f"duplicate id {line['id']}")
                customer[line["id"]], value[line["id"]] = line["customer"], line["value"]
    carried = Counter(line["id"] for line in _read_lines(folder / "courier.jsonl"))
    return EventHistory(customer, value, _compute_pasts(lines), carried, ends)


def _read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _compute_pasts(lines: Mapping[tuple[str, int], list[dict[str, Any]]]) -> dict[str, set[str]]:
    """Return all messages before each message, by iteration to a fixpoint."""
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


def check_table(history: EventHistory, rows: Iterable[Mapping[str, Any]]) -> Verdict:
    """Compare the rows of the table with the history."""
    rows = list(rows)
    placed = [row for row in rows if row["position"] is not None]
    others = [row for row in rows if row["position"] is None]
    copies = Counter(row["message_id"] for row in rows)
    places = Counter(row["message_id"] for row in placed)
    position = {row["message_id"]: row["position"] for row in placed}
    early = [
        (effect, cause)
        for effect, past in history.before.items()
        for cause in past
        if effect in position and cause in position and position[cause] >= position[effect]
        if history.customer[cause] == history.customer[effect]
    ]
    named = {row["message_id"]: set(row["causes"]) for row in placed}
    return Verdict(
        messages=len(history.value),
        copies=history.carried_copies.total(),
        customers=len(set(history.customer.values())),
        pairs=sum(map(len, history.before.values())),
        direct=sum(map(len, named.values())),
        lost=sorted(history.value.keys() - places.keys())
        + sorted((history.carried_copies - copies).keys()),
        duplicated=sorted(name for name, count in places.items() if count > 1)
        + sorted((copies - history.carried_copies).keys()),
        invalid=_find_invalid(history, placed, others),
        violations=sorted(early),
        gaps=_find_gaps(placed),
        wrong_contexts=sorted(
            name
            for name, past in _close_transitively(named).items()
            if history.before[name] != past
        ),
    )


def _find_invalid(
    history: EventHistory,
    positioned: Sequence[Mapping[str, Any]],
    others: Sequence[Mapping[str, Any]],
) -> list[str]:
    wrong = [row for row in positioned if row["antecede_status"] != "ordered"]
    wrong += [row for row in others if row["antecede_status"] != "duplicate"]
    wrong += [
        row
        for row in (*positioned, *others)
        if history.value.get(row["message_id"]) != row["value"]
        or history.customer.get(row["message_id"]) != row["customer"]
    ]
    return [f"{row['message_id']} ({row['antecede_status']})" for row in wrong]


def _find_gaps(positioned: Sequence[Mapping[str, Any]]) -> list[str]:
    by_customer: dict[str, list[int]] = defaultdict(list)
    for row in positioned:
        by_customer[row["customer"]].append(row["position"])
    return [name for name, found in by_customer.items() if sorted(found) != [*range(len(found))]]


def _close_transitively(direct_causes: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return the transitive closure of direct causes."""
    past = {name: set(causes) for name, causes in direct_causes.items()}
    grown = True
    while grown:
        grown = False
        for name, causes in direct_causes.items():
            more = past[name].union(*(past.get(cause, set()) for cause in causes))
            if more != past[name]:
                past[name] = more
                grown = True
    return past
