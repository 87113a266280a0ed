"""Channel models of a trace that tells of receipts or deliveries (Sahai et al. 2020, "Message
ordering").

The definitions stand in `core.oracle.channels`; here they are counted over Arrow tables of any size
by `tables.kernels.channels`. Members and messages belong to their run. The order of a member's rows
is that of the table; rows of different members may be interleaved in any way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from antecede.errors import CycleError
from antecede.formatting import count_and_part, counted
from antecede.tables.kernels import Bools, Ints, channels, encode_column, graph
from antecede.tables.trace import DELIVER, RECEIVE, SEND

pc: Any = pyarrow.compute  # its stubs know too few kinds of arrays

CAUSAL, FIFO, NON_FIFO, CIRCULAR = "causal", "FIFO", "non-FIFO", "circular"
"""CIRCULAR: receipts come before their sends in a circle, so that nothing happened before."""
_STRENGTH = (CAUSAL, FIFO, NON_FIFO, CIRCULAR)
ARRIVALS, DELIVERIES = "arrivals", "deliveries"


def channel_models(table: pa.Table) -> dict[str, Any]:
    """Return `details.channels` of a report; {} without receipts of messages that are sent.

    Keys: "arrivals" (receive rows) and "deliveries" (deliver rows). Each has the `model`, the
    number of `copies`, `overtaken_in_channel`, `overtaken_causally` and `undelivered` (they arrived
    at a member that delivers), and the first `witness`, None for the causal model.
    """
    rows = _Rows(table)
    found = {}
    for name, kind in ((ARRIVALS, RECEIVE), (DELIVERIES, DELIVER)):
        copies = rows.copies(kind)
        if not copies.never.all():
            found[name] = rows.model(copies)
    return found


class _Rows:
    """The rows that matter, as numbers."""

    def __init__(self, table: pa.Table) -> None:
        told = pc.is_in(table["kind"], value_set=pa.array([SEND, RECEIVE, DELIVER]))
        told = pc.and_(told, pc.and_(table["member"].is_valid(), table["id"].is_valid()))
        self.table = table.filter(told)
        kind = self.table["kind"]
        self.is_kind = {k: pc.equal(kind, k).to_numpy() for k in (SEND, RECEIVE, DELIVER)}
        self.message = encode_column(graph.keys(self.table))[1]
        runs = encode_column(self.table["run"], nulls=True)[1]
        names, members = encode_column(self.table["member"])
        pairs = runs * len(names) + members
        _, self.member = np.unique(pairs, return_inverse=True)
        sends = np.flatnonzero(self.is_kind[SEND])
        sent, first = np.unique(self.message[sends], return_index=True)
        self.sent = sends[first]  # [messages] row of the first send of each message
        self.number = np.full(int(self.message.max(initial=-1)) + 1, -1, np.int64)
        self.number[sent] = np.arange(len(sent))

    def copies(self, kind: str) -> channels.Copies:
        """Return the copies that came by rows of one kind, then those that only arrived."""
        came = self._first_of_others(kind)
        only = self._first_of_others(RECEIVE)
        only = only[~np.isin(self._pair(only), self._pair(came))]
        # Who delivers nothing at all (a relay, a log of receipts) leaves nothing undelivered.
        only = only[np.isin(self.member[only], self.member[came])]
        place = np.r_[came, only]
        return channels.Copies(
            sender=self.member[self.sent],
            sent=self.sent,
            message=self.number[self.message[place]],
            member=self.member[place],
            place=place,
            never=np.r_[np.zeros(len(came), np.bool_), np.ones(len(only), np.bool_)],
        )

    def _first_of_others(self, kind: str) -> Ints:
        """Return the first row of each copy, of messages that another member sent."""
        rows = np.flatnonzero(self.is_kind[kind])
        rows = rows[self.number[self.message[rows]] >= 0]
        sender = self.member[self.sent[self.number[self.message[rows]]]]
        rows = rows[sender != self.member[rows]]
        _, first = np.unique(self._pair(rows), return_index=True)
        return np.sort(rows[first])

    def _pair(self, rows: Ints) -> Ints:
        members = int(self.member.max(initial=0)) + 1
        pair: Ints = self.message[rows] * members + self.member[rows]
        return pair

    def model(self, copies: channels.Copies) -> dict[str, Any]:
        in_channel = channels.overtaken_in_channel(copies)
        found: dict[str, Any] = {
            "model": NON_FIFO if in_channel.any() else FIFO,
            "copies": int(np.count_nonzero(~copies.never)),
            "undelivered": int(np.count_nonzero(copies.never)),
            "overtaken_in_channel": int(np.count_nonzero(in_channel)),
            "overtaken_causally": None,
            "witness": None,
        }
        try:
            causally = channels.overtaken_causally(copies)
        except CycleError:
            return found | {"model": CIRCULAR}
        late = in_channel if in_channel.any() else causally
        found["overtaken_causally"] = int(np.count_nonzero(causally))
        if not late.any():
            return found | {"model": CAUSAL}
        return found | {"witness": self._witness(copies, late, in_channel=bool(in_channel.any()))}

    def _witness(self, copies: channels.Copies, late: Bools, *, in_channel: bool) -> dict[str, Any]:
        where = np.flatnonzero(late)
        copy = int(where[np.lexsort((copies.place[where], copies.never[where]))[0]])
        by = channels.first_overtaker(copies, copy, in_channel=in_channel)
        row = self.table.slice(int(copies.place[copy]), 1).to_pylist()[0]
        other = self.table.slice(int(copies.sent[by]), 1).to_pylist()[0]
        return {
            "message": row["id"],
            "member": row["member"],
            "by": other["id"],
            "run": row["run"],
            "file_order": row["file_order"],
            "never": bool(copies.never[copy]),
        }


def merge_channels(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the `details.channels` of a trace from those of disjoint sets of its runs."""
    total: dict[str, Any] = {}
    for part in parts:
        for name, found in part.items():
            total[name] = _both(total[name], found) if name in total else dict(found)
    return {name: total[name] for name in (ARRIVALS, DELIVERIES) if name in total}


def _both(one: dict[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    worse = max(one, other, key=lambda found: _STRENGTH.index(found["model"]))
    alike = [f for f in (one, other) if f["model"] == worse["model"] and f["witness"]]
    first = min(
        (found["witness"] for found in alike),
        key=lambda witness: (witness["never"], witness["file_order"]),
        default=None,
    )
    counts = ("copies", "undelivered", "overtaken_in_channel", "overtaken_causally")
    added = {
        name: None if None in (one[name], other[name]) else one[name] + other[name]
        for name in counts
    }
    return {"model": worse["model"], **added, "witness": first}


def lines(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return one line a kind of event, for people."""
    return [f"{name}: {sentence(one)}" for name, one in found.items()]


def sentence(found: Mapping[str, Any]) -> str:
    """Say which model one kind of event follows, where it fails first, and how often."""
    model, copies = found["model"], found["copies"] + found["undelivered"]
    if model == CIRCULAR:
        return "neither order can be told, as receipts come before their sends in a circle"
    if model == CAUSAL:
        return f"causal, {'all ' * (copies > 1)}{counted(copies, 'copy', 'copies')}"
    count = found["overtaken_in_channel"] if model == NON_FIFO else found["overtaken_causally"]
    words = model if model == NON_FIFO else "FIFO, not causal"
    late = f"{count_and_part(count, copies)} of {counted(copies, 'copy', 'copies')} too late"
    return f"{words} (first {_first(found['witness'])}), {late}"


def _first(witness: Mapping[str, Any]) -> str:
    message, by, member = witness["message"], witness["by"], witness["member"]
    return (
        f"{by} without {message} at {member}"
        if witness["never"]
        else (f"{message} after {by} at {member}")
    )
