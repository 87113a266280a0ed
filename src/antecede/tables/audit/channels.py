"""Channel models of a trace with receipts or deliveries (Sahai et al. 2020, "Message ordering").

`core.oracle.channels` has the definitions. Members and messages belong to their run. A member's
rows have the order of the table; rows of different members may be interleaved in any way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from antecede.errors import CycleError
from antecede.formatting import count_and_part, pluralize
from antecede.tables.kernels import Bools, Ints, channels, encode_column, graph
from antecede.tables.trace import DELIVER, RECEIVE, SEND

pc: Any = pyarrow.compute  # incomplete stubs

CAUSAL, FIFO, NON_FIFO, CIRCULAR = "causal", "FIFO", "non-FIFO", "circular"
"""CIRCULAR: receipts precede their sends in a cycle, so happened-before is undefined."""
_STRENGTH = (CAUSAL, FIFO, NON_FIFO, CIRCULAR)
ARRIVALS, DELIVERIES = "arrivals", "deliveries"


def channel_models(table: pa.Table) -> dict[str, Any]:
    """Return `details.channels` of a report; {} without receipts of sent messages.

    Keys: "arrivals" (receive rows) and "deliveries" (deliver rows). Each has the `model`, the
    number of `copies`, `overtaken_in_channel`, `overtaken_causally` and `undelivered` (arrived
    at a member that delivers). The first `witness` is None for the causal model.
    """
    rows = _MessageRows(table)
    found = {}
    for name, kind in ((ARRIVALS, RECEIVE), (DELIVERIES, DELIVER)):
        copies = rows.list_copies(kind)
        if not copies.is_missing.all():
            found[name] = rows.classify(copies)
    return found


class _MessageRows:
    def __init__(self, table: pa.Table) -> None:
        is_usable = pc.is_in(table["kind"], value_set=pa.array([SEND, RECEIVE, DELIVER]))
        is_usable = pc.and_(is_usable, pc.and_(table["member"].is_valid(), table["id"].is_valid()))
        self.table = table.filter(is_usable)
        kind = self.table["kind"]
        self.is_kind = {k: pc.equal(kind, k).to_numpy() for k in (SEND, RECEIVE, DELIVER)}
        self.message = encode_column(graph.keys(self.table))[1]
        runs = encode_column(self.table["run"], nulls=True)[1]
        names, members = encode_column(self.table["member"])
        pairs = runs * len(names) + members
        _, self.member = np.unique(pairs, return_inverse=True)
        sends = np.flatnonzero(self.is_kind[SEND])
        sent, first = np.unique(self.message[sends], return_index=True)
        self.sent = sends[first]  # [messages] row of the first send
        self.number = np.full(int(self.message.max(initial=-1)) + 1, -1, np.int64)
        self.number[sent] = np.arange(len(sent))

    def list_copies(self, kind: str) -> channels.ChannelCopies:
        arrived = self._find_first_rows(kind)
        only = self._find_first_rows(RECEIVE)
        only = only[~np.isin(self._encode_pairs(only), self._encode_pairs(arrived))]
        # A member without deliveries (a relay, a log of receipts) has no undelivered copies.
        only = only[np.isin(self.member[only], self.member[arrived])]
        place = np.r_[arrived, only]
        return channels.ChannelCopies(
            sender=self.member[self.sent],
            send_row=self.sent,
            message=self.number[self.message[place]],
            member=self.member[place],
            row=place,
            is_missing=np.r_[np.zeros(len(arrived), np.bool_), np.ones(len(only), np.bool_)],
        )

    def _find_first_rows(self, kind: str) -> Ints:
        rows = np.flatnonzero(self.is_kind[kind])
        rows = rows[self.number[self.message[rows]] >= 0]
        sender = self.member[self.sent[self.number[self.message[rows]]]]
        rows = rows[sender != self.member[rows]]
        _, first = np.unique(self._encode_pairs(rows), return_index=True)
        return np.sort(rows[first])

    def _encode_pairs(self, rows: Ints) -> Ints:
        members = int(self.member.max(initial=0)) + 1
        pair: Ints = self.message[rows] * members + self.member[rows]
        return pair

    def classify(self, copies: channels.ChannelCopies) -> dict[str, Any]:
        in_channel = channels.mask_overtaken_in_channel(copies)
        found: dict[str, Any] = {
            "model": NON_FIFO if in_channel.any() else FIFO,
            "copies": int(np.count_nonzero(~copies.is_missing)),
            "undelivered": int(np.count_nonzero(copies.is_missing)),
            "overtaken_in_channel": int(np.count_nonzero(in_channel)),
            "overtaken_causally": None,
            "witness": None,
        }
        try:
            causally = channels.mask_overtaken_causally(copies)
        except CycleError:
            return found | {"model": CIRCULAR}
        late = in_channel if in_channel.any() else causally
        found["overtaken_causally"] = int(np.count_nonzero(causally))
        if not late.any():
            return found | {"model": CAUSAL}
        return found | {
            "witness": self._find_witness(copies, late, in_channel=bool(in_channel.any()))
        }

    def _find_witness(
        self, copies: channels.ChannelCopies, late: Bools, *, in_channel: bool
    ) -> dict[str, Any]:
        where = np.flatnonzero(late)
        copy = int(where[np.lexsort((copies.row[where], copies.is_missing[where]))[0]])
        by = channels.find_first_overtaker(copies, copy, in_channel=in_channel)
        row = self.table.slice(int(copies.row[copy]), 1).to_pylist()[0]
        other = self.table.slice(int(copies.send_row[by]), 1).to_pylist()[0]
        return {
            "message": row["id"],
            "member": row["member"],
            "by": other["id"],
            "run": row["run"],
            "file_order": row["file_order"],
            "never": bool(copies.is_missing[copy]),
        }


def merge_channels(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return `details.channels` of a trace from those of disjoint sets of its runs."""
    total: dict[str, Any] = {}
    for part in parts:
        for name, found in part.items():
            total[name] = _merge_two(total[name], found) if name in total else dict(found)
    return {name: total[name] for name in (ARRIVALS, DELIVERIES) if name in total}


def _merge_two(one: dict[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
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


def describe_channels(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return one line for each kind of event."""
    return [f"{name}: {describe_channel(one)}" for name, one in found.items()]


def describe_channel(found: Mapping[str, Any]) -> str:
    """Return the model of one kind of event, its first violation, and the count."""
    model, copies = found["model"], found["copies"] + found["undelivered"]
    if model == CIRCULAR:
        return "undefined: receipts precede their sends in a cycle"
    if model == CAUSAL:
        return f"causal, {'all ' * (copies > 1)}{pluralize(copies, 'copy', 'copies')}"
    count = found["overtaken_in_channel"] if model == NON_FIFO else found["overtaken_causally"]
    words = model if model == NON_FIFO else "FIFO, not causal"
    late = f"{count_and_part(count, copies)} of {pluralize(copies, 'copy', 'copies')} too late"
    return f"{words} (first {_describe_witness(found['witness'])}), {late}"


def _describe_witness(witness: Mapping[str, Any]) -> str:
    message, by, member = witness["message"], witness["by"], witness["member"]
    return (
        f"{by} without {message} at {member}"
        if witness["never"]
        else (f"{message} after {by} at {member}")
    )
