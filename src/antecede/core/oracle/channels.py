"""Channel models: classification of an execution as FIFO, causal or neither.

Source: Sahai et al. 2020, "Message ordering". A channel is a pair of sender and receiver:

    FIFO       a queue: messages arrive in the order of sending
    causal     for messages m_ij and m_kj to one receiver, send(m_ij) -> send(m_kj) implies
               rec(m_ij) -> rec(m_kj); with k = i this is FIFO, so causal implies FIFO
    non-FIFO   a set, emptied in any order

`rec` is a receive event (`arrivals`, relation "receipt") for the network, or a deliver
event (`deliveries`, relation "delivery") for the protocol.

Only the first receipt of another member's message counts. Two messages are compared if both reached
the member. A message that arrived undelivered, or never reached a member of `recipients`, counts as
delivered after everything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from antecede.core.oracle.events import DELIVER, RECEIVE, EventLike
from antecede.core.oracle.history import History

FIFO, CAUSAL, NON_FIFO = "FIFO", "causal", "non-FIFO"


class OrderViolation(NamedTuple):
    """`message` reached `member` after `by`, the first such, although sent before."""

    message: str
    member: str
    by: str
    never: bool = False
    """True if the message did not reach the member at all."""


class Model(NamedTuple):
    """Violations of FIFO and causal order, by row."""

    fifo: tuple[OrderViolation, ...]
    """Overtaken by a later message of the same sender."""
    causal: tuple[OrderViolation, ...]
    """Overtaken by a message that causally follows; includes all of `fifo_violations`."""

    @property
    def name(self) -> str:
        """Strongest model of the execution."""
        if not self.causal:
            return CAUSAL
        return NON_FIFO if self.fifo else FIFO

    @property
    def witness(self) -> OrderViolation | None:
        """First violation of the next stronger model; None: there is none."""
        return next(iter(self.fifo or self.causal), None)


def arrivals(
    rows: Iterable[EventLike], recipients: Mapping[str, Collection[str]] | None = None
) -> Model:
    """Classify the receive events. Raise InputError or CycleError as `History` does."""
    return _classify(list(rows), RECEIVE, "receipt", recipients)


def deliveries(
    rows: Iterable[EventLike], recipients: Mapping[str, Collection[str]] | None = None
) -> Model:
    """Classify the deliver events. Raise InputError or CycleError as `History` does."""
    return _classify(list(rows), DELIVER, "delivery", recipients)


def _classify(
    rows: Sequence[EventLike],
    kind: str,
    relation: str,
    recipients: Mapping[str, Collection[str]] | None,
) -> Model:
    history = History(rows)
    pasts = history.pasts(relation)
    sent_by = {message: send.member for message, send in history.sends.items()}
    rank: dict[tuple[str, str], int] = {}
    """(member, message) -> row of the receipt; beyond the last row if there is none."""
    for wanted_kind, beyond in ((kind, 0), (RECEIVE, len(rows))):
        for at, row in enumerate(rows):
            member = row.member or ""
            if row.kind == wanted_kind and sent_by.get(row.id, member) != member:
                rank.setdefault((member, row.id), at + beyond)
    for at, (message, members) in enumerate((recipients or {}).items()):
        for member in members:
            if sent_by.get(message, member) != member:
                rank.setdefault((member, message), at + 2 * len(rows))
    fifo, causal = [], []
    for (member, message), at in sorted(rank.items(), key=lambda item: (item[1], item[0])):
        before = [
            other
            for (receiver, other), when in sorted(rank.items(), key=lambda item: item[1])
            if receiver == member and when < min(at, len(rows)) and message in pasts[other]
        ]
        never = at >= len(rows)
        causal += [OrderViolation(message, member, by, never) for by in before[:1]]
        own = [by for by in before if sent_by[by] == sent_by[message]]
        fifo += [OrderViolation(message, member, by, never) for by in own[:1]]
    return Model(tuple(fifo), tuple(causal))
