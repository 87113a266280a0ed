"""Causal release for one shard of a stream: rows in, rows out in causal order, state as bytes.

Theory of operation
-------------------
A shard holds many groups. Identities (id, or member and number) become tokens by exact
numbering (`release_names`); `release_drain` decides on tokens alone. What must be remembered
of a row that has left:

declared causes   its id, when it was released, a digest of its content: 25 bytes and the id.
                  Without `remember` for good; with it, until that long after the release.
clocks and FIFO   runs of numbers, 20 bytes a run: one run a member where nothing is missing.

Held rows are remembered by their control columns here; the rows themselves are the caller's,
who keeps them in the order that `Outcome.held` tells. `release_reference` is the same thing
with dictionaries and sets; tests hold both against each other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from antecede.errors import InputError
from antecede.kernels import release_drain as drain
from antecede.kernels import release_rows as shape
from antecede.kernels.release_about import check_same_stream
from antecede.kernels.release_memory import Runs, covered, keep_tokens, unique_links
from antecede.kernels.release_names import Names, Text, no_names, take_text
from antecede.kernels.release_state import pack, unpack

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]
Bits = NDArray[np.uint8]
POLICIES = {"hold": shape.HOLD, "release": shape.RELEASE, "drop": shape.DROP}


class Plan(NamedTuple):
    """How a shard works; `patience` and `remember` are in units of the clock.

    `counted`: identities are (member, number). `timed`: rows carry times, and they are the
    clock; otherwise the caller's `now` is. `remember` below 0: for good. `shards` is
    checked against the state: with another number of them groups would lose their past.
    `numbers`: names are numbers, and ties go by their value, not by their text. `about` is a
    JSON object of whatever else the state belongs to; a state of another one is refused.
    """

    counted: bool
    timed: bool
    policy: str = "hold"
    patience: int = 0
    remember: int = -1
    shards: int = 1
    numbers: bool = False
    about: str = ""


class Batch(NamedTuple):
    """Control columns of n new rows, in any order.

    `name` is the id, or the member whose `number` it is. `status` is 0, or NULL or BAD for
    rows without identity, which have no links. Links of row r: first[r]:first[r + 1].
    """

    group: Text
    name: Text
    number: Longs
    time: Longs
    digest: Longs
    status: Bits
    first: Longs
    cause_name: Text
    cause_count: Longs


class Links(NamedTuple):
    """Causes of leaving rows: row k of `Outcome.row` has those from first[k] to first[k + 1]."""

    first: Longs
    name: Text
    number: Longs


class Outcome(NamedTuple):
    """Which rows leave: index among held rows and new ones, in order of release.

    Rows with a position come first, then those set aside. `waited` are the causes that a leaving
    row waited for, `missing` those without which it went; no cause is in both. `held` are the
    rows that stay, in the order in which the caller must keep them.
    """

    row: Ints
    status: Bits
    position: Longs
    waited_units: Longs
    waited: Links
    missing: Links
    held: Ints


class Shard:
    """The state of one shard; `step` takes a micro-batch, `dump` and `load` go by bytes."""

    def __init__(self, plan: Plan, state: bytes | None = None) -> None:
        self.plan = plan
        arrays = {} if state is None else unpack(state)
        if "about" in arrays and plan.about:
            check_same_stream(arrays["about"].tobytes().decode(), plan.about)
        if arrays and bool(arrays["head"][0]) != plan.counted:
            raise InputError("this checkpoint was written with another way of naming causes")
        if arrays and int(arrays["head"][2]) != plan.shards:
            raise InputError(
                f"this checkpoint was written with shards={arrays['head'][2]}, not {plan.shards}: "
                "give that number, or start from a new checkpoint"
            )
        self.clock = int(arrays["head"][1]) if arrays else shape.NO_TIME
        self.groups = _load_names(arrays, "group")
        self.members = _load_names(arrays, "member")
        self.events = _load_names(arrays, "event")
        self.next = _load(arrays, "next", np.int64)
        self.flag = _load(arrays, "flag", np.uint8)
        self.released = _load(arrays, "released", np.int64)
        self.digest = _load(arrays, "digest", np.int64)
        self.runs = Runs(*(_load(arrays, f"run.{key}", kind) for key, kind in _RUNS))
        self.held = {key: _load(arrays, f"held.{key}", kind) for key, kind in _HELD}
        if not len(self.held["first"]):
            self.held["first"] = np.zeros(1, np.int64)

    @property
    def held_rows(self) -> int:
        """Number of rows held back."""
        return len(self.held["token"])

    def dump(self) -> bytes:
        """Return the state as one bytes value."""
        head = np.array([self.plan.counted, self.clock, self.plan.shards], np.int64)
        arrays: dict[str, NDArray[Any]] = {"head": head, "next": self.next}
        tables = (("group", self.groups), ("member", self.members), ("event", self.events))
        for key, names in tables:
            text = names.text()
            arrays[f"{key}.owner"] = names.owner[: names.size]
            arrays[f"{key}.size"] = np.diff(text.ends).astype(np.uint32)
            arrays[f"{key}.pool"] = text.data
        arrays |= {"flag": self.flag, "released": self.released, "digest": self.digest}
        arrays |= {f"run.{key}": getattr(self.runs, key) for key, _ in _RUNS}
        arrays |= {f"held.{key}": self.held[key] for key, _ in _HELD}
        arrays["about"] = np.frombuffer(self.plan.about.encode(), np.uint8)
        return pack(arrays)

    def step(self, batch: Batch, now: int = shape.NO_TIME) -> Outcome:
        """Take in a micro-batch; `now` is the clock (timed: the greatest time seen anywhere)."""
        held, before = self.held_rows, self.clock
        batch = _writable(batch)
        self.clock = max(before, now)
        rows = self._candidates(batch, before)
        tokens = self._tokens(rows, held)
        names = self.members if self.plan.counted else self.events
        ties = shape.Names(names.pool, names.ends, self.plan.numbers)
        drain.admit(rows, tokens, ties, held)
        order = shape.Order(
            np.empty(len(rows.token), np.int32),
            np.full(len(rows.token), -1, np.int64),
            np.full(len(rows.token), shape.NO_TIME, np.int64),
            np.concatenate([self.next, np.zeros(self.groups.size - len(self.next), np.int64)]),
            np.full(len(tokens.flag), -1, np.int32),
        )
        plan = self.plan
        rule = shape.Rule(POLICIES[plan.policy], plan.patience, self.clock, plan.timed)
        count = drain.settle(rows, tokens, ties, rule, order)
        self.next = order.next
        if not plan.timed:
            shape.mark_waiting(rows, tokens, held)
        outcome = self._outcome(rows, order, count)
        self._keep(rows, tokens, outcome.held)
        return outcome

    def deadline(self) -> int | None:
        """Return when patience for a held row is over next, after the present; None: never."""
        ends = self.held["arrived"] + self.plan.patience
        ends = ends[ends > self.clock]
        return int(ends.min()) if len(ends) and self.plan.policy != "hold" else None

    # -- taking in --------------------------------------------------------------------------

    def _candidates(self, batch: Batch, before: int) -> shape.Rows:
        valid = np.flatnonzero(batch.status == 0).astype(np.int32)
        everything = len(valid) == len(batch.status)
        group = np.full(len(batch.status), -1, np.int32)
        text = batch.group if everything else Text(*take_text(*batch.group, valid))
        group[valid] = self.groups.intern(np.zeros(len(valid), np.int32), text)
        token, name = np.full_like(group, -1), np.full_like(group, -1)
        text = batch.name if everything else Text(*take_text(*batch.name, valid))
        name[valid], token[valid] = self._identify(group[valid], text, batch.number[valid])
        links = np.diff(batch.first)
        owner = np.repeat(group, links)
        _, cause = self._identify(owner, batch.cause_name, batch.cause_count)
        first, cause = unique_links(batch.first, cause, self.events.size)
        arrived = self._arrivals(batch.time, before)
        new = {
            "token": token,
            "group": group,
            "time": batch.time,
            "arrived": arrived,
            "digest": batch.digest,
            "name": name,
            "number": batch.number,
            "first": first[1:] + self.held["first"][-1],
            "cause": cause,
            "link": np.zeros(len(cause), np.uint8),
        }
        joined = {key: np.concatenate([self.held[key], new[key]]) for key, _ in _HELD}
        status = np.concatenate([np.zeros(self.held_rows, np.uint8), batch.status])
        return shape.Rows(**joined, status=status)

    def _identify(self, group: Ints, text: Text, count: Longs) -> tuple[Ints, Ints]:
        """Return the number of the name that breaks ties, and the token of the identity."""
        if not self.plan.counted:
            token = self.events.intern(group, text)
            return token, token
        member = self.members.intern(group, text)
        numbers = np.ascontiguousarray(count)
        ends = np.arange(0, 8 * len(numbers) + 8, 8, dtype=np.int64)
        return member, self.events.intern(member, Text(numbers.view(np.uint8), ends))

    def _arrivals(self, time: Longs, before: int) -> Longs:
        """Patience runs from a row's time, or from the clock when the row came after it."""
        if not self.plan.timed:
            return np.full(len(time), self.clock, np.int64)
        known = np.where(time == shape.NO_TIME, self.clock, time)
        return np.maximum(known, before)

    def _tokens(self, rows: shape.Rows, held: int) -> shape.Tokens:
        size, known = self.events.size, len(self.flag)
        flag = np.zeros(size, np.uint8)
        flag[:known] = self.flag
        released = np.full(size, shape.NO_TIME, np.int64)
        released[:known] = self.released
        digest = np.zeros(size, np.int64)
        digest[:known] = self.digest
        row = np.full(size, -1, np.int32)
        row[rows.token[:held]] = np.arange(held, dtype=np.int32)
        member, number = np.empty(0, np.int32), np.empty(0, np.int64)
        if self.plan.counted:
            member, number = self._numbers()
            gone = covered(self.runs, member, number, flag, row)
            flag[gone] = shape.DONE | shape.FORGOTTEN
        return shape.Tokens(flag, released, digest, row, member, number)

    def _numbers(self) -> tuple[Ints, Longs]:
        """Return member and number of every token (clocks and FIFO)."""
        text = self.events.text()
        return self.events.owner[: self.events.size], text.data.view(np.int64)

    # -- giving out -------------------------------------------------------------------------

    def _outcome(self, rows: shape.Rows, order: shape.Order, count: int) -> Outcome:
        positioned = order.row[:count]
        aside = np.flatnonzero((rows.status != shape.PENDING) & (order.position < 0))
        row = np.concatenate([positioned, aside.astype(np.int32)])
        held = np.flatnonzero(rows.status == shape.PENDING).astype(np.int32)
        timed = (order.released[row] != shape.NO_TIME) & (rows.time[row] != shape.NO_TIME)
        units = np.where(timed & self.plan.timed, order.released[row] - rows.time[row], -1)
        waited = self._links(rows, positioned, len(aside), False)
        missing = self._links(rows, positioned, len(aside), True)
        status, position = rows.status[row], order.position[row]
        return Outcome(row, status, position, units, waited, missing, held)

    def _links(self, rows: shape.Rows, positioned: Ints, aside: int, given: bool) -> Links:
        first, pick = shape.links_of(rows, positioned, given)
        first = np.concatenate([first, np.full(aside, first[-1], np.int64)])
        if self.plan.counted:
            member, number = self._numbers()
            name = Text(*take_text(self.members.pool, self.members.ends, member[pick]))
            return Links(first, name, number[pick])
        name = Text(*take_text(self.events.pool, self.events.ends, pick))
        return Links(first, name, np.zeros(len(pick), np.int64))

    def _keep(self, rows: shape.Rows, tokens: shape.Tokens, held: Ints) -> None:
        """Keep held rows, and of the others what must be remembered."""
        first, cause, link = shape.take_links(rows, held)
        if self.plan.counted:
            member, count = self._numbers()
            self.runs, forget = self.runs.extended(member, count, tokens.flag)
        else:
            forget = np.zeros(len(tokens.flag), np.bool_)
        if self.plan.remember >= 0 and self.clock != shape.NO_TIME:
            stamped = (tokens.flag != 0) & (tokens.released != shape.NO_TIME)
            forget |= stamped & (tokens.released < self.clock - self.plan.remember)
        keep, renumber = keep_tokens(tokens.flag, forget, rows.token[held], cause)
        text = Text(*take_text(self.events.pool, self.events.ends, keep))
        self.events = Names(self.events.owner[keep], text)
        self.flag, self.released = tokens.flag[keep], tokens.released[keep]
        self.digest = tokens.digest[keep]
        token = renumber[rows.token[held]]
        kept = {key: getattr(rows, key)[held] for key, _ in _HELD[:7]}
        kept |= {"token": token, "first": first, "cause": renumber[cause], "link": link}
        if not self.plan.counted:
            kept["name"] = token
        self.held = kept


_HELD: tuple[tuple[str, type[Any]], ...] = (
    ("token", np.int32),
    ("group", np.int32),
    ("time", np.int64),
    ("arrived", np.int64),
    ("digest", np.int64),
    ("name", np.int32),
    ("number", np.int64),
    ("first", np.int64),
    ("cause", np.int32),
    ("link", np.uint8),
)
_RUNS: tuple[tuple[str, type[Any]], ...] = (
    ("member", np.int32),
    ("low", np.int64),
    ("high", np.int64),
)


def _writable(batch: Batch) -> Batch:
    """Copy read-only arrays (Arrow's buffers): numba would compile every kernel once more."""
    columns: list[Any] = [
        Text(*(np.require(part, requirements="W") for part in column))  # type: ignore[arg-type]
        if isinstance(column, Text)
        else np.require(column, requirements="W")
        for column in batch
    ]
    return Batch(*columns)


def _load(arrays: dict[str, NDArray[Any]], key: str, kind: type[Any]) -> NDArray[Any]:
    return arrays[key] if key in arrays else np.empty(0, kind)


def _load_names(arrays: dict[str, NDArray[Any]], key: str) -> Names:
    if not arrays:
        return no_names()
    size = arrays[f"{key}.size"]
    ends = np.zeros(len(size) + 1, np.int64)
    np.cumsum(size, out=ends[1:])
    return Names(arrays[f"{key}.owner"], Text(arrays[f"{key}.pool"], ends))
