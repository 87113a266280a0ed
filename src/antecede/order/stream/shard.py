"""Causal release for one shard of a stream: rows in, rows out in causal order.

Theory of operation
-------------------
A shard holds many groups. Its state is a head of a few kilobytes and many immutable parts
(`blobs`), so that a micro-batch reads and writes what is new in it:

`identities`  what is remembered of groups, ids and members, in three ledgers of sealed segments
`held`        the rows that wait, in pieces, found by what they wait for (`waking`)

A step numbers the identities of the new rows, wakes the held rows that these can touch, and hands
both to `order.stream.kernels.drain`, which decides on integers. Held rows that nothing in the step
touches are not read. `tests/order/stream/reference.py` is the same thing with dictionaries and
sets; tests hold both against each other, batch by batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow
from numpy.typing import NDArray

from antecede.errors import InputError
from antecede.order.stream import waking
from antecede.order.stream.blobs import Blobs, ShardParts
from antecede.order.stream.fingerprint import check_same_stream
from antecede.order.stream.held import HeldPieces, HeldRows, joined_rows, no_rows, piece_arrays
from antecede.order.stream.identities import (
    RESTARTED,
    Identities,
    group_entries,
    id_entries,
    member_entries,
)
from antecede.order.stream.index import Bits, Ints, Longs
from antecede.order.stream.interface import Batch, Links, ShardOutput, ShardPlan, writable
from antecede.order.stream.kernels import drain
from antecede.order.stream.kernels import rows as shape
from antecede.order.stream.kernels.memory import unique_links
from antecede.order.stream.kernels.names import Text, take_text
from antecede.order.stream.kernels.rows import NO_TIME
from antecede.order.stream.ledger import Entries, Ledger
from antecede.order.stream.packed import opened, pack

pa: Any = pyarrow

FORMAT = 2
"""Of the head; format 1 kept all in two values and is read by `migration`."""
POLICIES = {"hold": shape.HOLD, "release": shape.RELEASE, "drop": shape.DROP}
_STOOD_FOR_NOTHING = (shape.DUPLICATE, shape.CONFLICT, shape.SELF, shape.NULL, shape.BAD)
LATE = 1
"""Mark of a held row: a row that needs it went without it before it came."""
_IDS_CAP = 524_288


@dataclass(frozen=True, slots=True)
class _Working:
    """The candidates of a step: held rows by piece and row, the new ones behind them."""

    picked: Longs
    held: HeldRows
    rows: shape.Rows
    tokens: shape.Tokens
    order: shape.ReleaseOrder
    count: int


class _Turn(NamedTuple):
    """A policy, and the arrival up to which it applies."""

    policy: str
    cutoff: int


class Shard:
    """One shard; `step` takes a micro-batch and keeps the state in `blobs`."""

    def __init__(self, plan: ShardPlan, blobs: Blobs) -> None:
        self.plan = plan
        self.parts = ShardParts(blobs)
        self.clock = NO_TIME
        self.serials = 0
        self.ledgers = {
            "g": Ledger("g", self.parts, 4, 2**62),
            "i": Ledger("i", self.parts, 16, _IDS_CAP),
            "m": Ledger("m", self.parts, 4, 2**62),
        }
        self.held = HeldPieces(self.parts)
        head = blobs.get("head")
        if head is not None:
            self._load(head)

    @property
    def held_rows(self) -> int:
        """Number of rows held back."""
        return self.held.count

    @property
    def size(self) -> int:
        """Bytes of the state, the head aside."""
        return self.held.size + sum(ledger.size for ledger in self.ledgers.values())

    def keep(self) -> None:
        """Write the head: without it nothing of a step is kept."""
        facts = [FORMAT, self.plan.counted, self.clock, self.serials]
        arrays: dict[str, NDArray[Any]] = {"head": np.array(facts, np.int64)}
        for ledger in self.ledgers.values():
            arrays |= ledger.dump()
        arrays |= self.held.dump()
        arrays["about"] = np.frombuffer(self.plan.about.encode(), np.uint8)
        data = pack(arrays)
        self.parts.blobs.put("head", data)
        self.parts.written += len(data)

    def _load(self, data: bytes) -> None:
        head = opened(bytearray(data))
        form, counted, self.clock, self.serials = (int(fact) for fact in head["head"][:4])
        if form != FORMAT:
            raise InputError(
                f"this checkpoint was written by another version of antecede (format {form}, "
                f"this one writes {FORMAT}): go on with that version, or start from a new one"
            )
        if self.plan.about:
            check_same_stream(head["about"].tobytes().decode(), self.plan.about)
        if bool(counted) != self.plan.counted:
            raise InputError("this checkpoint was written with another way of naming causes")
        for ledger in self.ledgers.values():
            ledger.load(head)
        self.held.load(head)

    # -- a step -----------------------------------------------------------------------------

    def step(self, batch: Batch, now: int = NO_TIME, rows: Any = None) -> ShardOutput:
        """Take in a micro-batch; `now` is the clock (timed: the greatest time seen anywhere).

        `rows` are the user's rows of the batch, an Arrow table, or None. Writes what changed to
        `blobs`, the head included. Raises InputError when more rows would be held than the plan
        allows and none may go for it; nothing is kept then.
        """
        batch, before = writable(batch), self.clock
        self.clock = max(before, now)
        known = Identities(self.plan, self.ledgers, before)
        new = self._taken_in(batch, known, before)
        turns = [_Turn(self.plan.policy, self._cutoff())]
        while True:
            working = self._settled(new, known, turns)
            over = self._over(working)
            if over <= 0:
                break
            turns.append(self._when_over(working, over, turns[-1].cutoff))
        outcome, staying, leaving = self._outcome(working, known, before)
        outcome = self._store(working, known, outcome, (staying, leaving), rows, before)
        self.keep()
        return outcome

    def pass_time(self, now: int) -> None:
        """Let the clock go on where no row comes and none is held; writes the head if it does."""
        if now > self.clock:
            self.clock = now
            self.keep()

    def oldest_wait(self) -> int | None:
        """Return for how long the oldest held row waits, in units of the clock; None: unknown."""
        if not self.held.count or self.clock == NO_TIME:
            return None
        views, opened_ = self.held.views(_NO_PIECE)
        least = waking.next_arrival(views, NO_TIME)
        del opened_
        return None if least == 2**63 - 1 else max(self.clock - int(least), 0)

    def deadline(self) -> int | None:
        """Return when patience for a held row is over next, after the present; None: never."""
        if self.plan.policy == "hold" or not self.held.count:
            return None
        views, opened_ = self.held.views(_NO_PIECE)
        least = waking.next_arrival(views, self.clock - self.plan.patience)
        del opened_
        return None if least == 2**63 - 1 else int(least) + self.plan.patience

    def _cutoff(self) -> int:
        return NO_TIME if self.clock == NO_TIME else self.clock - self.plan.patience

    # -- taking in --------------------------------------------------------------------------

    def _taken_in(self, batch: Batch, known: Identities, before: int) -> shape.Rows:
        """Number the new rows and settle which of them stand for their identity."""
        valid = np.flatnonzero(batch.status == 0).astype(np.int32)
        whole = len(valid) == len(batch.status)
        group = np.full(len(batch.status), -1, np.int32)
        text = batch.group if whole else Text(*take_text(*batch.group, valid))
        group[valid], self.serials = known.group_numbers(text, self.serials)
        token, name = np.full_like(group, -1), np.full_like(group, -1)
        text = batch.name if whole else Text(*take_text(*batch.name, valid))
        name[valid], token[valid] = known.identify(group[valid], text, batch.number[valid])
        owner = np.repeat(group, np.diff(batch.first))
        _, cause = known.identify(owner, batch.cause_name, batch.cause_count)
        first, cause = unique_links(batch.first, cause, known.size)
        known.learn()
        rows = shape.Rows(
            token=token,
            group=group,
            time=batch.time,
            arrived=self._arrivals(batch.time, before),
            digest=batch.digest,
            name=name,
            number=batch.number,
            first=first,
            cause=cause,
            link=np.zeros(len(cause), np.uint8),
            status=batch.status.copy(),
            lift=np.full(len(token), NO_TIME, np.int64),
        )
        tokens = self._tokens(known)
        self._find_elsewhere(known, tokens)
        drain.admit(rows, tokens, self._ties(known), 0)
        known.digest = tokens.digest
        return rows

    def _arrivals(self, time: Longs, before: int) -> Longs:
        """Patience runs from a row's time, or from the clock when the row came after it."""
        if not self.plan.timed:
            return np.full(len(time), self.clock, np.int64)
        return np.maximum(np.where(time == NO_TIME, self.clock, time), before)

    def _ties(self, known: Identities) -> shape.TieNames:
        names = known.members if self.plan.counted else known.events
        return shape.TieNames(names.pool, names.ends, self.plan.numbers)

    def _tokens(self, known: Identities) -> shape.Tokens:
        """Return a fresh copy of what is known of each identity."""
        member, number = np.empty(0, np.int32), np.empty(0, np.int64)
        if self.plan.counted:
            member, number = known.numbers()
        return shape.Tokens(
            known.flag.copy(),
            known.released.copy() if self.plan.timed else np.full(known.size, NO_TIME, np.int64),
            known.digest.copy(),
            np.full(known.size, shape.ABSENT, np.int32),
            member,
            number,
            np.full(known.members.size, 2**63 - 1, np.int64),
        )

    def _find_elsewhere(self, known: Identities, tokens: shape.Tokens) -> None:
        """Mark the identities that a held row has; each is looked up once a step."""
        asked = len(known.place)
        known.place = np.concatenate([known.place, np.full(known.size - asked, -1, np.int64)])
        if not self.held.count:
            return
        free = (tokens.flag[asked:] & (shape.DONE | shape.ASIDE)) == 0
        ask = (asked + np.flatnonzero(free)).astype(np.int32)
        views, opened_ = self.held.views(_NO_PIECE)
        digest = np.zeros(len(ask), np.int64)
        serial, text, number = known.names_of(ask)
        place = waking.held_as(views, serial, *text, number, digest)
        del opened_
        known.place[ask] = place
        tokens.digest[ask[place >= 0]] = digest[place >= 0]
        tokens.row[known.place >= 0] = shape.ELSEWHERE

    # -- working out ------------------------------------------------------------------------

    def _settled(self, new: shape.Rows, known: Identities, turns: list[_Turn]) -> _Working:
        """Release what can go: the new rows and the held ones that they can touch."""
        picked = self._woken(new, known, turns)
        held = self.held.rows(picked)
        rows = self._candidates(held, new, known)
        tokens = self._tokens(known)
        self._find_elsewhere(known, tokens)
        _place(rows, tokens)
        if self.plan.counted and any(turn.policy == "release" for turn in turns):
            self._find_lowest(known, tokens, picked)
        order = shape.ReleaseOrder(
            np.empty(len(rows.token), np.int32),
            np.full(len(rows.token), -1, np.int64),
            np.full(len(rows.token), NO_TIME, np.int64),
            known.next.copy(),
            np.full(len(tokens.flag), -1, np.int32),
        )
        plan, count = self.plan, 0
        for turn in turns:
            policy = POLICIES[turn.policy]
            rule = shape.ReleaseRule(policy, plan.patience, self.clock, plan.timed, turn.cutoff)
            count = drain.settle(rows, tokens, self._ties(known), rule, order, count)
        if not plan.timed:
            shape.mark_waiting(rows, tokens, held.size)
        return _Working(picked, held, rows, tokens, order, count)

    def _woken(self, new: shape.Rows, known: Identities, turns: list[_Turn]) -> Longs:
        """Return the held rows (piece << 32 | row, sorted) that this step may touch."""
        if not self.held.count:
            return np.zeros(0, np.int64)
        if len(turns) > 1:
            return self.held.all_rows()
        mine = self._as_held(new, known)
        # Of rows that have no identity at all nothing can be held: then `mine` has none of them.
        dead = (new.status != shape.PENDING).astype(np.uint8)[: mine.size]
        views, opened_ = self.held.views(piece_arrays(mine, dead))
        last = np.int64(len(views) - 1) << 32
        alive = dead == 0
        eager = any(turn.policy == "drop" for turn in turns)
        free = alive if eager else alive & _nothing_open(mine)
        seeds = last | np.flatnonzero(free)
        reached, gone = waking.woken(views, seeds, eager)
        old = reached < last
        touched, leaving = reached[old], np.sort(reached[gone & old])
        alive[reached[gone & ~old] & 0xFFFFFFFF] = False
        if turns[-1].policy != "hold" and self.clock != NO_TIME:
            overdue = waking.overdue(views, turns[-1].cutoff)
            if len(overdue):  # whether these leave is not sure: one on a cycle does not
                reached, _ = waking.woken(views, np.concatenate([seeds, overdue]), eager)
                touched = reached[reached < last]
        if not eager and alive.any():
            behind_old = _names_one_that_stays(new, known.place, leaving)
            still, joined = np.flatnonzero(alive), np.flatnonzero(alive & behind_old)
            touched = np.union1d(touched, waking.in_cycles(views, last | still, last | joined))
        del opened_
        touched.sort()
        return touched

    def _as_held(self, new: shape.Rows, known: Identities) -> HeldRows:
        """Return the new rows as they would be held; what has no identity has no name."""
        valid = new.token >= 0
        token = np.where(valid, new.token, 0)
        group = np.where(valid, new.group, 0)
        if not known.size:
            return no_rows()._replace(first=np.zeros(1, np.int64))
        serial, name, number = known.names_of(token)
        _, cause, cause_number = known.names_of(new.cause)
        settled = (known.flag[new.cause] & shape.DONE) != 0
        late = valid & ((known.flag[token] & shape.GIVEN_UP) != 0)
        return HeldRows(
            serial=serial,
            group=Text(*take_text(known.groups.pool, known.groups.ends, group)),
            name=name,
            number=number,
            time=new.time,
            arrived=new.arrived,
            digest=new.digest,
            lift=new.lift,
            mark=np.where(late, LATE, 0).astype(np.uint8),
            first=new.first,
            cause=cause,
            cause_number=cause_number,
            link=new.link | np.where(settled, shape.SETTLED, 0).astype(np.uint8),
        )

    def _candidates(self, held: HeldRows, new: shape.Rows, known: Identities) -> shape.Rows:
        """Return held rows and new ones as candidates, the identities of all numbered."""
        if not held.size:
            return new._replace(link=new.link.copy(), status=new.status.copy())
        group, self.serials = known.group_numbers(held.group, self.serials)
        name, token = known.identify(group, held.name, held.number)
        owner = np.repeat(group, np.diff(held.first))
        _, cause = known.identify(owner, held.cause, held.cause_number)
        known.learn()
        late = token[held.mark & LATE != 0]
        known.flag[late] |= shape.GIVEN_UP
        join = np.concatenate
        return shape.Rows(
            token=join([token, new.token]),
            group=join([group, new.group]),
            time=join([held.time, new.time]),
            arrived=join([held.arrived, new.arrived]),
            digest=join([held.digest, new.digest]),
            name=join([name, new.name]),
            number=join([held.number, new.number]),
            first=join([held.first, new.first[1:] + held.first[-1]]),
            cause=join([cause, new.cause]),
            link=join([held.link, new.link]),
            status=join([np.zeros(held.size, np.uint8), new.status]),
            lift=join([held.lift, new.lift]),
        )

    def _find_lowest(self, known: Identities, tokens: shape.Tokens, picked: Longs) -> None:
        """Learn the least number that each member has among held rows that are no candidates."""
        if not self.held.count:
            return
        views, opened_ = self.held.views(_NO_PIECE, picked)
        every = np.arange(known.members.size, dtype=np.int32)
        names = Text(*take_text(known.members.pool, known.members.ends, every))
        serial = known.serial[known.members.owner[every]]
        tokens.lowest[:] = waking.lowest_of(views, serial, *names)
        del opened_

    # -- too many rows held -----------------------------------------------------------------

    def _over(self, working: _Working) -> int:
        """Return how many rows more would be held than may be."""
        if self.plan.max_held < 0:
            return 0
        pending = int((working.rows.status == shape.PENDING).sum())
        return self.held.count - len(working.picked) + pending - self.plan.max_held

    def _when_over(self, working: _Working, over: int, cutoff: int) -> _Turn:
        """Return what to do with the oldest rows, at least `over` more of them than before."""
        if self.plan.over_held == "fail" or self.clock == NO_TIME:
            untimed = "" if self.plan.over_held == "fail" else " (there is no clock to go by)"
            raise InputError(
                f"{self.plan.max_held + over} rows of one shard would wait for causes that have "
                f"not come; it may hold {self.plan.max_held}{untimed}: give max_held= a greater "
                'number, over_held="release" or "drop" to let the oldest go, or missing= and '
                "patience= so that rows do not wait for good"
            )
        pending = working.rows.arrived[working.rows.status == shape.PENDING]
        others = self.held.rows(np.setdiff1d(self.held.all_rows(), working.picked))
        times = np.sort(np.concatenate([pending, others.arrived]))
        later = times[times > cutoff]
        if not len(later):
            raise InputError(
                f"{over} rows more than max_held={self.plan.max_held} wait in one shard, for rows "
                "that wait as well: give a greater number"
            )
        return _Turn(self.plan.over_held, int(later[min(over, len(later)) - 1]))

    # -- giving out -------------------------------------------------------------------------

    def _outcome(
        self, working: _Working, known: Identities, before: int
    ) -> tuple[ShardOutput, Ints, Ints]:
        """Return what leaves, with the candidates that stay and those that leave, in order."""
        rows, order = working.rows, working.order
        positioned = order.row[: working.count]
        aside = np.flatnonzero((rows.status != shape.PENDING) & (order.position < 0))
        row = np.concatenate([positioned, aside.astype(np.int32)])
        staying = np.flatnonzero(rows.status == shape.PENDING).astype(np.int32)
        timed = (order.released[row] != NO_TIME) & (rows.time[row] != NO_TIME)
        units = np.where(timed & self.plan.timed, order.released[row] - rows.time[row], -1)
        status = rows.status[row]
        status[self._first_anew(known, rows, order, row)] = shape.RESTARTED
        at = order.released[row] if self.plan.timed else np.full(len(row), NO_TIME, np.int64)
        outcome = ShardOutput(
            rows=None,
            status=status,
            position=order.position[row],
            waited_units=units,
            waited=self._links(working, known, positioned, len(aside), False),
            missing=self._links(working, known, positioned, len(aside), True),
            released=np.where(order.position[row] < 0, NO_TIME, np.maximum(at, before)),
        )
        return outcome, staying, row

    def _first_anew(
        self, known: Identities, rows: shape.Rows, order: shape.ReleaseOrder, row: Ints
    ) -> Longs:
        """Return which leaving rows are the first of a group that begins anew."""
        first = np.flatnonzero(order.position[row] == 0)
        anew: Longs = first[(known.mark[rows.group[row[first]]] & RESTARTED) != 0]
        return anew

    def _links(
        self, working: _Working, known: Identities, positioned: Ints, aside: int, given: bool
    ) -> Links:
        first, pick = shape.links_of(working.rows, positioned, given)
        first = np.concatenate([first, np.full(aside, first[-1], np.int64)])
        _, name, number = known.names_of(pick)
        return Links(first, name, number)

    # -- keeping ----------------------------------------------------------------------------

    def _store(
        self,
        working: _Working,
        known: Identities,
        outcome: ShardOutput,
        split: tuple[Ints, Ints],
        rows: Any,
        before: int,
    ) -> ShardOutput:
        """Write what changed; return the outcome with the rows that leave."""
        staying, leaving = split
        candidates, old = working.rows, working.held.size
        link, lift = _settle_links(candidates, working.tokens, self.plan.timed)
        moved = staying[staying < old]
        touched = _changed(candidates.first, working.held.link, link, moved)
        moved = moved[touched]
        fresh = staying[staying >= old]
        self._count(working, known, leaving, fresh)
        self._remember(working, known, np.concatenate([leaving, fresh]), before)
        away = np.concatenate([leaving[leaving < old], moved])
        away.sort()
        pool, place = self._pool(working.picked, away, rows, len(candidates.token))
        if pool is not None:
            outcome = outcome._replace(rows=pool.take(pa.array(place[leaving])).combine_chunks())
        links = candidates.first[old]
        held = working.held._replace(link=link[:links], lift=lift[:old])
        again = held.taken(moved) if len(moved) else no_rows()
        entered = self._as_held_rows(candidates, known, old, fresh, link, lift)
        self.held.remove(working.picked[away])
        payload = None
        if pool is not None:
            payload = pool.take(pa.array(place[np.concatenate([moved, fresh])])).combine_chunks()
        self.held.add(joined_rows([again, entered]), payload)
        return outcome

    def _pool(self, picked: Longs, away: Ints, rows: Any, candidates: int) -> tuple[Any, Longs]:
        """Return the user's rows that leave or move and the new ones; and where each stands."""
        place = np.full(candidates, -1, np.int64)
        tables = self.held.payload(picked[away]) if len(away) else []
        tables = [table for table in tables if table.num_columns]
        if rows is not None:
            tables.append(rows)
        if not tables:
            return None, place
        try:
            pool: Any = pa.concat_tables(tables)
        except pa.ArrowInvalid as error:
            raise InputError(
                "the rows held back in the checkpoint have other columns than the stream has now: "
                f"start from a new checkpoint, or bring the columns back ({error})"
            ) from error
        place[away] = np.arange(len(away))
        place[len(picked) :] = len(away) + np.arange(candidates - len(picked))
        return pool, place

    def _as_held_rows(
        self,
        rows: shape.Rows,
        known: Identities,
        old: int,
        pick: Ints,
        link: Bits,
        lift: Longs,
    ) -> HeldRows:
        """Return new candidates as they are held from now on."""
        if not len(pick):
            return no_rows()
        links = np.arange(rows.first[old], rows.first[-1])
        new = shape.Rows(
            token=rows.token[old:],
            group=rows.group[old:],
            time=rows.time[old:],
            arrived=rows.arrived[old:],
            digest=rows.digest[old:],
            name=rows.name[old:],
            number=rows.number[old:],
            first=rows.first[old:] - rows.first[old],
            cause=rows.cause[links],
            link=link[links],
            status=rows.status[old:],
            lift=lift[old:],
        )
        made = self._as_held(new, known)._replace(link=new.link)
        return made.taken((pick - old).astype(np.int32))

    def _count(self, working: _Working, known: Identities, leaving: Ints, fresh: Ints) -> None:
        """Count how many rows each group and member holds from now on."""
        rows, old = working.rows, working.held.size
        out = leaving[leaving < old]
        np.subtract.at(known.held, rows.group[out], 1)
        np.add.at(known.held, rows.group[fresh], 1)
        if self.plan.counted:
            np.subtract.at(known.member_held, rows.name[out], 1)
            np.add.at(known.member_held, rows.name[fresh], 1)

    def _remember(self, working: _Working, known: Identities, settled: Ints, before: int) -> None:
        """Write what is known now of groups, ids and members, and forget what is too old.

        `settled` are the candidates that leave, and the new ones that stay.
        """
        tokens, order = working.tokens, working.order
        if not self.plan.timed:
            tokens = tokens._replace(released=np.full(known.size, self.clock, np.int64))
        known.next = order.next
        begun = known.next > 0
        known.mark[begun] &= ~np.uint8(RESTARTED)
        limit = known.limit
        if limit != NO_TIME:
            self.ledgers["i"].forget(limit)
        now = self.clock
        idle = limit - max(self.plan.remember, 0) if limit != NO_TIME else NO_TIME
        rows = working.rows
        groups = _numbers(rows.group[settled], known.groups.size)
        entries = group_entries(known, groups, now)
        self.ledgers["g"].add(entries, idle, _holds_rows(2))
        changed = tokens.flag != known.flag
        if self.plan.counted:
            member, number = known.numbers()
            runs = known.runs.extended(member, number, tokens.flag, tokens.released, tokens.digest)
            stood = ~np.isin(rows.status[settled], _STOOD_FOR_NOTHING)
            members = _numbers(rows.name[settled[stood]], known.members.size)
            entries = member_entries(known, runs, members, now)
            self.ledgers["m"].add(entries, limit, _holds_rows(0))
            changed &= (tokens.flag & ~known.flag & (shape.ASIDE | shape.GIVEN_UP)) != 0
        pick = np.flatnonzero(changed).astype(np.int32)
        done = (tokens.flag[pick] & shape.DONE) != 0
        stamp = np.where(done, np.maximum(tokens.released[pick], before), now)
        self.ledgers["i"].add(id_entries(known, pick, tokens, stamp), limit)


def _place(rows: shape.Rows, tokens: shape.Tokens) -> None:
    """Tell each identity which candidate stands for it."""
    pending = np.flatnonzero(rows.status == shape.PENDING)
    tokens.row[rows.token[pending]] = pending
    tokens.digest[rows.token[pending]] = rows.digest[pending]


def _names_one_that_stays(rows: shape.Rows, place: Longs, gone: Longs) -> NDArray[np.bool_]:
    """Return which rows name a held row (`place`, by identity) that is none of `gone` (sorted)."""
    named = place[rows.cause]
    at = np.searchsorted(gone, named)
    stays = named >= 0
    stays[at < len(gone)] &= gone[at[at < len(gone)]] != named[at < len(gone)]
    count = np.concatenate([[0], np.cumsum(stays)])
    names: NDArray[np.bool_] = count[rows.first[1:]] != count[rows.first[:-1]]
    return names


def _nothing_open(rows: HeldRows) -> NDArray[np.bool_]:
    """Return which rows have no open link."""
    opened_links = np.concatenate([[0], np.cumsum(rows.link & shape.SETTLED == 0)])
    free: NDArray[np.bool_] = opened_links[rows.first[1:]] == opened_links[rows.first[:-1]]
    return free


def _settle_links(rows: shape.Rows, tokens: shape.Tokens, timed: bool) -> tuple[Bits, Longs]:
    """Return links and lifts with what came of the causes in this step."""
    link = rows.link.copy()
    done = (tokens.flag[rows.cause] & shape.DONE) != 0
    done &= (link & (shape.GIVEN | shape.SETTLED)) == 0
    link[done] |= shape.SETTLED
    lift = rows.lift.copy()
    if timed:
        owner = np.repeat(np.arange(len(rows.token)), np.diff(rows.first))[done]
        when = tokens.released[rows.cause[done]]
        np.maximum.at(lift, owner, when)
        own = rows.time[owner]
        waited = (when > own) & (own != NO_TIME)
        link[np.flatnonzero(done)[waited]] |= shape.WAITED
    return link, lift


def _changed(first: Longs, before: Bits, after: Bits, pick: Ints) -> NDArray[np.bool_]:
    """Return which of the picked rows, all held before, have a link that changed."""
    different = np.concatenate([[0], np.cumsum(before != after[: len(before)])])
    changed: NDArray[np.bool_] = different[first[pick + 1]] != different[first[pick]]
    return changed


def _numbers(given: Ints, size: int) -> Ints:
    """Return which of the numbers 0 to size - 1 are given, sorted; -1 is none."""
    found = np.zeros(size + 1, np.bool_)
    found[given] = True
    return np.flatnonzero(found[:size]).astype(np.int32)


def _holds_rows(column: int) -> Any:
    """Return the test of ledger entries whose count of held rows is not 0."""

    def test(entries: Entries) -> NDArray[np.bool_]:
        holds: NDArray[np.bool_] = entries.values[entries.first[:-1] + column] > 0
        return holds

    return test


_NO_PIECE = piece_arrays(no_rows(), np.zeros(0, np.uint8))
