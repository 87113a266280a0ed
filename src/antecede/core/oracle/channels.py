"""Channel models: did the messages of an execution come FIFO, in causal order, or neither.

Source: Sahai et al. 2020, "Message ordering". A channel is a pair of sender and receiver:

    FIFO       it is a queue: what came, came in the order of sending
    causal     for messages m_ij and m_kj to one receiver, send(m_ij) -> send(m_kj) implies
               rec(m_ij) -> rec(m_kj); with k = i this is FIFO, so causal implies FIFO
    non-FIFO   it is a set, emptied in any order

Either kind of event can be the `rec` of this definition, and happened-before is built on the same
kind: `arrivals` takes receive events (relation "receipt" of `core.oracle.history`), `deliveries`
takes deliver events (relation "delivery"). So a network is classified by the one, and what a
protocol made of it by the other.

What counts: a member's first receipt of a message of another member. Two messages are compared
where both came to the member. One that arrived and was not delivered counts as delivered after
everything. So does one that never came to a member it is `addressed` to, where that is given:
Sahai et al.'s channels lose nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from antecede.core.oracle.events import DELIVER, RECEIVE, EventLike
from antecede.core.oracle.history import History

FIFO, CAUSAL, NON_FIFO = "FIFO", "causal", "non-FIFO"


class Overtaken(NamedTuple):
    """`message` came to `member` after `by` (the first such), although it was sent before."""

    message: str
    member: str
    by: str
    never: bool = False
    """It did not come at all."""


class Model(NamedTuple):
    """Which messages break FIFO order, which causal order; in the order of the rows."""

    fifo: tuple[Overtaken, ...]
    """By a later message of the same sender."""
    causal: tuple[Overtaken, ...]
    """By a message that it happened before; all of `fifo` among them."""

    @property
    def name(self) -> str:
        """The strongest model that the execution keeps."""
        if not self.causal:
            return CAUSAL
        return NON_FIFO if self.fifo else FIFO

    @property
    def witness(self) -> Overtaken | None:
        """The first message that tells why no stronger model is kept; None: there is none."""
        return next(iter(self.fifo or self.causal), None)


def arrivals(
    rows: Iterable[EventLike], addressed: Mapping[str, Collection[str]] | None = None
) -> Model:
    """Classify the receive events; raises InputError, CycleError as `History` does."""
    return _classify(list(rows), RECEIVE, "receipt", addressed)


def deliveries(
    rows: Iterable[EventLike], addressed: Mapping[str, Collection[str]] | None = None
) -> Model:
    """Classify the deliver events; raises InputError, CycleError as `History` does."""
    return _classify(list(rows), DELIVER, "delivery", addressed)


def _classify(
    rows: Sequence[EventLike],
    kind: str,
    relation: str,
    addressed: Mapping[str, Collection[str]] | None,
) -> Model:
    history = History(rows)
    pasts = history.pasts(relation)
    sent_by = {message: send.member for message, send in history.sends.items()}
    place: dict[tuple[str, str], int] = {}
    """(member, message) -> row of the receipt; past the end where it did not come."""
    for wanted, beyond in ((kind, 0), (RECEIVE, len(rows))):
        for at, row in enumerate(rows):
            member = row.member or ""
            if row.kind == wanted and sent_by.get(row.id, member) != member:
                place.setdefault((member, row.id), at + beyond)
    for at, (message, members) in enumerate((addressed or {}).items()):
        for member in members:
            if sent_by.get(message, member) != member:
                place.setdefault((member, message), at + 2 * len(rows))
    fifo, causal = [], []
    for (member, message), at in sorted(place.items(), key=lambda item: (item[1], item[0])):
        before = [
            other
            for (receiver, other), when in sorted(place.items(), key=lambda item: item[1])
            if receiver == member and when < min(at, len(rows)) and message in pasts[other]
        ]
        never = at >= len(rows)
        causal += [Overtaken(message, member, by, never) for by in before[:1]]
        own = [by for by in before if sent_by[by] == sent_by[message]]
        fifo += [Overtaken(message, member, by, never) for by in own[:1]]
    return Model(tuple(fifo), tuple(causal))
