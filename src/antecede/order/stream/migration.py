"""From the first format of a shard's state to today's: read for ever, written no more.

Format 1 kept a shard in two values, `control` (packed arrays of all that was ever remembered) and
`held` (the waiting rows as one Arrow IPC stream). Both are taken apart once, when a query goes on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from antecede.errors import InputError
from antecede.order.stream.blobs import Blobs
from antecede.order.stream.fingerprint import check_same_stream
from antecede.order.stream.held import HeldRows
from antecede.order.stream.identities import (
    Identities,
    group_entries,
    id_entries,
    member_entries,
)
from antecede.order.stream.index import Bits, Longs
from antecede.order.stream.interface import ShardPlan
from antecede.order.stream.kernels import rows as shape
from antecede.order.stream.kernels.memory import Runs
from antecede.order.stream.kernels.names import NameTable, Text, take_text
from antecede.order.stream.kernels.rows import NO_TIME
from antecede.order.stream.packed import unpack
from antecede.order.stream.shard import Shard
from antecede.order.stream.step import LATE

pa: Any = pyarrow
Arrays = dict[str, NDArray[Any]]


def migrated(plan: ShardPlan, blobs: Blobs, control: bytes, rows: bytes | None) -> Shard:
    """Write a state of format 1 as today's; return the shard.

    Raises InputError when it is damaged or belongs to another stream.
    """
    old = unpack(control)
    if "about" in old and plan.about:
        check_same_stream(old["about"].tobytes().decode(), plan.about)
    if bool(old["head"][0]) != plan.counted:
        raise InputError("this checkpoint was written with another way of naming causes")
    shard = Shard(plan, blobs)
    shard.clock = int(old["head"][1])
    known = _identities(plan, shard, old)
    tokens = _tokens(plan, old)
    shard.serials = known.groups.size
    held = _held(plan, known, tokens, old)
    np.add.at(known.held, old["held.group"], 1)
    shard.ledgers["g"].add(group_entries(known, _all(known.groups.size), shard.clock))
    if plan.counted:
        np.add.at(known.member_held, old["held.name"], 1)
        runs = _runs(old, tokens)
        entries = member_entries(known, runs, _all(known.members.size), shard.clock)
        shard.ledgers["m"].add(entries)
    pick = np.flatnonzero(_worth_keeping(plan, tokens.flag)).astype(np.int32)
    stamp = np.where(tokens.released[pick] == NO_TIME, shard.clock, tokens.released[pick])
    shard.ledgers["i"].add(id_entries(known, pick, tokens, stamp))
    if held.size:
        table = None if rows is None else pa.ipc.open_stream(rows).read_all()
        shard.held.add(held, table)
    shard.keep()
    return shard


def _all(size: int) -> NDArray[np.int32]:
    return np.arange(size, dtype=np.int32)


def _names(old: Arrays, key: str) -> NameTable:
    ends = np.zeros(len(old[f"{key}.size"]) + 1, np.int64)
    np.cumsum(old[f"{key}.size"], out=ends[1:])
    return NameTable(old[f"{key}.owner"], Text(old[f"{key}.pool"], ends))


def _identities(plan: ShardPlan, shard: Shard, old: Arrays) -> Identities:
    known = Identities(plan, shard.ledgers, NO_TIME)
    known.groups, known.members = _names(old, "group"), _names(old, "member")
    known.events = _names(old, "event")
    known.serial = np.arange(known.groups.size, dtype=np.int64)
    known.next = old["next"]
    known.held = np.zeros(known.groups.size, np.int64)
    known.mark = np.zeros(known.groups.size, np.uint8)
    known.member_held = np.zeros(known.members.size, np.int64)
    return known


def _tokens(plan: ShardPlan, old: Arrays) -> shape.Tokens:
    size = len(old["event.owner"])
    none = np.zeros(0, np.int64)
    member = old["event.owner"] if plan.counted else np.zeros(0, np.int32)
    number = old["event.pool"].view(np.int64) if plan.counted else none
    absent = np.full(size, shape.ABSENT, np.int32)

    def column(key: str, empty: int) -> NDArray[Any]:
        # Identities that only held rows name were numbered without being remembered.
        known = old[key]
        rest = np.full(size - len(known), empty, known.dtype)
        return np.concatenate([known, rest])

    flag, released = column("flag", 0), column("released", NO_TIME)
    return shape.Tokens(flag, released, column("digest", 0), absent, member, number, none)


def _worth_keeping(plan: ShardPlan, flag: Bits) -> NDArray[np.bool_]:
    wanted = (shape.ASIDE | shape.GIVEN_UP) if plan.counted else 0xFF
    keep: NDArray[np.bool_] = (flag & wanted) != 0
    return keep


def _runs(old: Arrays, tokens: shape.Tokens) -> Runs:
    """Return the runs of numbers, with what is known of the last of each."""
    member, low, high = (old[f"run.{key}"] for key in ("member", "low", "high"))
    released = np.full(len(member), NO_TIME, np.int64)
    digest = np.zeros(len(member), np.int64)
    last = {(int(m), int(n)): k for k, (m, n) in enumerate(zip(member, high, strict=True))}
    done = (tokens.flag & shape.DONE != 0) & (tokens.flag & shape.FORGOTTEN == 0)
    for token in np.flatnonzero(done):
        run = last.get((int(tokens.member[token]), int(tokens.number[token])))
        if run is not None:
            released[run], digest[run] = tokens.released[token], tokens.digest[token]
    return Runs(member, low, high, released, digest)


def _held(plan: ShardPlan, known: Identities, tokens: shape.Tokens, old: Arrays) -> HeldRows:
    first = old["held.first"] if len(old["held.first"]) else np.zeros(1, np.int64)
    cause, group = old["held.cause"], old["held.group"]
    link, lift = _links(plan, tokens, old, first)
    _, name, number = known.names_of(old["held.token"])
    _, cause_name, cause_number = known.names_of(cause)
    late = (tokens.flag[old["held.token"]] & shape.GIVEN_UP) != 0
    return HeldRows(
        serial=group.astype(np.int64),
        group=Text(*take_text(known.groups.pool, known.groups.ends, group)),
        name=name,
        number=number,
        time=old["held.time"],
        arrived=old["held.arrived"],
        digest=old["held.digest"],
        lift=lift,
        mark=np.where(late, LATE, 0).astype(np.uint8),
        first=first,
        cause=cause_name,
        cause_number=cause_number,
        link=link,
    )


def _links(plan: ShardPlan, tokens: shape.Tokens, old: Arrays, first: Longs) -> tuple[Bits, Longs]:
    """Mark the causes that are out already, and keep when the last of them was released."""
    link, cause, time = old["held.link"].copy(), old["held.cause"], old["held.time"]
    lift = np.full(len(time), NO_TIME, np.int64)
    done = ((tokens.flag[cause] & shape.DONE) != 0) & ((link & shape.GIVEN) == 0)
    link[done] |= shape.SETTLED
    if plan.timed:
        owner = np.repeat(np.arange(len(time)), np.diff(first))[done]
        when = tokens.released[cause[done]]
        np.maximum.at(lift, owner, when)
        waited = (when > time[owner]) & (time[owner] != NO_TIME)
        link[np.flatnonzero(done)[waited]] |= shape.WAITED
    return link, lift
