"""State shared by the parts of a shard's step: known identities, candidates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from antecede.tables.order.stream import affected_rows
from antecede.tables.order.stream.batch_ids import Identities
from antecede.tables.order.stream.held import HeldPieces, HeldRows, no_rows, piece_arrays
from antecede.tables.order.stream.kernels import rows as shape
from antecede.tables.order.stream.kernels.rows import NO_TIME, Longs
from antecede.tables.order.stream.storage.id_table import Ledger
from antecede.tables.order.stream.types import ShardPlan

LATE = 1
"""Mark of a held row: a row that needs it went without it before it came."""
NO_PIECE = piece_arrays(no_rows(), np.zeros(0, np.uint8))
"""In place of rows that are no piece yet, where the pieces alone are looked at."""


@dataclass(frozen=True, slots=True)
class Working:
    """The candidates of a step: held rows by piece and row, the new ones behind them."""

    picked: Longs
    held: HeldRows
    rows: shape.Rows
    tokens: shape.Tokens
    order: shape.ReleaseOrder
    count: int


@dataclass(slots=True)
class Step:
    """One micro-batch of a shard under way."""

    plan: ShardPlan
    held: HeldPieces
    ledgers: Mapping[str, Ledger]
    known: Identities
    before: int  # The clock until this step
    clock: int
    serials: int  # Groups that were ever numbered

    def ties(self) -> shape.TieNames:
        """Return the names by which rows of the same release go in order."""
        names = self.known.members if self.plan.counted else self.known.events
        return shape.TieNames(names.pool, names.ends, self.plan.numbers)

    def tokens(self) -> shape.Tokens:
        """Return a fresh copy of what is known of each identity."""
        known = self.known
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

    def find_elsewhere(self, tokens: shape.Tokens) -> None:
        """Mark the identities that a held row has; each is looked up once a step."""
        known = self.known
        asked = len(known.place)
        known.place = np.concatenate([known.place, np.full(known.size - asked, -1, np.int64)])
        if not self.held.count:
            return
        free = (tokens.flag[asked:] & (shape.DONE | shape.ASIDE)) == 0
        ask = (asked + np.flatnonzero(free)).astype(np.int32)
        views, _opened = self.held.views(NO_PIECE)
        digest = np.zeros(len(ask), np.int64)
        serial, text, number = known.names_of(ask)
        place = affected_rows.held_as(views, serial, *text, number, digest)
        known.place[ask] = place
        tokens.digest[ask[place >= 0]] = digest[place >= 0]
        tokens.row[known.place >= 0] = shape.ELSEWHERE

    def as_held(self, new: shape.Rows) -> HeldRows:
        """Return the new rows as they would be held; what has no identity has no name."""
        known = self.known
        valid = new.token >= 0
        token = np.where(valid, new.token, 0)
        group = np.where(valid, new.group, 0)
        if not known.size:
            return no_rows()
        serial, name, number = known.names_of(token)
        _, cause, cause_number = known.names_of(new.cause)
        settled = (known.flag[new.cause] & shape.DONE) != 0
        late = valid & ((known.flag[token] & shape.GIVEN_UP) != 0)
        return HeldRows(
            serial=serial,
            group=known.groups.taken(group),
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
